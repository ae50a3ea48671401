#include "tools/fluxqueue/job_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JobStoryTest : public ::testing::Test {
 protected:
  void Read(Envelope message) {
    ++offset_;
    story_.Read({.offset = offset_, .time = Millis(1000 * offset_), .message = std::move(message)});
  }
  void Submit(const std::string& id, const std::string& name) {
    Envelope message;
    message.mutable_job_submitted()->set_job_id(id);
    message.mutable_job_submitted()->mutable_workload()->set_namespace_("team");
    message.mutable_job_submitted()->mutable_workload()->set_name(name);
    Read(message);
  }
  void Try(const std::string& id, events::v1::Outcome::Kind kind, const std::string& reason) {
    Envelope message;
    auto* outcome = message.mutable_cycle_answered()->add_outcomes();
    outcome->set_job_id(id);
    outcome->set_kind(kind);
    outcome->set_reason(reason);
    Read(message);
  }
  events::v1::JobFact Fact(events::v1::JobState state, const std::string& reason) {
    events::v1::JobFact fact;
    fact.set_job_id("1");
    fact.set_version(++version_);
    fact.set_attempt(1);
    fact.set_state(state);
    fact.set_reason(reason);
    return fact;
  }
  void Decide(const events::v1::JobFact& fact) { story_.Decide(fact, Millis(1000 * offset_)); }

  JobStory story_{"team/train", [](const std::string&, uint32_t) { return "n1 x2"; }};
  int64_t offset_ = 0;
  uint64_t version_ = 0;
};

TEST_F(JobStoryTest, SaysWhatCameOfWhat) {
  Submit("0", "other");
  Submit("1", "train");
  Decide(Fact(events::v1::JOB_STATE_PENDING, "Queued"));
  Try("1", events::v1::Outcome::KIND_BUSY, "cpu");
  Try("1", events::v1::Outcome::KIND_BUSY, "cpu");
  Try("0", events::v1::Outcome::KIND_BUSY, "cpu");
  Try("1", events::v1::Outcome::KIND_ALLOCATED, "");
  Decide(Fact(events::v1::JOB_STATE_ALLOCATED, ""));

  ASSERT_EQ(story_.steps().size(), 5);
  EXPECT_EQ(story_.id(), "1");
  EXPECT_EQ(story_.steps()[0].cause.type, "job_submitted");
  EXPECT_EQ(story_.steps()[1].state, "Pending");
  EXPECT_EQ(story_.steps()[2].times, 2);
  EXPECT_EQ(story_.steps()[2].last_ms, 4000);
  EXPECT_EQ(story_.steps()[2].cause.text, "busy: cpu");
  EXPECT_EQ(story_.steps()[4].nodes, "n1 x2");
  EXPECT_EQ(story_.steps()[4].cause.offset, 6);
  const std::string text = FormatStory(story_, 0, false);
  EXPECT_THAT(text,
              AllOf(HasSubstr("team/train (1), until "),
                    HasSubstr("busy: cpu (2 times until"),
                    HasSubstr("Allocated  "),
                    HasSubstr("on n1 x2"),
                    Not(HasSubstr("other"))));
}

TEST_F(JobStoryTest, NamesTheRecordOfOthersThatMovedAPromise) {
  Submit("1", "train");
  events::v1::JobFact fact = Fact(events::v1::JOB_STATE_PENDING, "Reserved");
  fact.set_start_ms(50'000);
  fact.set_firm(true);
  Decide(fact);
  Envelope gone;
  gone.mutable_node_gone()->set_name("n7");
  Read(gone);
  fact = Fact(events::v1::JOB_STATE_PENDING, "Reserved");
  fact.set_start_ms(70'000);
  fact.mutable_slip()->set_cause(events::v1::Slip::CAUSE_NODE);
  fact.mutable_slip()->set_by("n7");
  Decide(fact);

  ASSERT_EQ(story_.steps().size(), 3);
  EXPECT_EQ(story_.steps()[2].cause.type, "node_gone");
  EXPECT_THAT(story_.steps()[2].cause.text, HasSubstr("n7"));
  const nlohmann::json json = ToJson(story_);
  EXPECT_EQ(json["steps"][1]["firm"], true);
  EXPECT_EQ(json["steps"][2]["moved"], "node n7");
  EXPECT_EQ(json["steps"][2]["startMs"], 70'000);
}

TEST_F(JobStoryTest, OfSeveralOfOneNameItIsTheLast) {
  Submit("1", "train");
  Decide(Fact(events::v1::JOB_STATE_PENDING, "Queued"));
  Submit("2", "train");
  EXPECT_EQ(story_.id(), "2");
  ASSERT_EQ(story_.steps().size(), 1);
}

}  // namespace
}  // namespace fluxqueue::cli
