#include "libs/delivery/quarantine.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/delivery/wire.h"

namespace fluxqueue::delivery {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

ObjectRef PodOf(const std::string& name,
                const std::string& version = "1",
                const std::string& space = "team") {
  return {.kind = "Pod", .space = space, .name = name, .uid = "uid-" + name, .version = version};
}

class QuarantineTest : public ::testing::Test {
 protected:
  bool Admits(const ObjectRef& object) {
    const auto admitted = quarantine_.Admit(object);
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    quarantine_.Rollback();
    return admitted.value_or(false);
  }
  void Fail(const ObjectRef& object, const std::string& reason = "it threw") {
    ASSERT_TRUE(*quarantine_.Admit(object));
    quarantine_.Condemn(reason);
  }
  void Handle(const ObjectRef& object) {
    ASSERT_TRUE(*quarantine_.Admit(object));
    ASSERT_TRUE(quarantine_.Handled().ok());
  }
  // What a commit writes.
  Quarantine::Changes Save(const std::vector<Quarantine::Key>& retried = {}) {
    Quarantine::Changes changes = quarantine_.Pending(retried);
    quarantine_.Saved();
    quarantine_.Retried(retried);
    return changes;
  }

  FakeClock clock_;
  Quarantine quarantine_{clock_, {"Pod", "Job"}};
};

TEST_F(QuarantineTest, NothingIsKeptOfWhatIsHandled) {
  Handle(PodOf("a"));
  EXPECT_FALSE(quarantine_.HasPending());
  EXPECT_TRUE(quarantine_.empty());
  EXPECT_THAT(quarantine_.Totals(), ElementsAre(Pair("Job", 0), Pair("Pod", 0)));
}

TEST_F(QuarantineTest, TheOneAdmittedLastIsToBlame) {
  ASSERT_TRUE(*quarantine_.Admit(PodOf("a")));
  ASSERT_TRUE(*quarantine_.Admit(PodOf("b")));
  quarantine_.Condemn("it threw");
  EXPECT_TRUE(Admits(PodOf("a")));
  EXPECT_FALSE(Admits(PodOf("b")));
  EXPECT_THAT(quarantine_.Totals(), ElementsAre(Pair("Job", 0), Pair("Pod", 1)));
}

TEST_F(QuarantineTest, WhatCouldNotBeReadIsHeldUntilItCan) {
  ASSERT_TRUE(*quarantine_.Admit(PodOf("under-way")));
  quarantine_.HoldUnread(PodOf("a", "1"), "spec: not an object");
  quarantine_.HoldUnread(PodOf("a", "1"), "spec: not an object");
  ASSERT_THAT(quarantine_.Untold(), SizeIs(1));
  EXPECT_EQ(quarantine_.Untold()[0].reason, "spec: not an object");
  EXPECT_EQ(quarantine_.Untold()[0].times, 1);
  EXPECT_EQ(quarantine_.admitted(), 1);  // the batch goes on
  quarantine_.HoldUnread(PodOf("a", "2"), "spec: not an object");
  // Now it is looked at less often.
  quarantine_.HoldUnread(PodOf("a", "3"), "spec: not an object");
  EXPECT_EQ(quarantine_.Untold()[0].times, 2);
  EXPECT_TRUE(quarantine_.LookAt().has_value());
  clock_.Advance(seconds(3));
  ASSERT_TRUE(quarantine_.Handled().ok());
  Handle(PodOf("a", "4"));
  EXPECT_TRUE(quarantine_.empty());
}

TEST_F(QuarantineTest, ARowIsWrittenAndALetterSaidOnce) {
  Fail(PodOf("a"), "no such number");
  ASSERT_THAT(quarantine_.Untold(), SizeIs(1));
  const DeadLetter letter = MakeLetter(quarantine_.Untold()[0], "cleanup/watch");
  EXPECT_EQ(letter.message.key, "Pod team/a");
  EXPECT_EQ(letter.reason, "no such number");
  const Quarantine::Changes changes = Save();
  ASSERT_THAT(changes.upserts, SizeIs(1));
  EXPECT_TRUE(changes.upserts[0].held);
  EXPECT_TRUE(changes.upserts[0].told);
  EXPECT_FALSE(quarantine_.HasPending());
  EXPECT_THAT(quarantine_.Untold(), IsEmpty());
}

TEST_F(QuarantineTest, ANewVersionIsTriedAndForgottenWhenItGoes) {
  Fail(PodOf("a", "1"));
  Save();
  EXPECT_FALSE(Admits(PodOf("a", "1")));
  Handle(PodOf("a", "2"));
  EXPECT_THAT(Save().deletes, ElementsAre(Pair("Pod", "uid-a")));
  EXPECT_TRUE(quarantine_.empty());
}

TEST_F(QuarantineTest, OneThatAlwaysFailsIsLookedAtLessAndLessOften) {
  Fail(PodOf("a", "1"));
  Fail(PodOf("a", "2"));  // at once: it has failed once
  EXPECT_EQ(quarantine_.LookAt(), std::nullopt);
  EXPECT_FALSE(Admits(PodOf("a", "3")));
  EXPECT_EQ(quarantine_.LookAt(), clock_.Monotonic() + seconds(2));
  clock_.Advance(seconds(2));
  Fail(PodOf("a", "3"));
  clock_.Advance(seconds(3));
  EXPECT_FALSE(Admits(PodOf("a", "4")));
  EXPECT_TRUE(Admits(PodOf("a", kDeleted))) << "its end is heard at once";
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Admits(PodOf("a", "4")));
}

TEST_F(QuarantineTest, WhatIsRetriedIsTriedAndNotWrittenAgain) {
  Fail(PodOf("a"));
  Save();
  Fail(PodOf("a", "2"));  // while its row is retried
  EXPECT_THAT(Save({{"Pod", "uid-a"}}).upserts, IsEmpty());
  EXPECT_TRUE(Admits(PodOf("a", "2")));
  EXPECT_FALSE(quarantine_.HasPending());
}

TEST_F(QuarantineTest, OneByOneUntilTheFailedBatchIsThrough) {
  EXPECT_FALSE(quarantine_.careful());
  quarantine_.OneByOne(2);
  EXPECT_TRUE(quarantine_.careful());
  Handle(PodOf("a"));
  EXPECT_TRUE(quarantine_.careful());
  Fail(PodOf("b"));
  EXPECT_FALSE(quarantine_.careful());
}

TEST_F(QuarantineTest, MarksBeforeAndAfterEachObject) {
  std::vector<std::string> marks;
  quarantine_.MarkWith([&](const ObjectRef* object) {
    marks.push_back(object == nullptr ? "-" : object->name);
    return absl::OkStatus();
  });
  EXPECT_TRUE(quarantine_.careful());
  Handle(PodOf("a"));
  Handle(PodOf("b"));
  EXPECT_THAT(marks, ElementsAre("a", "-", "b", "-"));
  quarantine_.MarkWith([](const ObjectRef*) { return Unavailable("the database is away"); });
  EXPECT_FALSE(quarantine_.Admit(PodOf("c")).ok()) << "it is not handled without a mark";
  EXPECT_EQ(quarantine_.admitted(), 0);
}

TEST_F(QuarantineTest, WhatIsOnlySuspectedIsTried) {
  quarantine_.Restore({{.object = PodOf("a"), .reason = "ended", .ends = 1}});
  Handle(PodOf("a"));
  EXPECT_THAT(Save().deletes, SizeIs(1));
}

// As one that was deleted while no process ran. Found by tools/chaos.
TEST_F(QuarantineTest, ASuspectThatNeverComesAgainIsForgotten) {
  quarantine_.Restore({{.object = PodOf("a"), .reason = "ended", .ends = 1},
                       {.object = PodOf("b"), .reason = "ended", .ends = 2, .held = true}});
  quarantine_.ForgetSuspects();
  EXPECT_THAT(Save().deletes, ElementsAre(Quarantine::KeyOf(PodOf("a"))));
  EXPECT_FALSE(Admits(PodOf("b")));
}

TEST_F(QuarantineTest, WhatEndedTheProcessIsToldByTheNext) {
  quarantine_.Restore({{.object = PodOf("a"), .reason = "ended", .ends = 2, .held = true}});
  EXPECT_FALSE(Admits(PodOf("a")));
  EXPECT_THAT(quarantine_.Untold(), SizeIs(1));
  EXPECT_EQ(quarantine_.Totals().at("Pod"), 1);
}

TEST_F(QuarantineTest, ANamespaceWithManyIsSummedUp) {
  for (size_t i = 0; i <= Quarantine::kMostOfNamespace; ++i) Fail(PodOf(fmt::format("p{}", i)));
  const Quarantine::Changes changes = Save();
  ASSERT_THAT(changes.upserts, SizeIs(1));
  EXPECT_EQ(changes.upserts[0].object.uid, "namespace/team");
  EXPECT_THAT(changes.upserts[0].reason, HasSubstr("51 objects of its kind"));
  EXPECT_FALSE(Admits(PodOf("new")));
  EXPECT_TRUE(Admits(PodOf("new", kDeleted)));
  EXPECT_TRUE(Admits(PodOf("new", "1", "other-team")));
  ObjectRef job = PodOf("job");
  job.kind = "Job";
  EXPECT_TRUE(Admits(job));
  Save({{"Pod", "namespace/team"}});
  EXPECT_TRUE(Admits(PodOf("new")));
}

TEST_F(QuarantineTest, RowsAndReasonsAreBounded) {
  for (size_t i = 0; i < Quarantine::kMost + 5; ++i) {
    clock_.Advance(seconds(1));
    Fail(PodOf(fmt::format("p{}", i), "1", fmt::format("team-{}", i)), std::string(5000, 'x'));
  }
  const Quarantine::Changes changes = Save();
  EXPECT_THAT(changes.upserts, SizeIs(Quarantine::kMost));
  EXPECT_EQ(changes.upserts[0].reason.size(), Quarantine::kMostReasonBytes);
  EXPECT_TRUE(Admits(PodOf("p4", "1", "team-4"))) << "the oldest have gone";
  EXPECT_FALSE(Admits(PodOf("p5", "1", "team-5")));
}

}  // namespace
}  // namespace fluxqueue::delivery
