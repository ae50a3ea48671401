#include "libs/kubernetes/group_table.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/names.h"

#include "fmt/format.h"

namespace fluxqueue::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const StringMap kNone;

// "NAME/SIZE", "NAME by RESOURCE OBJECT", "none", or why not.
std::string Asked(const StringMap& labels, const StringMap& annotations = {}) {
  const auto asked = GroupTable::Known().Asked({labels, annotations});
  if (!asked.ok()) return Message(asked.status());
  if (!asked->has_value()) return "none";
  const auto& [group, objects, object] = **asked;
  if (objects == nullptr) return fmt::format("{}/{}", group.name, group.size);
  const Resource resource = objects->resource();
  return fmt::format("{} by {}.{} {}", group.name, resource.plural, resource.group, object);
}

// What the object of the row that these labels name says: "SIZE", or why not.
std::string Size(const StringMap& labels, const std::string& object) {
  const auto asked = GroupTable::Known().Asked({labels, kNone});
  if (!asked.ok() || !asked->has_value() || (*asked)->objects == nullptr) return "no object";
  const auto size = (*asked)->objects->SizeIn(object);
  return size.ok() ? fmt::format("{}", *size) : Message(size.status());
}

TEST(GroupTableTest, PodsThatSayTheSizeThemselves) {
  EXPECT_EQ(Asked({{"fluxqueue.io/group-name", "train"}, {"fluxqueue.io/group-size", "4"}}),
            "train/4");
  EXPECT_EQ(Asked({{"fluxqueue.io/group-name", "train"}}, {{"fluxqueue.io/group-size", "4"}}),
            "train/4");
  EXPECT_EQ(Asked({{"leaderworkerset.sigs.k8s.io/name", "llm"},
                   {"leaderworkerset.sigs.k8s.io/group-index", "2"}},
                  {{"leaderworkerset.sigs.k8s.io/size", "8"}}),
            "llm-2/8");
  EXPECT_EQ(Asked({{"scheduling.x-k8s.io/pod-group", "g"}, {"fluence.group-size", "3"}}), "g/3");
  EXPECT_EQ(Asked({{"fluxnetes.group-name", "g"}, {"fluxnetes.group-size", "3"}}), "g/3");
  EXPECT_EQ(Asked({{"kueue.x-k8s.io/pod-group-name", "g"}},
                  {{"kueue.x-k8s.io/pod-group-total-count", "3"}}),
            "g/3");
  EXPECT_EQ(Asked({{"fluxnetes.group-name", "g"}, {"fluxnetes.group-size", "1"}}), "none");
  EXPECT_EQ(Asked({{"fluxnetes.group-name", "g"}}), "none");
  EXPECT_EQ(Asked({{"app", "web"}}), "none");
}

TEST(GroupTableTest, PodsOfWhichAnObjectSaysTheSize) {
  EXPECT_EQ(Asked({{"scheduling.x-k8s.io/pod-group", "g"}}),
            "g by podgroups.scheduling.x-k8s.io g");
  EXPECT_EQ(Asked({}, {{"scheduling.k8s.io/group-name", "g"}}),
            "g by podgroups.scheduling.volcano.sh g");
  EXPECT_EQ(Asked({{"jobset.sigs.k8s.io/jobset-name", "set"},
                   {"jobset.sigs.k8s.io/restart-attempt", "1"}}),
            "set-1 by jobsets.jobset.x-k8s.io set")
      << "each attempt is a gang of its own";
  EXPECT_EQ(Asked({{"training.kubeflow.org/job-name", "train"},
                   {"training.kubeflow.org/operator-name", "mpi-operator"}}),
            "train by mpijobs.kubeflow.org train");
  EXPECT_EQ(Asked({{"training.kubeflow.org/job-name", "train"},
                   {"training.kubeflow.org/operator-name", "pytorchjob-controller"}}),
            "train by pytorchjobs.kubeflow.org train");
  EXPECT_EQ(Asked({{"training.kubeflow.org/job-name", "train"}}), "none") << "of which operator?";
  EXPECT_EQ(Asked({{"ray.io/cluster", "ray"}, {"ray.io/is-ray-node", "yes"}}),
            "ray by rayclusters.ray.io ray");
  EXPECT_EQ(Asked({{"ray.io/cluster", "ray"}}), "none") << "a submitter is no node of it";
}

TEST(GroupTableTest, WhatThePodsSayThemselvesComesFirst) {
  EXPECT_EQ(Asked({{"fluxqueue.io/group-name", "mine"},
                   {"fluxqueue.io/group-size", "2"},
                   {"scheduling.x-k8s.io/pod-group", "g"}}),
            "mine/2");
}

TEST(GroupTableTest, ASizeIsReadOffAnObject) {
  const StringMap pod_group = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(Size(pod_group, R"({"spec":{"minMember":5}})"), "5");
  EXPECT_EQ(Size(pod_group, R"({"spec":{}})"), "1");
  EXPECT_EQ(Size(pod_group, R"({"spec":{"minMember":0}})"), "0");
  EXPECT_EQ(Size(pod_group, R"({"spec":{"minMember":-3}})"), "0");
  EXPECT_THAT(Size(pod_group, R"({"spec":{"minMember":"five"}})"), HasSubstr("/spec/minMember"));
  EXPECT_THAT(Size(pod_group, R"({"spec":{"minMember":9223372036854775807}})"),
              HasSubstr("4000 pods"));
  EXPECT_THAT(Size(pod_group, "]"), HasSubstr("podgroups"));

  const StringMap ray = {{"ray.io/cluster", "ray"}, {"ray.io/is-ray-node", "yes"}};
  EXPECT_EQ(Size(ray, R"({"spec":{"workerGroupSpecs":[{"replicas":3},
                                                      {"replicas":2,"numOfHosts":4}]}})"),
            "12")
      << "the head, three workers, and two of four hosts";
  EXPECT_EQ(Size(ray, R"({"spec":{}})"), "1");

  const StringMap mpi = {{"training.kubeflow.org/job-name", "train"},
                         {"training.kubeflow.org/operator-name", "mpi-operator"}};
  EXPECT_EQ(Size(mpi, R"({"spec":{"mpiReplicaSpecs":{"Launcher":{},"Worker":{"replicas":4}}}})"),
            "5");
}

TEST(GroupTableTest, AJobSetHasThePodsThatRunAtOnce) {
  const StringMap jobset = {{"jobset.sigs.k8s.io/jobset-name", "set"},
                            {"jobset.sigs.k8s.io/restart-attempt", "0"}};
  const auto size = [&](const std::string& spec) {
    return Size(jobset, fmt::format(R"({{"spec":{}}})", spec));
  };
  EXPECT_EQ(size(R"({"replicatedJobs":[
              {"replicas":1,"template":{"spec":{}}},
              {"replicas":2,"template":{"spec":{"parallelism":4,"completions":4}}},
              {"template":{"spec":{"parallelism":8,"completions":3}}}]})"),
            "12");
  EXPECT_EQ(size(R"({"replicatedJobs":[{"replicas":100000,
                     "template":{"spec":{"parallelism":100000}}}]})"),
            "0")
      << "each of its Jobs is a job, as its user asked for no gang";
}

TEST(GroupTableTest, PodsThatAreMadeOneAfterTheOtherAreNoGang) {
  const StringMap jobset = {{"jobset.sigs.k8s.io/jobset-name", "set"},
                            {"jobset.sigs.k8s.io/restart-attempt", "0"}};
  EXPECT_EQ(Size(jobset, R"({"spec":{"startupPolicy":{"startupPolicyOrder":"InOrder"},
                                     "replicatedJobs":[{"replicas":2},{"replicas":2}]}})"),
            "0");
  EXPECT_EQ(Size(jobset, R"({"spec":{"startupPolicy":{"startupPolicyOrder":"AnyOrder"},
                                     "replicatedJobs":[{"replicas":2},{"replicas":2}]}})"),
            "4");
  EXPECT_EQ(Size(jobset, R"({"spec":{"replicatedJobs":[
                               {"name":"a"}, {"name":"b","dependsOn":[{"name":"a"}]}]}})"),
            "0");
  EXPECT_EQ(Size(jobset, R"({"spec":{"replicatedJobs":[{"name":"a","dependsOn":[]},{}]}})"), "2");
  EXPECT_EQ(Size(jobset, R"({"spec":{"replicatedJobs":[{},{"template":{"spec":
                               {"parallelism":4,"completions":10}}}]}})"),
            "0");
  EXPECT_EQ(Size(jobset, R"({"metadata":{"annotations":
                               {"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"}},
                             "spec":{"replicatedJobs":[{},{}]}})"),
            "0")
      << "its followers are made once their leader has a node";
}

TEST(GroupTableTest, ABadKeyIsRefusedWithWhatIsAllowed) {
  EXPECT_THAT(Asked({{"fluxqueue.io/group-name", "g"}}), HasSubstr("fluxqueue.io/group-size"));
  EXPECT_THAT(Asked({{"fluxqueue.io/group-size", "4"}}), HasSubstr("fluxqueue.io/group-name"));
  for (const char* size : {"0", "-1", "4001", "four", "", "4 "}) {
    EXPECT_THAT(Asked({{"fluxqueue.io/group-name", "g"}, {"fluxqueue.io/group-size", size}}),
                AllOf(HasSubstr(fmt::format("\"{}\"", size)), HasSubstr("allowed are 1 to 4000")));
  }
  EXPECT_THAT(Asked({{"fluxqueue.io/group-name", "a/b"}, {"fluxqueue.io/group-size", "2"}}),
              AllOf(HasSubstr("a/b"), HasSubstr("allowed")));
}

TEST(GroupTableTest, NamesOfOthersMayBeAnyText) {
  const auto name = [](const std::string& text) {
    const auto asked =
        GroupTable::Known().Asked({StringMap{{"scheduling.k8s.io/group-name", text}}, kNone});
    return asked.ok() && asked->has_value() ? (*asked)->group.name : "none";
  };
  EXPECT_EQ(name("train"), "train");
  const std::string dotted = name("My_Group.1");
  EXPECT_THAT(dotted, HasSubstr("my-group-1"));
  EXPECT_TRUE(IsDnsLabel(dotted)) << dotted;
  EXPECT_NE(dotted, name("my_group.1"));
  const std::string longest = name(std::string(253, 'x'));
  EXPECT_TRUE(IsDnsLabel(longest)) << longest;
}

TEST(GroupTableTest, PodsThatDidNotAskForAGangNeedNotBeOne) {
  const auto or_each = [](const StringMap& labels) {
    const auto asked = GroupTable::Known().Asked({labels, kNone});
    return asked.ok() && asked->has_value() && (*asked)->group.or_each;
  };
  EXPECT_FALSE(or_each({{"scheduling.x-k8s.io/pod-group", "g"}}));
  EXPECT_FALSE(or_each({{"fluxqueue.io/group-name", "g"}, {"fluxqueue.io/group-size", "2"}}));
  EXPECT_TRUE(or_each({{"ray.io/cluster", "ray"}, {"ray.io/is-ray-node", "yes"}}));
}

TEST(GroupTableTest, AnInstallationAddsRows) {
  const auto table = GroupTable::With(
      "[{name: [example.com/set], object: {group: example.com, version: v1, resource: sets}, "
      "pods: [{times: [/spec/size]}]}]");
  ASSERT_TRUE(table.ok()) << table.status();
  const auto asked = table->Asked({StringMap{{"example.com/set", "a"}}, kNone});
  ASSERT_TRUE(asked.ok() && asked->has_value());
  EXPECT_EQ((*asked)->objects->SizeIn(R"({"spec":{"size":7}})").value(), 7U);
  EXPECT_TRUE(
      table->Asked({StringMap{{"fluxnetes.group-name", "g"}, {"fluxnetes.group-size", "3"}}, kNone})
          ->has_value())
      << "ours are there, too";
  const OwnerReference owner{"apps/v1", "StatefulSet", "db", "u-1", true};
  const auto owned = table->Asked(
      {.labels = StringMap{{"example.com/set", "a"}}, .annotations = kNone, .owner = &owner});
  ASSERT_TRUE(owned.ok() && owned->has_value());
  EXPECT_EQ((*owned)->objects->plural, "sets") << "what all pods of an owner are comes last";
}

TEST(GroupTableTest, ABadRowIsNamed) {
  const auto problem = [](const std::string& rows) {
    const auto table = GroupTable::With(rows);
    return table.ok() ? "" : Message(table.status());
  };
  EXPECT_THAT(problem("[{name: [a], size: b}, {size: b}]"), HasSubstr("row 2"));
  EXPECT_THAT(problem("[{name: [], size: b}]"), HasSubstr("name"));
  EXPECT_THAT(problem("[{name: [a]}]"), HasSubstr("one of size and object"));
  EXPECT_THAT(problem("[{name: [a], size: b, sice: c}]"),
              AllOf(HasSubstr("'sice'"), HasSubstr("allowed are name, field, owner")));
  const std::string object = "object: {group: g, version: v1, resource: r}";
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}}}]", object)), HasSubstr("pods: wanted"));
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}, pods: [{{times: [spec/a]}}]}}]", object)),
              AllOf(HasSubstr("'spec/a' is no path"), HasSubstr("/spec/replicas")));
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}, pods: [{{count: 0}}]}}]", object)),
              HasSubstr("allowed are 1 to 4000"));
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}, pods: [{{}}], else: all}}]", object)),
              HasSubstr("allowed is each"));
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}, places: flink}}]", object)),
              HasSubstr("allowed is spark"));
  EXPECT_THAT(problem(fmt::format("[{{name: [a], {}, places: spark, pods: [{{}}]}}]", object)),
              HasSubstr("or places instead"));
  EXPECT_THAT(problem("]"), HasSubstr("line 1"));
}

TEST(GroupTableTest, KubernetesOwnPodGroupsAreGangs) {
  const auto asked =
      GroupTable::Known().Asked({.labels = kNone, .annotations = kNone, .pod_group = "train.0"});
  ASSERT_TRUE(asked.ok() && asked->has_value());
  EXPECT_EQ((*asked)->object, "train.0");
  EXPECT_TRUE(IsDnsLabel((*asked)->group.name));
  const GroupObjects& groups = *(*asked)->objects;
  EXPECT_EQ(groups.plural, "podgroups");
  EXPECT_EQ(*groups.SizeIn(R"({"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}})"), 4u);
  EXPECT_EQ(*groups.SizeIn(R"({"spec": {"schedulingPolicy": {"basic": {}}}})"), 1u);
}

TEST(GroupTableTest, AnAppWrapperHasThePodSetsOfAllItsComponents) {
  const auto asked =
      GroupTable::Known().Asked({StringMap{{"workload.codeflare.dev/appwrapper", "w"}}, kNone});
  ASSERT_TRUE(asked.ok() && asked->has_value());
  const GroupObjects& wrappers = *(*asked)->objects;
  EXPECT_EQ(*wrappers.SizeIn(R"({"status": {"componentStatus": [
      {"podSets": [{"replicas": 2, "path": "a"}, {"path": "b"}]}, {"name": "a Service"},
      {"podSets": [{"replicas": 3, "path": "c"}]}]}})"),
            6u);
  EXPECT_EQ(*wrappers.SizeIn(R"({"spec": {"components": []}})"), 0u);
}

TEST(GroupTableTest, ASparkDriverHasPlacesForItsExecutors) {
  const StringMap driver = {{"sparkoperator.k8s.io/app-name", "pi"}, {"spark-role", "driver"}};
  EXPECT_EQ(Asked(driver), "pi by sparkapplications.sparkoperator.k8s.io pi");
  EXPECT_EQ(Asked({{"sparkoperator.k8s.io/app-name", "pi"}, {"spark-role", "executor"}}), "none");
  const auto asked = GroupTable::Known().Asked({driver, kNone});
  ASSERT_TRUE(asked.ok() && asked->has_value());
  const auto places = [&](const std::string& spec) {
    const auto found = (*asked)->objects->PlacesIn(fmt::format(R"({{"spec": {{{}}}}})", spec));
    return found ? Format(*found) : "none";
  };
  EXPECT_EQ(places(R"("executor": {"instances": 4})"), "4 cpu=1,memory=1408Mi");
  EXPECT_EQ(places(R"("dynamicAllocation": {"enabled": false})"), "1 cpu=1,memory=1408Mi");
  EXPECT_EQ(places(R"("dynamicAllocation": {"enabled": true})"), "none");
  EXPECT_EQ(places(R"("sparkConf": {"spark.executor.memory": "8g"})"), "none");
  EXPECT_EQ(places(R"("sparkConf": {"spark.eventLog.enabled": "true"})"), "1 cpu=1,memory=1408Mi");
  EXPECT_EQ(places(R"("executor": {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}})"), "none");
  EXPECT_EQ(places(R"("executor": {"nodeSelector": {"a": "b"}})"), "none");
  EXPECT_EQ(places(R"("driver": {"nodeSelector": {"a": "b"}})"), "none");
  EXPECT_EQ(places(R"("driver": {"nodeSelector": {}})"), "1 cpu=1,memory=1408Mi");
  EXPECT_EQ(places(R"("driver": {"nodeSelector": {"a": "b"}},
                      "executor": {"nodeSelector": {"a": "b"}})"),
            "1 cpu=1,memory=1408Mi");
  EXPECT_FALSE((*asked)->objects->PlacesIn("]"));
}

// Who makes them is the owner's controller: no key says so.
TEST(GroupTableTest, PodsOfOwnersAreOneGangAtFirst) {
  const auto record = [](const char* kind, const StringMap& annotations) {
    const OwnerReference owner{"apps/v1", kind, "db", "u-1", true};
    const auto asked =
        GroupTable::Known().Asked({.labels = kNone, .annotations = annotations, .owner = &owner});
    if (!asked.ok()) return Message(asked.status());
    if (!asked->has_value()) return std::string("none");
    GroupName group = (*asked)->group;
    EXPECT_EQ((*asked)->object, "db");
    group.size = 3;
    return FormatGroup(group);
  };
  EXPECT_EQ(record("StatefulSet", {}), "db/3^");
  EXPECT_EQ(record("StatefulSet", {{"fluxqueue.io/growth", "each"}}), "none");
  EXPECT_EQ(record("ReplicaSet", {}), "none");
  EXPECT_EQ(record("ReplicaSet", {{"fluxqueue.io/growth", "all"}}), "db/3^");
  EXPECT_EQ(record("ReplicationController", {{"fluxqueue.io/growth", "all"}}), "none");
  EXPECT_EQ(record("ReplicaSet", {{"fluxqueue.io/growth", "some"}}),
            "fluxqueue.io/growth: \"some\": allowed are each and all");
  EXPECT_EQ(
      record("StatefulSet", {{"fluxqueue.io/group-name", "x"}, {"fluxqueue.io/group-size", "1"}}),
      "none");
  const auto group = ParseGroup("db/3^");
  ASSERT_TRUE(group);
  EXPECT_TRUE(group->at_first);
  EXPECT_TRUE(group->or_each);

  const OwnerReference owner{"apps/v1", "StatefulSet", "db", "u-1", true};
  const auto asked =
      GroupTable::Known().Asked({.labels = kNone, .annotations = kNone, .owner = &owner});
  ASSERT_TRUE(asked.ok() && asked->has_value());
  const GroupObjects& sets = *(*asked)->objects;
  EXPECT_EQ(*sets.SizeIn(R"({"spec": {"replicas": 4, "podManagementPolicy": "Parallel"}})"), 4u);
  EXPECT_EQ(*sets.SizeIn(R"({"spec": {"replicas": 4, "podManagementPolicy": "OrderedReady"}})"),
            0u);
  EXPECT_EQ(*sets.SizeIn(R"({"spec": {"replicas": 4}, "status": {"readyReplicas": 1}})"), 0u)
      << "it has started";
}

}  // namespace
}  // namespace fluxqueue::kubernetes
