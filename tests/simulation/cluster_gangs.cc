// What must hold of gangs of pods, which the queue knows by other names than their users.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "tests/simulation/binder_tables.h"
#include "tests/simulation/cluster_world.h"

namespace fluxqueue::simulation {
namespace {

// Null: the queue does not know the job.
std::unique_ptr<events::v1::JobFact> FactOf(const QueueTables& tables, const std::string& id) {
  const QueueTables::Job* const job = tables.jobs.Find(id);
  queue::v1::JobRow row;
  if (job == nullptr || !row.ParseFromString(job->job.row)) return nullptr;
  return std::make_unique<events::v1::JobFact>(std::move(*row.mutable_fact()));
}

}  // namespace

// Of a gang's pod by itself it is the pod's name that the queue has: "j07-2".
const std::string& ClusterWorld::NameOf(const std::string& id) {
  if (traits_.contains(id)) return id;
  const auto [known, is_news] = names_.try_emplace(id);
  if (is_news) {
    const std::string& name = database().Of<QueueTables>().jobs.Find(id)->job.name;
    known->second = name.substr(0, name.find('-'));
  }
  return known->second;
}

bool ClusterWorld::IsGangThere(const std::string& id) {
  const auto fact = FactOf(database().Of<QueueTables>(), id);
  std::set<std::string> pods(fact->workload().pods().begin(), fact->workload().pods().end());
  if (pods.empty()) pods.insert(id);
  for (const SimCluster::Stored& pod : cluster_.All(kubernetes::kPods)) {
    if (!pod->going && !pod->Finished()) pods.erase(pod->uid);
  }
  return pods.empty();
}

bool ClusterWorld::IsGangOver(const std::string& name) {
  const auto& jobs = database().Of<QueueTables>().jobs.rows();
  return users_.IsOver(name) && std::ranges::none_of(jobs, [&](const auto& job) {
           return job.second.live() && NameOf(job.first) == name;
         });
}

void ClusterWorld::CheckStart(const Object& pod) {
  if (!IsOfGang(pod)) return;
  const Live started = LiveOf(pod);
  if (started.id == pod.uid) return CheckAlone(pod);
  CheckGang(pod, started);
}

// Only a pod that came in the place of another one, while the others ran.
void ClusterWorld::CheckAlone(const Object& pod) {
  ++counts()["pods of gangs that start alone"];
  if (!users_.HasMended(WorkloadOf(pod))) Fail(pod.uid + " is of a gang, and starts alone");
}

void ClusterWorld::CheckGang(const Object& pod, const Live& started) {
  const auto fact = FactOf(database().Of<QueueTables>(), started.id);
  if (fact == nullptr) return Fail(pod.uid + " starts, and the queue does not know its gang");
  const auto& pods = fact->workload().pods();
  const BinderTables& tables = database().Of<BinderTables>();
  for (int slot = 0; slot < pods.size(); ++slot) {
    const binder::SlotRow* const row = tables.slots.Find({started.id, started.slot.attempt, slot});
    if (row != nullptr && row->value.pod_uid == pods.at(slot)) continue;
    Fail(fmt::format("{} starts, and {} of its gang has no slot", pod.uid, pods.at(slot)));
  }
  if (pods.size() != static_cast<int>(traits_.at(started.name).slots)) {
    Fail(fmt::format("{} starts in a gang of {}", pod.uid, pods.size()));
  }
  for (const auto& [uid, live] : live_) {
    if (live.id != started.id || live.slot.attempt == started.slot.attempt) continue;
    Fail(fmt::format("{} starts, and {} of its gang is of another attempt", pod.uid, uid));
  }
  if (!gangs_.insert(started.id).second) return;
  ++counts()["gangs that start"];
  if (traits_.at(started.name).pinned) ++counts()["gangs that start from their gates"];
  if (users_.HasMended(started.name)) ++counts()["gangs that start once made whole again"];
}

}  // namespace fluxqueue::simulation
