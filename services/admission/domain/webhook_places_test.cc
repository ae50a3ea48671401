// Pods that have places for those that they make, and pods that take one: a Spark driver and its
// executors.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kAccount = "system:serviceaccount:work:spark";
constexpr const char* kApplication =
    R"({"spec": {"executor": {"instances": 2, "cores": 1, "memory": "512m"}}})";

// `token_of`: the uid of the pod whose token he has.
Verdict DecideOn(const json& pod,
                 const std::string& user,
                 std::optional<std::string> places,
                 const std::string& token_of = "") {
  Review review = ReviewOf(pod);
  review.user = user;
  review.user_pod = token_of;
  review.places = std::move(places);
  return Decide(review, SmallCluster(), {});
}
Verdict DecideOnExecutor(const json& pod, std::optional<std::string> places) {
  return DecideOn(pod, kAccount, std::move(places), "uid-p");
}

json DriverJson() {
  json pod = PodJson("pi-driver");
  pod["metadata"]["labels"] = {{"sparkoperator.k8s.io/app-name", "pi"}, {"spark-role", "driver"}};
  pod["spec"]["serviceAccountName"] = "spark";
  return pod;
}

// As it is in the cluster, with places.
json HeldDriver() {
  return Patched(DriverJson(), DecideOn(DriverJson(), "ann", kApplication));
}

json ExecutorJson() {
  json pod = PodJson("pi-exec-1");
  pod["metadata"]["uid"] = "uid-e";
  pod["metadata"]["labels"] = {{"sparkoperator.k8s.io/app-name", "pi"}, {"spark-role", "executor"}};
  pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                     {"kind", "Pod"},
                                                     {"name", "pi-driver"},
                                                     {"uid", "uid-p"},
                                                     {"controller", true}}});
  pod["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", "1"}, {"memory", "896Mi"}};
  return pod;
}

// The annotation as the verdict leaves it, "none", or why it is refused.
std::string Record(const json& pod, const Verdict& verdict, const std::string& key) {
  if (verdict.kind != Verdict::Kind::kHold) return verdict.message;
  return Patched(pod, verdict)["metadata"]
      .value("annotations", json::object())
      .value("fluxqueue.io/" + key, "none");
}

std::string PlaceOf(const json& executor,
                    const json& driver = HeldDriver(),
                    const std::string& token_of = "uid-p") {
  return Record(executor, DecideOn(executor, kAccount, driver.dump(), token_of), "place-of");
}

TEST(WebhookPlacesTest, WhatSaysThePlacesOfADriverIsLookedUp) {
  const Verdict first = DecideOn(DriverJson(), "ann", std::nullopt);
  EXPECT_EQ(first.kind, Verdict::Kind::kRefuse) << "nothing passes without the look";
  ASSERT_TRUE(first.absent.has_value());
  EXPECT_EQ(first.absent->kind, Absent::Kind::kPlaces);
  EXPECT_EQ(first.absent->name, "pi");
  EXPECT_EQ(first.absent->group->plural, "sparkapplications");
}

TEST(WebhookPlacesTest, ADriverHasAPlaceForEachExecutor) {
  const auto places = [](const char* application) {
    return Record(DriverJson(), DecideOn(DriverJson(), "ann", application), "places");
  };
  EXPECT_EQ(places(kApplication), "2 cpu=1,memory=896Mi");
  EXPECT_EQ(places(""), "none") << "it is not there";
  EXPECT_EQ(places(R"({"spec": {"dynamicAllocation": {"enabled": true}}})"), "none");
}

TEST(WebhookPlacesTest, NobodyElseWritesTheRecords) {
  json driver = DriverJson();
  driver["metadata"]["annotations"] = {{"fluxqueue.io/places", "4000 cpu=1000"},
                                       {"fluxqueue.io/place-of", "uid-x"}};
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", kApplication), "places"),
            "2 cpu=1,memory=896Mi");
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", ""), "places"), "none");
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", ""), "place-of"), "none");
  json executor = ExecutorJson();
  executor["metadata"]["annotations"] = {{"fluxqueue.io/place-of", "uid-x"}};
  EXPECT_EQ(PlaceOf(executor), "uid-p");
}

// The same request comes again when another webhook has changed the pod.
TEST(WebhookPlacesTest, WhatItHasMadeNeedsNoPatch) {
  EXPECT_EQ(DecideOn(HeldDriver(), "ann", kApplication).patch, "");
  const std::string driver = HeldDriver().dump();
  const json executor = Patched(ExecutorJson(), DecideOnExecutor(ExecutorJson(), driver));
  EXPECT_EQ(DecideOnExecutor(executor, driver).patch, "");
}

// Its user did not ask for places.
TEST(WebhookPlacesTest, ADriverThatCannotHaveThemIsAJobOfItsOwn) {
  json driver = DriverJson();
  driver["spec"]["affinity"]["podAntiAffinity"] = json::parse(R"({
    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
      "labelSelector": {"matchLabels": {"sparkoperator.k8s.io/app-name": "pi"}}}]})");
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", kApplication), "places"), "none");
}

TEST(WebhookPlacesTest, AnExecutorTakesAPlaceOfItsDriver) {
  const Verdict first = DecideOnExecutor(ExecutorJson(), std::nullopt);
  EXPECT_EQ(first.kind, Verdict::Kind::kRefuse);
  ASSERT_TRUE(first.absent.has_value());
  EXPECT_EQ(first.absent->name, "pi-driver");
  EXPECT_EQ(first.absent->group, nullptr);
  const json held = Patched(ExecutorJson(), DecideOnExecutor(ExecutorJson(), HeldDriver().dump()));
  EXPECT_EQ(held["metadata"]["annotations"]["fluxqueue.io/place-of"], "uid-p");
  EXPECT_EQ(held["metadata"]["annotations"]["fluxqueue.io/user"], kAccount);
  EXPECT_EQ(held["metadata"]["labels"]["fluxqueue.io/held"], "direct");
  EXPECT_EQ(held["spec"]["schedulerName"], "fluxqueue");
}

TEST(WebhookPlacesTest, AnotherPodIsAJobOfItsOwn) {
  EXPECT_EQ(PlaceOf(ExecutorJson(), HeldDriver(), ""), "none") << "of a person";
  EXPECT_EQ(PlaceOf(ExecutorJson(), HeldDriver(), "uid-x"), "none")
      << "of another pod with the same account";
  json driver = HeldDriver();
  driver["metadata"]["uid"] = "uid-before";
  EXPECT_EQ(PlaceOf(ExecutorJson(), driver), "none") << "of a driver of the same name";
  driver = HeldDriver();
  driver["metadata"]["annotations"].erase("fluxqueue.io/places");
  EXPECT_EQ(PlaceOf(ExecutorJson(), driver), "none");
  driver = HeldDriver();
  driver["metadata"]["labels"].erase("fluxqueue.io/held");
  EXPECT_EQ(PlaceOf(ExecutorJson(), driver), "none") << "the policies keep no such record";
  driver = HeldDriver();
  driver["status"]["phase"] = "Failed";
  EXPECT_EQ(PlaceOf(ExecutorJson(), driver), "none");
  EXPECT_EQ(Record(ExecutorJson(), DecideOnExecutor(ExecutorJson(), ""), "place-of"), "none");
}

TEST(WebhookPlacesTest, AnExecutorThatFitsNoPlaceIsAJobOfItsOwn) {
  json executor = ExecutorJson();
  executor["spec"]["containers"][0]["resources"]["requests"]["memory"] = "897Mi";
  EXPECT_EQ(PlaceOf(executor), "none");
  executor = ExecutorJson();
  executor["spec"]["priority"] = 1;
  EXPECT_EQ(PlaceOf(executor), "none") << "its driver has none";
  executor = ExecutorJson();
  executor["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  EXPECT_EQ(PlaceOf(executor), "none") << "its driver may run anywhere";
  json driver = DriverJson();
  driver["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  driver = Patched(driver, DecideOn(driver, "ann", kApplication));
  EXPECT_EQ(PlaceOf(executor, driver), "uid-p");
  executor = ExecutorJson();
  executor["spec"]["schedulingGates"] = json::array({{{"name", "example.com/later"}}});
  EXPECT_EQ(PlaceOf(executor), "none");
}

// There the records could be written past the webhook.
TEST(WebhookPlacesTest, NoneHasPlacesWhereAPodMayGoPastTheWebhook) {
  json driver = DriverJson();
  driver["metadata"]["namespace"] = "free";
  driver["metadata"]["labels"]["fluxqueue.io/queue"] = "default";
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", kApplication), "places"), "none");
}

TEST(WebhookPlacesTest, WhatIsNoNameOfAnApplicationSaysNothing) {
  json driver = DriverJson();
  driver["metadata"]["labels"]["sparkoperator.k8s.io/app-name"] = "My_App";
  EXPECT_EQ(Record(driver, DecideOn(driver, "ann", std::nullopt), "places"), "none");
}

TEST(WebhookPlacesTest, OnlyPodsHavePlaces) {
  json job = JobJson();
  job["spec"]["template"]["metadata"]["labels"] = DriverJson()["metadata"]["labels"];
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  EXPECT_FALSE(verdict.absent.has_value());
}

}  // namespace
}  // namespace fluxqueue::admission
