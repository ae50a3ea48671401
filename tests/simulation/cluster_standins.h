// What else changes objects of the cluster: the controller of Jobs, that of nodes, kube-scheduler,
// and kubelets.
// Each looks at all there is a few times a second, and does one thing after the other, as it
// comes.
//
// A Job's pods come back under the same names; so do nodes, which then know nothing of the pods
// that ran on them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/cluster_users.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

// A job that no statement can look up: Postgres takes its name for no text.
inline constexpr const char* kPoison = "poison";

class Standins {
 public:
  // They begin at once. `workloads` must outlive them.
  Standins(SimCluster& cluster, Counts& counts, int64_t node_cpu, const Workloads& workloads);

  // A pod of somebody else, on that node, which says that it is of the job kPoison.
  void AddPoison(const std::string& node, int64_t cpu);
  void AddNode(const std::string& name);
  void RemoveNode(const std::string& name);
  // Its kubelet does nothing, and it is said not to be ready; or it is back.
  void Silence(const std::string& name, bool silent);
  // The cluster's store has gone back: what is not as it was there has not been.
  void Forget();
  // It is there, and its kubelet works.
  bool Works(const std::string& node) const;

 private:
  using Object = SimCluster::Object;
  struct Running {
    std::string node;
    int64_t cpu = 0;
    TimePoint end{};
  };

  void Tick();
  void SyncJob(const Object& job);
  // Returns how many of its pods have succeeded.
  size_t Count(const Object& job);
  void MakePods(const Object& job);
  void StopPods(const std::string& id);
  void EndJob(const std::string& id);
  void SyncPod(const Object& pod);
  // As kube-scheduler does, once nothing holds it and its node has room.
  void Schedule(const Object& pod);
  void StartPod(const Object& pod);
  void SetPhase(const Object& pod, const char* phase, const char* reason = "");

  SimCluster& cluster_;
  Counts& counts_;
  const int64_t node_cpu_;
  const Workloads& workloads_;
  std::map<std::string, TimePoint> ended_;  // Jobs
  std::map<std::string, Running> running_;  // pods, by uid
  std::set<std::string> silent_;            // nodes
};

// Of a pod with one container, in thousandths.
int64_t CpuOf(const SimCluster::Object& pod);

}  // namespace fluxqueue::simulation
