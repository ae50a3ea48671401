// The pool of pool_world.h in a cluster: jobs are Jobs, bare pods and gangs of such, what runs are
// pods; users delete some of them. No job may be cancelled that is there, and none may fail but one
// of bare pods of which one was bound. And what must hold whenever a pod is bound:
//   - its slot is the job's, on that node, and has not been given back
//   - the row that says so was there before
//   - no other pod that has not ended has the slot
//   - its node has room for it
// and before the first pod of a gang is bound, or released from its gate (cluster_gangs.cc):
//   - all of its pods have the slots of one allocation, and rows that say so
#pragma once

#include <map>
#include <set>
#include <string>

#include "libs/kubernetes/labels.h"
#include "tests/simulation/cluster_standins.h"
#include "tests/simulation/cluster_users.h"
#include "tests/simulation/pool_world.h"
#include "tests/simulation/sim_cluster.h"

namespace fluxqueue::simulation {

class ClusterWorld final : public PoolWorld {
 public:
  ClusterWorld(const Trial& trial, std::map<std::string, Job> jobs);

  SimCluster& cluster() { return cluster_; }
  void StrikeCluster(const Fault& fault);

  bool Done() override;
  std::string WhatIsLeft() override;

 protected:
  const std::string& NameOf(const std::string& id) override;
  void TakeNode(int number, bool away) override;
  void Submit(const std::string& id) override;
  bool IsOver(const std::string& id) override;
  bool Runs(const std::string& id, uint32_t attempt) override;
  void Check() override;
  void Changed(const std::string& id, model::JobState state) override;

 private:
  using Object = SimCluster::Object;
  // A pod that is bound, has not ended, and is not lost.
  struct Live {
    std::string id;    // of its job
    std::string name;  // of its workload; empty: somebody else's
    kubernetes::SlotName slot{};
    std::string node{};
    int64_t cpu = 0;
  };

  TimePoint Now() { return scheduler().now(); }
  static Live LiveOf(const Object& pod);
  bool IsThere(const std::string& name) const;
  // All pods that the job consists of, none of which is going.
  bool IsGangThere(const std::string& id);
  bool IsGangOver(const std::string& name);
  void BarePodEnded(const Object& pod);
  void Written(const Object* before, const Object* after);
  void CheckStart(const Object& pod);
  void CheckGang(const Object& pod, const Live& started);
  void CheckAlone(const Object& pod);
  void PodBound(const Object& pod);
  // Its slot is on a node of that name that is another by now. The binder may not have heard yet
  // that the job is to stop; then only the kubelet says whether there is room. Fails, but for what
  // the binder lets pass: a Binding was on its way when the node went, or the job had just been
  // allocated.
  bool IsOnAnother(const std::string& uid, const Live& pod);
  void CheckAllocated(const std::string& uid, const Live& pod);
  void CheckRow(const std::string& uid, const Live& pod);
  void CheckOthers(const std::string& uid, const Live& pod);
  // A node has lost sight of them: they may run there, and are not waited for.
  void LosePods(const std::string& node);
  void GoBack(size_t changes);

  SimCluster cluster_;
  Workloads traits_;
  Users users_;
  Standins standins_;
  std::map<std::string, std::string> names_;  // of workloads, by those of their jobs that differ
  // By job, attempt and slot: the uid of its node, as the matcher knew it when it gave the slot.
  std::map<MatcherTables::Key, std::string> given_;
  std::map<std::pair<std::string, uint32_t>, TimePoint> allocated_;  // by job and attempt: when
  std::map<std::string, TimePoint> gone_;                            // nodes, by uid: since when
  std::map<std::string, Live> live_;                                 // by uid
  std::set<std::string> lost_;                                       // uids
  std::set<std::string> released_;   // pods that a backup has as kube-scheduler's to bind: uids
  std::set<std::string> forgotten_;  // Jobs that may never have been seen
  std::set<std::string> undone_;     // Jobs whose end a backup did not have
  std::set<std::string> had_pod_;    // jobs: one of theirs was bound
  std::set<std::string> gangs_;      // jobs of gangs of which one pod has started
  bool went_back_ = false;
  size_t first_changes_ = 0;  // that made the cluster as it is at first: all backups have them
};

}  // namespace fluxqueue::simulation
