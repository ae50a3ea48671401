#include "services/binder/domain/unqueued.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::binder {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const kubernetes::Namespace kLab{.name = "lab", .labels = {{"fluxqueue.io/managed", "true"}}};

kubernetes::ObjectMeta Pod(const std::string& name) {
  kubernetes::ObjectMeta meta;
  meta.name = name;
  meta.uid = "uid-" + name;
  meta.namespace_name = kLab.name;
  return meta;
}

kubernetes::ObjectMeta PodOf(const std::string& name,
                             const std::string& api_version,
                             const std::string& kind,
                             const std::string& owner) {
  kubernetes::ObjectMeta meta = Pod(name);
  meta.owners.push_back({api_version, kind, owner, "uid-" + owner, true});
  return meta;
}

kubernetes::Job Job(const std::string& name) {
  kubernetes::Job job;
  job.meta = Pod(name);
  return job;
}

auto Names(const char* kind, const char* name) {
  return AllOf(Field(&Unqueued::kind, kind), Field(&Unqueued::name, name));
}

TEST(Unqueued, SaysWhatToDoAboutEach) {
  const auto named =
      UnqueuedOf(kLab, {PodOf("web-1", "apps/v1", "ReplicaSet", "web"), Pod("bare")}, {Job("old")});
  ASSERT_THAT(named, ElementsAre(Names("Job", "old"), Names("Pod", "bare"), Names("Pod", "web-1")));
  EXPECT_EQ(named[0].uid, "uid-old");
  EXPECT_THAT(named[0].note, HasSubstr("the pods that are made of it go past the queue"));
  EXPECT_THAT(named[1].note, EndsWith("delete it and make it again"));
  EXPECT_THAT(named[2].note, EndsWith("delete it and ReplicaSet web makes another, which is"));
}

TEST(Unqueued, OfWhatOneControllerHasMadeOneIsNamed) {
  EXPECT_THAT(UnqueuedOf(kLab,
                         {PodOf("web-2", "apps/v1", "ReplicaSet", "web"),
                          PodOf("web-1", "apps/v1", "ReplicaSet", "web"),
                          PodOf("old-x", "batch/v1", "Job", "old")},
                         {Job("old")}),
              ElementsAre(Names("Job", "old"), Names("Pod", "web-1")));
}

TEST(Unqueued, WhatIsForNoQueueIsLeftOut) {
  kubernetes::ObjectMeta going = Pod("going");
  going.deleted_ms = 1;
  kubernetes::Job ended = Job("ended");
  ended.complete = true;
  kubernetes::Job others = Job("others");
  others.managed_by = "example.com/x";
  kubernetes::Job out = Job("out");
  out.template_labels["fluxqueue.io/managed"] = "false";
  EXPECT_THAT(
      UnqueuedOf(
          kLab, {going, PodOf("agent-1", "apps/v1", "DaemonSet", "agent")}, {ended, others, out}),
      IsEmpty());
}

TEST(Unqueued, OfManyTheFirstAreNamedAndTheOthersCounted) {
  std::vector<kubernetes::ObjectMeta> pods;
  for (size_t i = 0; i < kMostNamed + 7; ++i) pods.push_back(Pod(fmt::format("p{:03}", i)));
  const auto named = UnqueuedOf(kLab, pods, {});
  ASSERT_THAT(named, SizeIs(kMostNamed));
  EXPECT_THAT(named.back().note, EndsWith(". So are 7 others of the namespace"));
  EXPECT_THAT(named.front().note, Not(HasSubstr("others")));
}

}  // namespace
}  // namespace fluxqueue::binder
