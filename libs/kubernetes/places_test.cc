#include "libs/kubernetes/places.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/submission.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

TEST(PlacesTest, TheRecordIsReadBack) {
  const Places places{.count = 4,
                      .requests = {{"cpu", 1500}, {"memory", 1408 * kMiB}, {"pods", 1}}};
  EXPECT_EQ(Format(places), "4 cpu=1500m,memory=1408Mi");
  EXPECT_EQ(ParsePlaces("4 cpu=1500m,memory=1408Mi"), places);
  EXPECT_EQ(ParsePlaces("4000"), (Places{.count = 4000, .requests = {{"pods", 1}}}));
  EXPECT_EQ(Format(*ParsePlaces("1 cpu=0")), "1");
}

TEST(PlacesTest, WhatIsNoRecordSaysNothing) {
  for (const char* record : {"",
                             "x",
                             "0 cpu=1",
                             "-1 cpu=1",
                             "4001 cpu=1",
                             "99999999999 cpu=1",
                             "4 cpu",
                             "4 cpu=",
                             "4 cpu=-1",
                             "4 cpu=x",
                             "4 gpu=1",
                             "4 ,cpu=1",
                             "4 cpu=1e30"}) {
    EXPECT_FALSE(ParsePlaces(record)) << record;
  }
}

// The record, or "none".
std::string Executors(const std::string& spec) {
  const auto places = SparkExecutors(json::parse(R"({"spec": )" + spec + "}"));
  return places ? Format(*places) : "none";
}

TEST(PlacesTest, ExecutorsAskForWhatSparkSays) {
  const std::pair<const char*, const char*> rows[] = {
      {"{}", "1 cpu=1,memory=1408Mi"},
      {"[]", "1 cpu=1,memory=1408Mi"},
      {R"({"executor": 7})", "1 cpu=1,memory=1408Mi"},
      {R"({"executor": {"instances": 3, "cores": 2, "memory": "512m"}})", "3 cpu=2,memory=896Mi"},
      {R"({"executor": {"coreRequest": "1200m", "cores": 2}})", "1 cpu=1200m,memory=1408Mi"},
      // A tenth of 8 GiB is more than 384 MiB.
      {R"({"executor": {"memory": "8g"}})", "1 cpu=1,memory=9011Mi"},
      {R"({"executor": {"memory": "8G", "memoryOverhead": "512m"}})", "1 cpu=1,memory=8704Mi"},
      {R"({"executor": {"memory": "1gb", "memoryOverhead": "1024"}})", "1 cpu=1,memory=2Gi"},
      {R"({"executor": {"memory": "1048576k"}})", "1 cpu=1,memory=1408Mi"},
      {R"({"type": "Python", "executor": {"memory": "4g"}})", "1 cpu=1,memory=5734Mi"},
      {R"({"type": "R", "executor": {"memory": "4g"}})", "1 cpu=1,memory=5734Mi"},
      {R"({"type": "Java", "executor": {"memory": "4g"}})", "1 cpu=1,memory=4505Mi"},
      {R"({"type": "Python", "memoryOverheadFactor": "0.2", "executor": {"memory": "4g"}})",
       "1 cpu=1,memory=4915Mi"},
  };
  for (const auto& [spec, record] : rows) EXPECT_EQ(Executors(spec), record) << spec;
}

TEST(PlacesTest, WhatSparkDoesNotTakeHasNoPlaces) {
  for (const char* spec : {R"({"executor": {"instances": 0}})",
                           R"({"executor": {"instances": -1}})",
                           R"({"executor": {"instances": 4001}})",
                           R"({"executor": {"instances": [4]}})",
                           R"({"executor": {"coreRequest": "many"}})",
                           R"({"executor": {"coreRequest": true}})",
                           R"({"executor": {"memory": "4Gi"}})",
                           R"({"executor": {"memory": "1.5g"}})",
                           R"({"executor": {"memory": ""}})",
                           R"({"executor": {"memory": "99999999p"}})",
                           R"({"executor": {"memory": "99999999999999999999"}})",
                           R"({"executor": {"memoryOverhead": "much"}})",
                           R"({"memoryOverheadFactor": "-1"})",
                           R"({"memoryOverheadFactor": "nan"})",
                           R"({"memoryOverheadFactor": "1e9"})"}) {
    EXPECT_EQ(Executors(spec), "none") << spec;
  }
}

Pod Driver(const std::string& places) {
  Pod pod;
  pod.meta.uid = "driver";
  pod.meta.namespace_name = "lab";
  pod.meta.annotations = {{std::string(kPlacesAnnotation), places}};
  pod.spec.containers.emplace_back().requests = {{"cpu", 500}, {"memory", 3 * kMiB}};
  return pod;
}

TEST(PlacesTest, APodAsksForItsPlacesBesideItself) {
  PodDemand demand;
  const auto submitted = SubmissionOf(Driver("4 cpu=1,memory=2Mi"), 1, &demand);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->job_id(), "driver");
  EXPECT_EQ(submitted->workload().kind(), "Pod");
  EXPECT_EQ(submitted->spec().slots(), 5);
  Amounts all;
  for (const auto& amount : submitted->spec().amounts()) {
    all[amount.resource()] = amount.amount();
  }
  EXPECT_EQ(all, (Amounts{{"cpu", 4500}, {"memory", 11 * kMiB}, {"pods", 5}}));
  const auto jobspec = graph::ParseJobspec(submitted->spec().jobspec());
  ASSERT_TRUE(jobspec.ok()) << jobspec.status();
  EXPECT_EQ(jobspec->slots, 5);
  ASSERT_EQ(demand.sets.size(), 2);
  EXPECT_EQ(demand.sets[0], (PodSet{1, {{"cpu", 500}, {"memory", 3 * kMiB}, {"pods", 1}}}));
  EXPECT_EQ(demand.sets[1], (PodSet{4, {{"cpu", 1000}, {"memory", 2 * kMiB}, {"pods", 1}}}));
  EXPECT_EQ(SubmissionOf(Driver("no record"))->spec().slots(), 1);
}

// One that is to be alone on its node.
TEST(PlacesTest, ItsRulesAreNotForPlacesToo) {
  Pod pod = Driver("4 cpu=1");
  pod.meta.labels = {{"app", "spark"}};
  PodTerm& term = pod.spec.apart_from_pods.emplace_back();
  term.pods = LabelSelector{.labels = {{"app", "spark"}}};
  term.topology_key = "kubernetes.io/hostname";
  EXPECT_THAT(Message(SubmissionOf(pod).status()),
              HasSubstr("pods that ask for different amounts"));
}

}  // namespace
}  // namespace fluxqueue::kubernetes
