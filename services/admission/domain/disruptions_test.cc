// Disruptions that do not count against a Job's backoffLimit: the rule that a Job may ask for, and
// the warning to one that does not.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = Verdict::Kind;

const json kIgnore = json::parse(
    R"({"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]})");

TEST(DisruptionsTest, GivesAJobThatAsksTheRuleThatIgnoresDisruptions) {
  const json job = AsksToIgnoreDisruptions();
  const Verdict verdict = Judge(job);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  const json held = Patched(job, verdict);
  EXPECT_EQ(held["spec"]["podFailurePolicy"], json({{"rules", json::array({kIgnore})}}));
  // The API server takes nothing else with a podFailurePolicy.
  EXPECT_EQ(held["spec"]["podReplacementPolicy"], "Failed");
  EXPECT_EQ(Judge(held).patch, "");
  // Where the API server does not know podReplacementPolicy.
  json old = job;
  old["spec"].erase("podReplacementPolicy");
  EXPECT_FALSE(Patched(old, Judge(old))["spec"].contains("podReplacementPolicy"));
}

TEST(DisruptionsTest, GivesNoOtherJobThatRule) {
  for (const json& job : {JobJson(), AsksToIgnoreDisruptions("false")}) {
    EXPECT_FALSE(Patched(job, Judge(job))["spec"].contains("podFailurePolicy"));
  }
  json has_one = AsksToIgnoreDisruptions();
  const json fail =
      json::parse(R"({"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}})");
  has_one["spec"]["podFailurePolicy"]["rules"] = json::array({kIgnore, fail});
  has_one["spec"]["podReplacementPolicy"] = "Failed";
  EXPECT_EQ(Patched(has_one, Judge(has_one))["spec"]["podFailurePolicy"],
            has_one["spec"]["podFailurePolicy"]);
}

TEST(DisruptionsTest, TheRuleComesBeforeTheUsersOwn) {
  json job = AsksToIgnoreDisruptions();
  const json fail =
      json::parse(R"({"action":"FailJob","onExitCodes":{"operator":"NotIn","values":[0]}})");
  job["spec"]["podFailurePolicy"]["rules"] = json::array({fail});
  job["spec"]["podReplacementPolicy"] = "Failed";
  const json held = Patched(job, Judge(job));
  EXPECT_EQ(held["spec"]["podFailurePolicy"]["rules"], json::array({kIgnore, fail}));
  EXPECT_EQ(Judge(held).patch, "");
  // Also where one stands behind, and the other may match the same pod.
  job["spec"]["podFailurePolicy"]["rules"] = json::array({fail, kIgnore});
  EXPECT_EQ(Patched(job, Judge(job))["spec"]["podFailurePolicy"]["rules"],
            json::array({kIgnore, fail, kIgnore}));
  job["spec"]["podFailurePolicy"]["rules"] = nullptr;
  EXPECT_EQ(Patched(job, Judge(job))["spec"]["podFailurePolicy"]["rules"], json::array({kIgnore}));
}

// A tree of queues: lab (a, b), and other; all of priority 0.
ClusterFacts WithTree() {
  ClusterFacts facts = SmallCluster();
  const std::vector<std::pair<const char*, const char*>> queues = {
      {"lab", ""}, {"a", "lab"}, {"b", "lab"}, {"other", ""}};
  for (const auto& [name, parent] : queues) {
    kubernetes::FluxQueue queue;
    queue.meta.name = name;
    queue.parent = parent;
    facts.Upsert(queue);
  }
  return facts;
}

json ControlledJob(const char* queue) {
  json job = JobJson();
  job["metadata"]["labels"] = {{"fluxqueue.io/queue", queue}};
  job["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                                                     {"kind", "JobSet"},
                                                     {"name", "s"},
                                                     {"uid", "u-s"},
                                                     {"controller", true}}});
  return job;
}

TEST(DisruptionsTest, WarnsOfTheBackoffLimitWhereTheQueuesAllowPodsToBeStopped) {
  struct Row {
    const char* name;
    const char* queue;  // that stops others
    bool by_priority;
    int32_t priority;
    const char* pool;
    bool warns;  // of a Job in queue a
  };
  const std::vector<Row> rows = {
      {"none", "b", false, 0, "", false},
      {"its own queue", "a", true, 0, "", true},
      {"a sibling of the same priority", "b", true, 0, "", false},
      {"a sibling of a higher priority", "b", true, 1, "", true},
      {"a sibling of another pool", "b", true, 1, "gpus", false},
      {"one whose parent is a sibling of the queue's parent", "other", true, 1, "", true},
      {"a lower one", "other", true, -1, "", false},
      {"one above", "lab", true, 1, "", false},
  };
  for (const Row& row : rows) {
    ClusterFacts facts = WithTree();
    kubernetes::FluxQueue queue = *facts.FindQueue(row.queue);
    queue.preempts_by_priority = row.by_priority;
    queue.priority = row.priority;
    queue.pool = row.pool;
    facts.Upsert(queue);
    const Verdict verdict = Judge(ControlledJob("a"), facts);
    ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
    EXPECT_EQ(verdict.warnings.empty(), !row.warns) << row.name;
    if (!row.warns || verdict.warnings.empty()) continue;
    EXPECT_THAT(verdict.warnings[0], HasSubstr("counts against backoffLimit"));
    EXPECT_THAT(verdict.warnings[0], HasSubstr("fluxqueue.io/ignore-disruptions=true"));
    EXPECT_LE(verdict.warnings[0].size(), 256) << "the API server shortens what is longer";
  }
  ClusterFacts facts = WithTree();
  kubernetes::FluxQueue reclaims = *facts.FindQueue("b");
  reclaims.preempts_to_reclaim = true;
  facts.Upsert(reclaims);
  EXPECT_EQ(Judge(ControlledJob("a"), facts).warnings.size(), 1);
  EXPECT_TRUE(Judge(ControlledJob("b"), facts).warnings.empty()) << "it reclaims, from others";
}

TEST(DisruptionsTest, DoesNotWarnOfTheBackoffLimitWhereNothingIsToBeSaid) {
  ClusterFacts facts = WithTree();
  kubernetes::FluxQueue queue = *facts.FindQueue("a");
  queue.preempts_by_priority = true;
  facts.Upsert(queue);
  ASSERT_EQ(Judge(ControlledJob("a"), facts).warnings.size(), 1);
  // It is suspended.
  json job = ControlledJob("a");
  job["metadata"].erase("ownerReferences");
  EXPECT_TRUE(Judge(job, facts).warnings.empty());
  // It has said what it wants.
  for (const char* value : {"true", "false"}) {
    job = ControlledJob("a");
    job["metadata"]["annotations"] = {{"fluxqueue.io/ignore-disruptions", value}};
    EXPECT_TRUE(Judge(job, facts).warnings.empty()) << value;
  }
  job = ControlledJob("a");
  job["spec"]["podFailurePolicy"]["rules"] = json::array({kIgnore});
  EXPECT_TRUE(Judge(job, facts).warnings.empty());
}

}  // namespace
}  // namespace fluxqueue::admission
