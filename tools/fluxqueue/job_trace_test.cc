#include "tools/fluxqueue/job_trace.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using job_store::JobEvent;
using ::testing::ElementsAre;

JobEvent Event(int64_t time_ms, const char* state, int64_t attempt, const char* reason = "") {
  return {.version = 0,
          .time_ms = time_ms,
          .state = state,
          .attempt = attempt,
          .reason = reason,
          .message = ""};
}

class JobTraceTest : public ::testing::Test {
 protected:
  void Submitted(int64_t at) {
    Envelope message;
    message.mutable_job_submitted()->set_job_id("j");
    trace_.Fold(message, Millis(at));
  }
  void Cycle(uint64_t id, int64_t from, int64_t until, events::v1::Outcome::Kind kind) {
    Envelope asked;
    asked.mutable_cycle_requested()->set_cycle_id(id);
    asked.mutable_cycle_requested()->add_candidates()->set_job_id("j");
    trace_.Fold(asked, Millis(from));
    Envelope answered;
    answered.mutable_cycle_answered()->set_cycle_id(id);
    auto* outcome = answered.mutable_cycle_answered()->add_outcomes();
    outcome->set_job_id("j");
    outcome->set_kind(kind);
    trace_.Fold(answered, Millis(until));
  }
  void PodEnded(uint32_t slot, int64_t at) {
    Envelope ended;
    ended.mutable_pod_ended()->set_job_id("j");
    ended.mutable_pod_ended()->set_attempt(1);
    ended.mutable_pod_ended()->set_slot(slot);
    ended.mutable_pod_ended()->set_node("n1");
    trace_.Fold(ended, Millis(at));
  }

  // From when on and until when each.
  void Bound(uint32_t attempt, int64_t at, const std::vector<std::pair<int64_t, int64_t>>& pods) {
    Envelope message;
    message.mutable_job_bound()->set_job_id("j");
    message.mutable_job_bound()->set_attempt(attempt);
    for (uint32_t slot = 0; slot < pods.size(); ++slot) {
      auto* pod = message.mutable_job_bound()->add_pods();
      pod->set_slot(slot);
      pod->set_taken_ago(static_cast<uint32_t>(at - pods[slot].first));
      pod->set_bound_ago(static_cast<uint32_t>(at - pods[slot].second));
    }
    trace_.Fold(message, Millis(at));
  }
  // "pod 3 100+20" for each part of the stage: from when on since its beginning, how long.
  std::vector<std::string> PartsOf(const std::string& name) {
    std::vector<std::string> parts;
    const std::vector<Stage> stages = trace_.Stages();
    auto at = std::find_if(
        stages.begin(), stages.end(), [&name](const Stage& stage) { return stage.name == name; });
    if (at == stages.end()) return parts;
    const int64_t from = at->from_ms;
    while (++at != stages.end() && at->within) {
      std::string part = fmt::format(
          "{} {}+{} {}", at->name, at->from_ms - from, at->until_ms - at->from_ms, at->detail);
      parts.push_back(part.substr(0, part.find_last_not_of(' ') + 1));
    }
    return parts;
  }

  JobTrace trace_{{.id = "j", .created_ms = 1000},
                  {Event(1200, "Pending", 1, "Busy"),
                   Event(3200, "Allocated", 1),
                   Event(3400, "Bound", 1),
                   Event(3600, "Running", 1),
                   Event(5000, "Succeeded", 1)}};
};

TEST_F(JobTraceTest, DrawsWhereTheTimeWent) {
  Submitted(1200);
  Cycle(7, 1300, 1400, events::v1::Outcome::KIND_BUSY);
  Cycle(9, 3000, 3200, events::v1::Outcome::KIND_ALLOCATED);
  PodEnded(0, 4800);
  PodEnded(1, 5000);
  EXPECT_EQ(
      DrawWaterfall(trace_.Stages(), 9999, 90, false),
      "STAGE                 AT       TOOK  0                                    4s\n"
      "admission            +0s     0.200s  █\n"
      "in line          +0.200s         2s   ██████████████████                  Busy\n"
      "  cycle 9            +2s     0.200s                   ▬▬                  allocated, try 2\n"
      "binding          +2.200s     0.200s                     ██\n"
      "starting         +2.400s     0.200s                       █\n"
      "running          +2.600s     1.400s                        ████████████\n"
      "  pod 0 on n1    +2.600s     1.200s                        ▬▬▬▬▬▬▬▬▬▬▬\n"
      "  pod 1 on n1    +2.600s     1.400s                        ▬▬▬▬▬▬▬▬▬▬▬▬\n"
      "Succeeded            +4s                                               ◆\n");
}

TEST_F(JobTraceTest, EachPodsBindingHasABar) {
  Bound(1, 3400, {{3210, 3390}, {3300, 3310}});
  Bound(2, 9000, {{8000, 9000}});  // of another attempt
  EXPECT_THAT(PartsOf("binding"), ElementsAre("pod 1 100+10", "pod 0 10+180"));
}

TEST_F(JobTraceTest, OfAWideGangTheLastPodsHaveBarsAndTheOthersOne) {
  std::vector<std::pair<int64_t, int64_t>> pods;
  for (int64_t pod = 0; pod < 19; ++pod) pods.emplace_back(3200 + pod, 3210 + 10 * pod);
  Bound(1, 3400, pods);
  const std::vector<std::string> parts = PartsOf("binding");
  ASSERT_EQ(parts.size(), 17U);
  EXPECT_EQ(parts[0], "3 more pods 0+30 0.010s to 0.028s, median 0.019s");
  EXPECT_EQ(parts[1], "pod 3 3+37");
  EXPECT_EQ(parts[16], "pod 18 18+172");
}

// What retention has cut from the log is missing, the stages are not.
TEST_F(JobTraceTest, TheHistoryAloneGivesTheStages) {
  std::vector<std::string> names;
  for (const Stage& stage : trace_.Stages()) names.push_back(stage.name);
  EXPECT_THAT(names,
              ElementsAre("admission", "in line", "binding", "starting", "running", "Succeeded"));
}

TEST_F(JobTraceTest, EachAttemptHasItsStagesAndTheLastOneLasts) {
  const JobTrace trace({.id = "j", .created_ms = 1000},
                       {Event(1000, "Pending", 1),
                        Event(2000, "Running", 1),
                        Event(3000, "Stopping", 1, "NodeLost"),
                        Event(4000, "Pending", 2)});
  const std::vector<Stage> stages = trace.Stages();
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[2].name, "stopping");
  EXPECT_EQ(stages[2].detail, "NodeLost");
  EXPECT_EQ(stages[3].name, "in line");
  EXPECT_EQ(stages[3].until_ms, 0);
  EXPECT_THAT(DrawWaterfall(stages, 6000, 60, false), ::testing::HasSubstr("2s…"));
}

}  // namespace
}  // namespace fluxqueue::cli
