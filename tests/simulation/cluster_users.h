// What users do in the cluster: they make Jobs, pods, and gangs of pods, which pass the webhook's
// decision (services/admission/domain/webhook.h) and are held by it; and they delete some.
//
// A gang that has lost a pod before all have started waits for another one (k8s/README.md, "Gangs
// of pods"). Its user looks after it: he makes those again that lack, and in the end deletes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/admission/domain/cluster_facts.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

inline constexpr const char* kSpace = "lab";

struct JobTraits {
  uint32_t slots = 1;
  int64_t cpu = 0;  // of a pod, in thousandths
  Millis run{0};    // of a pod
  bool suspended = false;
  bool controlled = false;  // another controller has made it: it is not stopped by a suspend
  bool indexed = false;
  bool bare = false;    // a pod without a controller that would make it again
  bool gang = false;    // such pods, that start together
  bool pinned = false;  // kube-scheduler binds its pods
  Millis keep{0};       // after its end; 0: for ever
  Millis late{0};       // of a gang: its last pod comes so long after the others
  // So long after it came its user deletes it, or one of its pods; 0: never.
  Millis delete_after{0};
  Millis delete_pod_after{0};
};
using Workloads = std::map<std::string, JobTraits>;

// The workload that the pod is of. Empty: somebody else's.
std::string WorkloadOf(const SimCluster::Object& pod);
// The job of the queue, as the pod says; of a gang's pod that was not started, empty.
std::string JobIdOf(const SimCluster::Object& pod);
bool IsOfGang(const SimCluster::Object& pod);

class Users {
 public:
  // Makes their namespace and queue. `workloads` must outlive them.
  Users(SimCluster& cluster, Counts& counts, const Workloads& workloads);

  // `id`: its name, and, but for a gang, its uid.
  void Make(const std::string& id);
  // If it is there; and one of its pods.
  void Delete(const std::string& id);
  void DeletePod(const std::string& id);
  // The gang's job has failed: what waits of it still is never started.
  void GiveUp(const std::string& gang);

  // No pod of the gang is to come, and those that came have ended or are gone.
  bool IsOver(const std::string& gang) const;
  // Pods of it were made again.
  bool HasMended(const std::string& gang) const;

 private:
  using Pods = std::vector<SimCluster::Stored>;
  struct Gang {
    bool made = false;      // all its pods
    bool unwanted = false;  // its user deletes what there is of it
    int mends = 0;
  };

  // As the API server takes it in.
  json Admitted(json object, const JobTraits& traits) const;
  json Metadata(const std::string& name) const;
  void MakeJob(const std::string& id);
  void MakePod(const std::string& id);
  void MakeGang(const std::string& id);
  void MakePodOfGang(const std::string& id, uint32_t index);
  // Not finished.
  Pods PodsOf(const std::string& id) const;
  void DeleteAll(const Pods& pods);
  // From time to time.
  void LookAfter(const std::string& gang);
  void Mend(const std::string& gang);

  SimCluster& cluster_;
  Counts& counts_;
  const Workloads& workloads_;
  admission::ClusterFacts facts_;
  std::map<std::string, Gang> gangs_;
};

}  // namespace fluxqueue::simulation
