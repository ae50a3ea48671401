#include "services/queue/domain/flux_job_view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::queue {
namespace {

using json = nlohmann::json;

events::v1::JobFact RunningFact() {
  events::v1::JobFact fact;
  fact.set_job_id("uid-1");
  fact.set_version(4);
  fact.set_pool("default");
  fact.set_queue("default");
  fact.set_state(events::v1::JOB_STATE_RUNNING);
  fact.set_attempt(1);
  fact.set_slots(3);
  fact.set_created_ms(1769860800000);
  fact.set_time_ms(1769860801500);
  fact.set_start_ms(1769860801500);
  fact.set_duration_ms(90000);
  events::v1::Workload* workload = fact.mutable_workload();
  workload->set_api_version("batch/v1");
  workload->set_kind("Job");
  workload->set_namespace_("demo");
  workload->set_name("hello");
  workload->set_uid("uid-1");
  return fact;
}

FluxJobDetails ThreeSlots() {
  FluxJobDetails details;
  details.jobspec = R"({"version":1})";
  details.slots = {{0, "node-3"}, {1, "node-3"}, {2, "node-4"}};
  details.transitions = {{"Pending", "", 1769860800100, 1}, {"Allocated", "", 1769860800200, 1}};
  return details;
}

TEST(FluxJobViewTest, TheObjectIsOwnedByTheWorkload) {
  const json object = json::parse(FluxJobObject(RunningFact(), 0, ThreeSlots()));
  EXPECT_EQ(object["metadata"]["name"], "job-hello");
  EXPECT_EQ(object["metadata"]["namespace"], "demo");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  EXPECT_EQ(object["spec"]["jobspec"]["version"], 1);
  EXPECT_EQ(object["spec"]["duration"], "90s");
  EXPECT_EQ(object["status"]["state"], "Running");
  EXPECT_EQ(object["status"]["start"], "2026-01-31T12:00:01Z");
  EXPECT_EQ(object["status"]["nodes"], "node-3…node-4 (2)");
  EXPECT_EQ(object["status"]["allocation"],
            json::parse(R"([{"node":"node-3","slots":[0,1]},{"node":"node-4","slots":[2]}])"));
  EXPECT_EQ(object["status"]["transitions"].size(), 2);
  EXPECT_FALSE(object["status"].contains("position")) << "a running job stands in no line";
}

TEST(FluxJobViewTest, ThatOfAGroupGoesWithItsFirstPod) {
  events::v1::JobFact fact = RunningFact();
  events::v1::Workload* workload = fact.mutable_workload();
  workload->set_api_version("fluxqueue.io/v1");
  workload->set_kind("PodGroup");
  workload->set_name("train");
  workload->set_leader("train-0");
  const json object = json::parse(FluxJobObject(fact, 0, ThreeSlots()));
  EXPECT_EQ(object["metadata"]["name"], "podgroup-train");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0],
            (json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "train-0"}, {"uid", "uid-1"}}));
  EXPECT_EQ(object["spec"]["workload"]["kind"], "PodGroup");
  fact.set_reason("Overran");
  const json event = json::parse(EventObject(fact));
  EXPECT_EQ(event["regarding"]["kind"], "Pod");
  EXPECT_EQ(event["regarding"]["name"], "train-0");
}

// Behind a line of jobs that say they last a century.
TEST(FluxJobViewTest, AStartThatNobodyCouldReadIsTheLastThatCanBeWritten) {
  events::v1::JobFact fact = RunningFact();
  fact.set_start_ms(400'000'000'000'000);
  EXPECT_EQ(json::parse(FluxJobObject(fact, 0, ThreeSlots()))["status"]["start"],
            "9999-12-31T23:59:59Z");
}

TEST(FluxJobViewTest, AnExpectedStartIsFirmOrAForecast) {
  events::v1::JobFact fact = RunningFact();
  EXPECT_FALSE(json::parse(FluxJobObject(fact, 0, {}))["status"].contains("promise"));
  fact.set_state(events::v1::JOB_STATE_PENDING);
  EXPECT_EQ(json::parse(FluxJobObject(fact, 1, {}))["status"]["promise"], "Forecast");
  fact.set_firm(true);
  EXPECT_EQ(json::parse(FluxJobObject(fact, 1, {}))["status"]["promise"], "Firm");
  fact.set_start_ms(0);
  EXPECT_TRUE(json::parse(FluxJobPatch(fact, 1, {}, "7"))["status"]["promise"].is_null());
}

TEST(FluxJobViewTest, AnElasticJobShowsWhatItHoldsAndTheMost) {
  events::v1::JobFact fact = RunningFact();
  EXPECT_EQ(json::parse(FluxJobObject(fact, 0, ThreeSlots()))["status"]["slots"], "3");
  fact.set_min_slots(2);
  fact.set_max_slots(8);
  const json object = json::parse(FluxJobObject(fact, 0, ThreeSlots()));
  EXPECT_EQ(object["status"]["slots"], "3/8");
  EXPECT_EQ(object["spec"]["slots"], 8);
  EXPECT_EQ(object["spec"]["minSlots"], 2);
}

TEST(FluxJobViewTest, ThePatchTakesAwayWhatNoLongerHolds) {
  events::v1::JobFact fact = RunningFact();
  fact.set_state(events::v1::JOB_STATE_PENDING);
  fact.set_start_ms(0);
  const json patch = json::parse(FluxJobPatch(fact, 2, {}, "7"));
  EXPECT_EQ(patch["metadata"]["ownerReferences"],
            json::parse(FluxJobObject(fact, 2, {}))["metadata"]["ownerReferences"]);
  EXPECT_TRUE(patch["status"]["start"].is_null());
  EXPECT_TRUE(patch["status"]["nodes"].is_null());
  EXPECT_TRUE(patch["status"]["allocation"].is_null());
  EXPECT_EQ(patch["status"]["position"], 2);
  EXPECT_FALSE(patch["spec"].contains("jobspec"))
      << "an unknown jobspec must not take a known away";
}

TEST(FluxJobViewTest, ALongMessageIsCutAtACharacter) {
  events::v1::JobFact fact = RunningFact();
  for (int i = 0; i < 2000; ++i) fact.mutable_message()->append("€");
  const std::string message = json::parse(FluxJobPatch(fact, 0, {}, "7"))["status"]["message"];
  EXPECT_LE(message.size(), 4096);
  EXPECT_TRUE(message.ends_with("€…"));
}

TEST(FluxJobViewTest, EventsOnlyForWhatAPersonMustKnow) {
  EXPECT_EQ(EventObject(RunningFact()), "");
  events::v1::JobFact refused = RunningFact();
  refused.set_state(events::v1::JOB_STATE_REJECTED);
  refused.set_message("cpu: a slot needs 64000, the largest node has 8000");
  const json event = json::parse(EventObject(refused));
  EXPECT_EQ(event["reason"], "Refused");
  EXPECT_EQ(event["regarding"]["uid"], "uid-1");
  EXPECT_EQ(event["note"], "cpu: a slot needs 64000, the largest node has 8000");
  EXPECT_EQ(event["eventTime"], "2026-01-31T12:00:01.500000Z");
  refused.mutable_workload()->set_kind("Claim");
  EXPECT_EQ(EventObject(refused), "") << "no object stands behind a claim";
}

TEST(FluxJobViewTest, AnEventWhereASlotIsLost) {
  events::v1::JobFact lost = RunningFact();
  lost.set_reason("SlotLost");
  lost.set_message("node n1 is cordoned: 1 of its 3 slots is looked for elsewhere");
  const json event = json::parse(EventObject(lost));
  EXPECT_EQ(event["reason"], "SlotLost");
  EXPECT_EQ(event["note"], lost.message());
  lost.set_reason("SlotMissing");
  EXPECT_EQ(EventObject(lost), "") << "its FluxJob says so";
}

TEST(FluxJobViewTest, TheEventOfAStepSaysWhatAPersonAsks) {
  events::v1::JobFact fact = RunningFact();
  fact.set_attempt(2);
  FluxJobDetails details;
  details.slots = {{0, "node-3"}, {1, "node-4"}};
  const json event = json::parse(StepEventObject(JobStep::kBound, fact, 0, details));
  EXPECT_EQ(event["metadata"]["name"], "uid-1.2-bound");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["reason"], "Bound");
  EXPECT_EQ(event["note"], "on node-3…node-4 (2)");

  fact.set_state(events::v1::JOB_STATE_PENDING);
  fact.set_queue("default");
  fact.set_message("waits for 3 cores");
  EXPECT_EQ(json::parse(StepEventObject(JobStep::kQueued, fact, 12, {}))["note"],
            "place 12 in queue default: waits for 3 cores");
  fact.set_start_ms(1'769'860'800'000);
  EXPECT_EQ(json::parse(StepEventObject(JobStep::kReserved, fact, 0, {}))["note"],
            "starts by 2026-01-31T12:00:00Z, in queue default: waits for 3 cores");
}

}  // namespace
}  // namespace fluxqueue::queue
