// Our records (the table of keys) that the maker of an object writes himself.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/labels.h"
#include "services/admission/domain/objects_for_test.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Verdict::Kind;

constexpr const char* kController = "system:serviceaccount:kube-system:cronjob-controller";

// The metadata with every record of ours, and one annotation of its user's.
json Forge(json metadata) {
  metadata["annotations"]["note"] = "mine";
  for (const std::string& key : kubernetes::RecordedKeys()) metadata["annotations"][key] = "x";
  return metadata;
}

json Annotations(const json& metadata) {
  return metadata.value("annotations", json::object());
}

std::string AllKeys() {
  std::vector<std::string> names;
  for (const std::string& key : kubernetes::RecordedKeys()) names.push_back(key.substr(13));
  return fmt::format("annotations of Fluxqueue's (fluxqueue.io/…), taken out: {}",
                     fmt::join(names, ", "));
}

Verdict JudgeBy(const json& object, const char* user) {
  Review review = ReviewOf(object);
  review.user = user;
  return Decide(review, SmallCluster(), {});
}

TEST(WebhookRecordsTest, TakesThemOutAndSaysSo) {
  const json want = {{"note", "mine"}, {"fluxqueue.io/user", "ann"}};
  json pod = PodJson();
  pod["metadata"] = Forge(pod["metadata"]);
  json job = JobJson();
  job["metadata"] = Forge(job["metadata"]);
  job["spec"]["template"]["metadata"] = Forge(job["spec"]["template"]["metadata"]);
  for (const json& object : {pod, job}) {
    const Verdict verdict = JudgeBy(object, "ann");
    ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
    const json held = Patched(object, verdict);
    EXPECT_EQ(Annotations(held["metadata"]), want);
    EXPECT_THAT(verdict.warnings, ElementsAre(AllKeys()));
    // The API server may cut what is longer.
    EXPECT_LE(verdict.warnings[0].size(), 256U);
    const Verdict again = JudgeBy(held, "ann");
    EXPECT_EQ(again.patch, "");
    EXPECT_THAT(again.warnings, IsEmpty());
  }
  const json held = Patched(job, JudgeBy(job, "ann"));
  EXPECT_EQ(Annotations(held["spec"]["template"]["metadata"]), (json{{"note", "mine"}}));
}

TEST(WebhookRecordsTest, TakesThemOutWhereNothingElseIsLeft) {
  json pod = PodJson();
  pod["metadata"]["annotations"] = {{"fluxqueue.io/job-id", "x"}};
  EXPECT_EQ(Annotations(Patched(pod, JudgeBy(pod, "ann"))["metadata"]),
            (json{{"fluxqueue.io/user", "ann"}}));
  EXPECT_EQ(Annotations(Patched(pod, JudgeBy(pod, ""))["metadata"]), json::object());
}

TEST(WebhookRecordsTest, TheGroupOfAPodIsRecordedAsItsKeysSay) {
  json pod = PodJson();
  pod["metadata"]["annotations"] = {{"fluxqueue.io/group", "theirs/2"}};
  EXPECT_EQ(Annotations(Patched(pod, JudgeBy(pod, "ann"))["metadata"]),
            (json{{"fluxqueue.io/user", "ann"}}));
  pod["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                               {"fluxqueue.io/group-size", "4"}};
  const json held = Patched(pod, JudgeBy(pod, "ann"));
  EXPECT_EQ(Annotations(held["metadata"]),
            (json{{"fluxqueue.io/user", "ann"}, {"fluxqueue.io/group", "train/4"}}));
  EXPECT_EQ(JudgeBy(held, "ann").patch, "");
}

TEST(WebhookRecordsTest, ATemplateThatNamesAGroupHasNoRecordOfIt) {
  const json labels = {{"fluxqueue.io/group-name", "train"}, {"fluxqueue.io/group-size", "4"}};
  json root = {{"kind", "StatefulSet"},
               {"metadata", {{"name", "r"}, {"namespace", "work"}}},
               {"spec",
                {{"template",
                  {{"metadata", {{"labels", labels}, {"annotations", {{"note", "mine"}}}}},
                   {"spec", PodJson()["spec"]}}}}}};
  Review review;
  review.operation = "CREATE";
  review.group = "apps";
  review.resource = "statefulsets";
  review.space = "work";
  review.user = "ann";
  review.object = root.dump();
  const Verdict verdict = Decide(review, SmallCluster(), {});
  EXPECT_EQ(Annotations(Patched(root, verdict)["spec"]["template"]["metadata"]),
            (json{{"note", "mine"}, {"fluxqueue.io/user", "ann"}}));
  root["spec"]["podManagementPolicy"] = "OrderedReady";
  review.object = root.dump();
  EXPECT_THAT(Decide(review, SmallCluster(), {}).message,
              HasSubstr("OrderedReady makes a pod once the one before is ready"));
  root["spec"]["podManagementPolicy"] = "Parallel";
  review.object = root.dump();
  EXPECT_EQ(Decide(review, SmallCluster(), {}).kind, Kind::kHold);
}

TEST(WebhookRecordsTest, ControllersAreNotWarned) {
  json job = JobJson();
  job["metadata"] = Forge(job["metadata"]);
  job["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "CronJob"},
                                                     {"name", "c"},
                                                     {"uid", "u"},
                                                     {"controller", true}}});
  const Verdict verdict = JudgeBy(job, kController);
  EXPECT_EQ(Annotations(Patched(job, verdict)["metadata"]),
            (json{{"note", "mine"}, {"fluxqueue.io/user", "namespace:work"}}));
  EXPECT_THAT(verdict.warnings, IsEmpty());
}

TEST(WebhookRecordsTest, ADeadlineThatIsSaidToBeOursCounts) {
  json pod = PodJson();
  pod["metadata"]["labels"] = {{"fluxqueue.io/queue", "night"}};
  pod["metadata"]["annotations"] = {{"fluxqueue.io/deadline", "7200"}};
  pod["spec"]["activeDeadlineSeconds"] = 7200;
  json job = JobJson();
  job["metadata"]["labels"] = pod["metadata"]["labels"];
  job["metadata"]["annotations"] = pod["metadata"]["annotations"];
  job["spec"]["activeDeadlineSeconds"] = 7200;
  for (const json& object : {pod, job}) {
    const Verdict verdict = Judge(object);
    EXPECT_EQ(verdict.kind, Kind::kRefuse);
    EXPECT_THAT(verdict.message, HasSubstr("night"));
  }
}

// What we would suspend ourselves is ours, whoever says so.
TEST(WebhookRecordsTest, AUsersOwnSuspendStaysHis) {
  json job = JobJson("j", 4);
  job["spec"]["suspend"] = true;
  job["metadata"]["annotations"] = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
  const Verdict verdict = JudgeBy(job, "ann");
  const json held = Patched(job, verdict);
  EXPECT_EQ(held["spec"]["suspend"], true);
  EXPECT_EQ(Annotations(held["metadata"]), (json{{"fluxqueue.io/user", "ann"}}));
  EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("taken out: suspended-by")));
}

TEST(WebhookRecordsTest, TakesThemOutOfTemplates) {
  json pod_metadata = Forge(json::object());
  const json deployment = {
      {"kind", "Deployment"},
      {"metadata", Forge({{"name", "r"}, {"namespace", "work"}})},
      {"spec", {{"template", {{"metadata", pod_metadata}, {"spec", PodJson()["spec"]}}}}}};
  json job = {{"metadata", Forge(json::object())}, {"spec", JobJson()["spec"]}};
  job["spec"]["template"]["metadata"] = pod_metadata;
  const json cron = {{"kind", "CronJob"},
                     {"metadata", Forge({{"name", "r"}, {"namespace", "work"}})},
                     {"spec", {{"jobTemplate", job}}}};
  const auto judge = [](const json& root, const char* group, const char* resource) {
    Review review;
    review.operation = "CREATE";
    review.group = group;
    review.resource = resource;
    review.space = "work";
    review.user = "ann";
    review.object = root.dump();
    const Verdict verdict = Decide(review, SmallCluster(), {});
    EXPECT_EQ(verdict.kind, Kind::kHold) << verdict.message;
    EXPECT_THAT(verdict.warnings, ElementsAre(AllKeys()));
    return Patched(root, verdict);
  };
  const json mine = {{"note", "mine"}};
  const json stamped = {{"note", "mine"}, {"fluxqueue.io/user", "ann"}};
  const json made = judge(deployment, "apps", "deployments");
  EXPECT_EQ(Annotations(made["metadata"]), mine);
  EXPECT_EQ(Annotations(made["spec"]["template"]["metadata"]), stamped);
  const json nightly = judge(cron, "batch", "cronjobs");
  EXPECT_EQ(Annotations(nightly["metadata"]), mine);
  const json& inner = nightly["spec"]["jobTemplate"];
  EXPECT_EQ(Annotations(inner["metadata"]), stamped);
  EXPECT_EQ(Annotations(inner["spec"]["template"]["metadata"]), mine);
}

}  // namespace
}  // namespace fluxqueue::admission
