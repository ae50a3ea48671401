#include "libs/kubernetes/ownership.h"

#include <gtest/gtest.h>

namespace fluxqueue::kubernetes {
namespace {

const Namespace kManagedSpace{"lab", {{"fluxqueue.io/managed", "true"}}};
const Namespace kPlainSpace{"web", {}};

TEST(Ownership, TheJobThatAPodIsOf) {
  Pod pod;
  pod.meta.uid = "p";
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.annotations = {{"fluxqueue.io/place-of", "no uid"}};
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.annotations = {{"fluxqueue.io/place-of", "driver"}};
  EXPECT_EQ(JobIdOf(pod), "driver");
  // A user may have written it into the template of a Job that is suspended.
  pod.meta.owners = {{"batch/v1", "Job", "j", "job", true}};
  EXPECT_EQ(JobIdOf(pod), "job");
  pod.meta.annotations["fluxqueue.io/group"] = "g/2";
  EXPECT_EQ(JobIdOf(pod), "p");
}

TEST(Ownership, OfPods) {
  Pod plain;
  Pod queued;
  queued.meta.labels = {{"fluxqueue.io/queue", "default"}};
  Pod opted_out = queued;
  opted_out.meta.labels["fluxqueue.io/managed"] = "false";
  Pod bound = queued;
  bound.spec.node_name = "n1";
  Pod mirror;
  mirror.meta.annotations = {{"kubernetes.io/config.mirror", "x"}};
  Pod daemon;
  daemon.meta.owners = {{"apps/v1", "DaemonSet", "d", "u", true}};
  Pod replica;
  replica.meta.owners = {{"apps/v1", "ReplicaSet", "r", "u", true}};
  const Maker user{"ann"};
  const Maker node{"system:node:n1", /*node=*/true};
  const Maker daemons{"system:serviceaccount:kube-system:daemon-set-controller"};
  const Maker all{"system:kube-controller-manager"};
  struct Row {
    const Pod& pod;
    const Namespace& space;
    const char* reason;
    Maker maker = {"ann"};
  };
  const Namespace out{"out", {{"fluxqueue.io/managed", "false"}}};
  const Namespace system{"kube-system", {{"fluxqueue.io/managed", "true"}}};
  const Namespace own{"fluxqueue-system", {{"fluxqueue.io/managed", "true"}}};
  const Row rows[] = {
      {plain, kManagedSpace, "Managed"},
      {plain, kPlainSpace, "NotManaged"},
      {queued, kPlainSpace, "QueueLabel"},
      {queued, system, "SystemNamespace"},
      {queued, own, "SystemNamespace"},
      {queued, out, "OptedOut"},
      {opted_out, kManagedSpace, "OptedOut"},
      {bound, kManagedSpace, "AlreadyBound"},
      {mirror, kManagedSpace, "MirrorPod", node},
      {daemon, kManagedSpace, "DaemonSet", daemons},
      {daemon, kManagedSpace, "DaemonSet", all},
      // What anybody may write makes nothing of it.
      {mirror, kManagedSpace, "Managed", user},
      {mirror, kManagedSpace, "Managed", daemons},
      {daemon, kManagedSpace, "Managed", user},
      {daemon, kManagedSpace, "Managed", {"system:serviceaccount:lab:daemon-set-controller"}},
      {daemon, kManagedSpace, "Managed", {"system:serviceaccount:kube-system:daemon-set-x"}},
      {replica, kManagedSpace, "Managed", daemons},
  };
  for (const Row& row : rows) {
    const Ownership ownership = PodOwnership(row.pod, row.space, row.maker);
    EXPECT_EQ(ownership.reason, row.reason);
    EXPECT_FALSE(ownership.message.empty());
    EXPECT_EQ(ownership.ours, ownership.reason == "Managed" || ownership.reason == "QueueLabel");
  }
}

TEST(Ownership, OfJobs) {
  Job job;
  EXPECT_FALSE(JobOwnership(job, kPlainSpace).ours);
  EXPECT_TRUE(JobOwnership(job, kManagedSpace).ours);
  job.template_labels = {{"fluxqueue.io/queue", "q"}};
  EXPECT_TRUE(JobOwnership(job, kPlainSpace).ours);
  job.template_labels["fluxqueue.io/managed"] = "false";
  EXPECT_EQ(JobOwnership(job, kManagedSpace).reason, "OptedOut");
  Job others;
  others.managed_by = "kubernetes.io/job-controller";
  EXPECT_TRUE(JobOwnership(others, kManagedSpace).ours);
  others.managed_by = "kueue.x-k8s.io/multikueue";
  EXPECT_EQ(JobOwnership(others, kManagedSpace).reason, "ManagedBy");
  EXPECT_TRUE(Declined(others, kManagedSpace).has_value());
  Job placed;
  placed.pod.node_name = "n1";
  EXPECT_EQ(JobOwnership(placed, kManagedSpace).reason, "AlreadyBound");
}

TEST(Mode, IsPinnedForWhatKubeSchedulerMustDo) {
  PodSpec pod;
  EXPECT_EQ(ChooseMode(pod), Mode::kDirect);
  for (std::string PodSpec::*field :
       {&PodSpec::claim_volume, &PodSpec::ephemeral_volume, &PodSpec::resource_claim}) {
    PodSpec pinned;
    pinned.*field = "v";
    EXPECT_EQ(ChooseMode(pinned), Mode::kPinned);
  }
  EXPECT_FALSE(CarriedHold(pod));
  pod.scheduler_name = "fluxqueue";
  EXPECT_EQ(CarriedHold(pod), Mode::kDirect);
  pod.scheduler_name = "default-scheduler";
  pod.gates = {"other", "fluxqueue.io/gate"};
  EXPECT_EQ(CarriedHold(pod), Mode::kPinned);
}

TEST(Deadline, OursIsNotItsUsers) {
  ObjectMeta meta;
  EXPECT_EQ(OwnDeadline(meta, 60), 60);
  meta.annotations = {{"fluxqueue.io/deadline", "60"}};
  EXPECT_EQ(OwnDeadline(meta, 60), 0);
  // Its user has set another since.
  EXPECT_EQ(OwnDeadline(meta, 30), 30);
}

TEST(Suspend, IsForLargeOrTimedJobsThatNobodyElseControls) {
  Job job;
  job.parallelism = 16;
  EXPECT_FALSE(HoldsBySuspend(job, 16, /*ends=*/false));
  job.parallelism = 17;
  EXPECT_TRUE(HoldsBySuspend(job, 16, /*ends=*/false));
  job.completions = 4;
  EXPECT_FALSE(HoldsBySuspend(job, 16, /*ends=*/false));
  EXPECT_TRUE(HoldsBySuspend(job, 16, /*ends=*/true));
  job.active_deadline_s = 60;
  EXPECT_TRUE(HoldsBySuspend(job, 16, /*ends=*/false));
  job.meta.owners = {{"batch/v1", "CronJob", "c", "u", true}};
  EXPECT_TRUE(HoldsBySuspend(job, 16, /*ends=*/false));
  job.meta.owners = {{"jobset.x-k8s.io/v1alpha2", "JobSet", "s", "u", true}};
  EXPECT_TRUE(IsControlled(job));
  EXPECT_FALSE(HoldsBySuspend(job, 16, /*ends=*/false));
}

TEST(Suspend, IsOursByItsAnnotation) {
  Job job;
  job.suspend = true;
  EXPECT_FALSE(IsSuspendedByUs(job));
  job.meta.annotations = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
  EXPECT_TRUE(IsSuspendedByUs(job));
  job.suspend = false;
  EXPECT_FALSE(IsSuspendedByUs(job));
}

TEST(JobId, IsTheOwnersOrThePodsOwn) {
  Pod pod;
  pod.meta.uid = "p";
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.owners = {{"v1", "ConfigMap", "c", "u", false}};
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.owners.push_back({"batch/v1", "Job", "j", "ju", true});
  EXPECT_EQ(JobIdOf(pod), "ju");
  pod.meta.owners.back().kind = "ReplicaSet";
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.owners.back() = {"batch/v1", "Job", "j", std::string("u\0", 2), true};
  EXPECT_EQ(JobIdOf(pod), "p");
  pod.meta.owners.back() = {"batch.volcano.sh/v1alpha1", "Job", "j", "ju", true};
  EXPECT_EQ(JobIdOf(pod), "p");
}

TEST(Ownership, WhatAPodSaysOfItsNodesOwn) {
  const auto of = [](const char* api, const char* kind, const char* uid, bool controller = true) {
    ObjectMeta meta;
    meta.namespace_name = "lab";
    meta.owners = {{api, kind, "d", uid, controller}};
    return meta;
  };
  const OwnerClaim daemon{OwnerClaim::Kind::kDaemonSet, "lab", "d", "u"};
  const OwnerClaim node{OwnerClaim::Kind::kNode, "", "d", "u"};
  EXPECT_EQ(NodesOwn(of("apps/v1", "DaemonSet", "u")), daemon);
  EXPECT_EQ(NodesOwn(of("apps/v1", "DaemonSet", "u", false)), std::nullopt);
  EXPECT_EQ(NodesOwn(of("apps.kruise.io/v1", "DaemonSet", "u")), std::nullopt);
  EXPECT_EQ(NodesOwn(of("apps/v1", "DaemonSet", "../u")), std::nullopt);
  EXPECT_EQ(NodesOwn(of("apps/v1", "ReplicaSet", "u")), std::nullopt);
  EXPECT_EQ(NodesOwn(of("v1", "Node", "u")), std::nullopt) << "no kubelet says that it is its own";
  ObjectMeta mirror = of("v1", "Node", "u");
  mirror.annotations = {{"kubernetes.io/config.mirror", "x"}};
  EXPECT_EQ(NodesOwn(mirror), node);
  mirror.owners.clear();
  EXPECT_EQ(NodesOwn(mirror), std::nullopt);
}

}  // namespace
}  // namespace fluxqueue::kubernetes
