#include "libs/kubernetes/informer.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::kubernetes {
namespace {

using scripted::Line;
using scripted::List;
using scripted::Object;
using scripted::ScriptedApi;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An object is its resourceVersion here; "13" cannot be read, "666" throws, "7" is of no interest.
absl::StatusOr<std::optional<std::string>> ReadVersion(std::string_view json) {
  ASSIGN_OR_RETURN(ObjectMeta meta, ParseMeta(json));
  if (meta.resource_version == "13") return InvalidArgument("spec.cpu: \"x\" is not a quantity");
  if (meta.resource_version == "666") throw std::out_of_range("no such element");
  if (meta.resource_version == "7") return std::nullopt;
  return meta.resource_version;
}

using News = std::variant<Seen<std::string>, Gone, Synced, Unread>;

std::string TextOf(const News& news) {
  if (const auto* seen = std::get_if<Seen<std::string>>(&news)) return "seen @" + seen->object;
  if (const auto* gone = std::get_if<Gone>(&news)) {
    return fmt::format("gone {} {}/{} {}", gone->resource, gone->space, gone->name, gone->uid);
  }
  if (const auto* synced = std::get_if<Synced>(&news)) {
    return fmt::format("synced {} {}", synced->resource, fmt::join(synced->uids, ","));
  }
  const auto& unread = std::get<Unread>(news);
  return fmt::format("unread {}@{}: {}", unread.uid, unread.version, unread.why);
}

class InformerTest : public ::testing::Test {
 protected:
  void Script(std::deque<http::Response> answers) {
    api_ = std::make_unique<ScriptedApi>(std::move(answers));
    client_ = std::make_unique<Client>(api_->config());
  }
  // `item`: also without Unread.
  template <typename Item>
  std::unique_ptr<InformerBase> Make(Mailbox<Item>& mailbox, Reader<std::string> reader) {
    return std::make_unique<Informer<std::string>>(
        *client_,
        InformerOptions{
            .watch = {.resource = kPods, .retry_min = Millis(1), .retry_max = Millis(5)},
            .unread = [this] { ++unread_; }},
        std::move(reader),
        mailbox);
  }
  void Start(Reader<std::string> reader = {ReadVersion}) {
    Informers::List list;
    list.push_back(Make(mailbox_, std::move(reader)));
    informers_.Start(std::move(list));
  }
  // The script has ended: nothing comes any more.
  void WaitForTheEnd() {
    while (Message(informers_.Health()).find("script ended") == std::string::npos) {
      std::this_thread::yield();
    }
  }
  std::vector<std::string> Take() {
    std::vector<std::string> texts;
    for (const News& news : mailbox_.Take()) texts.push_back(TextOf(news));
    return texts;
  }

  std::unique_ptr<ScriptedApi> api_;
  std::unique_ptr<Client> client_;
  std::atomic<int> unread_ = 0;
  Mailbox<News> mailbox_;
  Informers informers_;
};

TEST_F(InformerTest, OfEachObjectTheLastStateWaitsInThePlaceOfTheFirst) {
  Script({
      {.body = List(10, Object("a", "u1", 1) + "," + Object("b", "u2", 2))},
      {.body = Line("MODIFIED", Object("a", "u1", 11)) + Line("ADDED", Object("c", "u3", 12)) +
               Line("DELETED", Object("b", "u2", 14)) + Line("MODIFIED", Object("a", "u1", 15))},
      {.status = 410},
      {.body = List(20, Object("c", "u3", 12))},
  });
  EXPECT_TRUE(informers_.Ready().ok());
  Start();
  WaitForTheEnd();
  // What the list has shown is in front of its end, whatever became of it since; a deletion that
  // only the second list has shown is told, and no second end.
  EXPECT_THAT(Take(),
              ElementsAre("seen @15",
                          "seen @2",
                          "synced pods u1,u2",
                          "seen @12",
                          "gone pods lab/b u2",
                          "gone pods lab/a u1"));
  EXPECT_EQ(unread_, 0);
  EXPECT_THAT(Message(informers_.Ready()), HasSubstr("watch of pods broken for"));
  informers_.Stop();
  EXPECT_TRUE(informers_.Health().ok());
}

TEST_F(InformerTest, WhatIsSeenAgainWasNotGone) {
  Script({
      {.body = List(10, "")},
      {.body = Line("ADDED", Object("a", "u1", 11)) + Line("DELETED", Object("a", "u1", 12)) +
               Line("ADDED", Object("a", "u1", 14))},
  });
  Start();
  WaitForTheEnd();
  EXPECT_THAT(Take(), ElementsAre("synced pods ", "seen @14"));
}

TEST_F(InformerTest, WhatCannotBeReadIsSaidAndTheOthersAreRead) {
  Script({
      {.body = List(20,
                    Object("a", "u1", 13) + "," + Object("b", "u2", 666) + "," +
                        Object("c", "u3", 3) + "," + Object("d", "u4", 13))},
      {.body = Line("MODIFIED", Object("a", "u1", 21)) + Line("DELETED", Object("b", "u2", 22)) +
               Line("MODIFIED", Object("c", "u3", 666))},
  });
  Start();
  WaitForTheEnd();
  EXPECT_THAT(Take(),
              ElementsAre("seen @3",
                          "unread u4@13: spec.cpu: \"x\" is not a quantity",
                          "synced pods u1,u2,u3,u4",
                          "seen @21",
                          "gone pods lab/b u2",
                          "unread u3@666: reading it threw: no such element"));
  EXPECT_EQ(unread_, 4);
}

TEST_F(InformerTest, WhoHasNoUseForWhatIsUnreadIsNotToldOfIt) {
  Script({{.body = List(20, Object("a", "u1", 13) + "," + Object("c", "u3", 3))}});
  Mailbox<std::variant<Seen<std::string>, Gone, Synced>> mailbox;
  Informers::List list;
  list.push_back(Make(mailbox, {ReadVersion}));
  informers_.Start(std::move(list));
  WaitForTheEnd();
  EXPECT_EQ(mailbox.size(), 2);
  EXPECT_EQ(unread_, 1);
}

TEST_F(InformerTest, WhatHasNoNameIsNotHandedOn) {
  Script({
      {.body = List(
           20,
           Object("../a", "u1", 1) + "," + Object("b", "u/2", 2) + "," + Object("c", "", 3) + "," +
               Object("", "u4", 4) + "," + Object("e", "u5", 5) +
               R"(,{"metadata":{"name":"f","namespace":"L b","uid":"u6","resourceVersion":"6"}})")},
      {.body = Line("DELETED", Object("../a", "u1", 22))},
  });
  Start();
  WaitForTheEnd();
  EXPECT_THAT(Take(), ElementsAre("seen @5", "synced pods u5"));
  EXPECT_EQ(unread_, 5);
}

TEST_F(InformerTest, WhatIsNoNewsIsNotTold) {
  Script({
      {.body = List(10, Object("a", "u1", 7) + "," + Object("b", "u2", 2))},
      {.body = Line("MODIFIED", Object("b", "u2", 11)) + Line("DELETED", Object("b", "u2", 12)) +
               Line("ADDED", Object("b", "u2", 14)) + Line("MODIFIED", Object("c", "u3", 100)) +
               Line("MODIFIED", Object("c", "u3", 101))},
  });
  // Short ones are all the same.
  std::vector<std::string> parsed;
  Start(
      {.parse = ReadVersion, .digest = [&](const std::string& version) -> std::optional<uint64_t> {
         parsed.push_back(version);
         if (version.size() > 2) return std::nullopt;
         return 1;
       }});
  WaitForTheEnd();
  informers_.Stop();
  EXPECT_THAT(parsed, ElementsAre("2", "11", "14", "100", "101"));
  // Gone, and then there again: that is news.
  EXPECT_THAT(Take(), ElementsAre("seen @14", "synced pods u1,u2", "seen @101"));
}

// The next that is told of an object has the version that counts from now on.
TEST_F(InformerTest, WhatARestoredStoreShowsIsNewsWhateverItIs) {
  Script({
      {.body = List(10, Object("a", "u1", 5))},
      {.body = Line("MODIFIED", Object("a", "u1", 11))},
      {.status = 410},
      {.body = List(9, Object("a", "u1", 8))},
      {.body = List(9, Object("a", "u1", 8))},
  });
  std::atomic<int> parsed = 0;
  Start({.parse =
             [&](std::string_view json) {
               ++parsed;
               return ReadVersion(json);
             },
         .digest = [](const std::string&) -> std::optional<uint64_t> { return 1; }});
  WaitForTheEnd();
  EXPECT_EQ(parsed, 3);
  const std::vector<News> news = mailbox_.Take();
  ASSERT_EQ(news.size(), 2);
  EXPECT_EQ(std::get<Seen<std::string>>(news[0]).object, "8");
  EXPECT_EQ(std::get<Seen<std::string>>(news[0]).history, 2);
}

TEST_F(InformerTest, AWatchThatIsAheadWaits) {
  Script({{.body = List(100,
                        Object("a", "u1", 1) + "," + Object("b", "u2", 2) + "," +
                            Object("c", "u3", 3) + "," + Object("d", "u4", 4))}});
  Mailbox<News> small(1);
  std::atomic<int> parsed = 0;
  Informers::List list;
  list.push_back(Make(small, {[&](std::string_view json) {
                        ++parsed;
                        return ReadVersion(json);
                      }}));
  informers_.Start(std::move(list));
  for (int taken = 1; taken <= 2; ++taken) {
    while (parsed <= taken) std::this_thread::yield();
    ASSERT_EQ(small.size(), 1);
    ASSERT_EQ(small.Take().size(), 1);
  }
  // The third or fourth waits, and lets go.
  while (parsed < 4) std::this_thread::yield();
  informers_.Stop();
  EXPECT_EQ(small.size(), 1);
}

TEST_F(InformerTest, WhoKeepsAPictureIsCalled) {
  Script({
      {.body = List(20, Object("a", "u1", 1) + "," + Object("b", "u2", 13))},
      {.body = Line("DELETED", Object("a", "u1", 22))},
  });
  std::vector<std::string> told;
  Informers::List list;
  list.push_back(std::make_unique<Informer<std::string>>(
      *client_,
      InformerOptions{.watch = {.resource = kPods}},
      Reader<std::string>{ReadVersion},
      [&](const Change<std::string>& change) { told.push_back(TextOf(change)); }));
  informers_.Start(std::move(list));
  WaitForTheEnd();
  informers_.Stop();
  EXPECT_THAT(told,
              ElementsAre("seen @1",
                          "unread u2@13: spec.cpu: \"x\" is not a quantity",
                          "synced pods u1,u2",
                          "gone pods lab/a u1"));
}

}  // namespace
}  // namespace fluxqueue::kubernetes
