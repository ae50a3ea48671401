// What the policy `packed` expects: by rules from 6 on what came, also after what came has ended;
// and what a core that is restored from its rows expects.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libs/matcher_core/core_fixture.h"

namespace fluxqueue::matcher_core {
namespace {

std::string GpuText(int64_t gpus) {
  return R"({"version":1,"resources":[{"type":"slot","count":1,"label":"pod","with":[)"
         R"({"type":"cpu","count":1000},{"type":"nvidia.com/gpu","count":)" +
         std::to_string(gpus) +
         R"(}]}],"tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],)"
         R"("attributes":{"system":{"constraints":{"properties":["zone=a"]}}}})";
}

Envelope SubmittedIn(const std::string& space, const std::string& job, int64_t gpus) {
  Envelope message = Submitted(job, 1, GpuText(gpus));
  message.mutable_job_submitted()->mutable_workload()->set_namespace_(space);
  return message;
}

Envelope Packed(uint32_t rules) {
  Envelope message = Configured("packed");
  message.mutable_pool_configured()->set_rules(rules);
  return message;
}

Envelope Ended(const std::string& job) {
  Envelope message;
  message.mutable_release_requested()->mutable_key()->set_job_id(job);
  message.mutable_release_requested()->set_job_ended(true);
  return message;
}

class CoreForecastTest : public MatcherCoreTest {
 protected:
  // Each message is a batch of its own.
  void FeedAll(const std::vector<Envelope>& messages) {
    for (const Envelope& message : messages) {
      Feed(message);
      tables_.Apply(core_.TakeChanges());
      core_.Commit();
    }
  }

  uint64_t Restored() {
    MatcherCore other("default");
    EXPECT_TRUE(other.Restore(tables_.All()).ok());
    return other.Fingerprint();
  }

  Tables tables_;
};

TEST_F(CoreForecastTest, WhatCameIsExpectedAfterItsEnd) {
  for (const uint32_t rules : {model::kForecastDecays - 1, model::kForecastDecays}) {
    FeedAll({Packed(rules)});
    const uint64_t before = core_.engine().Fingerprint();
    FeedAll({SubmittedIn("ann", "a", 2), Ended("a")});
    EXPECT_EQ(core_.engine().Fingerprint() != before, rules == model::kForecastDecays);
    EXPECT_EQ(Restored(), core_.Fingerprint());
  }
}

TEST_F(CoreForecastTest, ARestoredCoreExpectsTheSame) {
  FeedAll({Packed(model::kForecastDecays)});
  for (int i = 0; i < 40; ++i) {
    now_ += Millis(3'600'000);
    const std::string job = "job" + std::to_string(i);
    FeedAll({SubmittedIn(i % 3 == 0 ? "ann" : "bob", job, 1 + i % 4)});
    EXPECT_EQ(Restored(), core_.Fingerprint()) << i;
    // Once more is no arrival.
    const uint64_t before = core_.Fingerprint();
    FeedAll({SubmittedIn("ann", job, 1 + i % 4)});
    EXPECT_EQ(core_.Fingerprint(), before);
  }
}

TEST_F(CoreForecastTest, ABatchIsTakenBack) {
  FeedAll({Packed(model::kForecastDecays), SubmittedIn("ann", "a", 2)});
  const uint64_t before = core_.Fingerprint();
  Feed(SubmittedIn("bob", "b", 4));
  EXPECT_NE(core_.Fingerprint(), before);
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
  Feed(Packed(model::kForecastDecays - 1));
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
}

// By the new rules what is known of came, and by the old ones nothing is remembered.
TEST_F(CoreForecastTest, TheRulesMayChange) {
  FeedAll({Packed(model::kForecastDecays - 1)});
  const uint64_t nothing = core_.engine().Fingerprint();
  FeedAll({SubmittedIn("ann", "a", 2), Packed(model::kForecastDecays)});
  EXPECT_EQ(Restored(), core_.Fingerprint());
  FeedAll({Ended("a"), Packed(model::kForecastDecays - 1)});
  EXPECT_EQ(core_.engine().Fingerprint(), nothing);
  EXPECT_EQ(Restored(), core_.Fingerprint());
}

}  // namespace
}  // namespace fluxqueue::matcher_core
