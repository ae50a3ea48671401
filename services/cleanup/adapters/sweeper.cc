#include "services/cleanup/adapters/sweeper.h"

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/model/workload.h"
#include "services/cleanup/adapters/cleanup_store.h"

namespace fluxqueue::cleanup {

absl::Status Sweeper::Run(const std::stop_token& stop) {
  while (true) {
    Pause(clock_, interval_, stop);
    if (stop.stop_requested()) return absl::OkStatus();
    if (!held_()) continue;
    // A sweep that fails is no reason to stop: the next one looks at the same things.
    if (const absl::Status status = SweepOnce(stop); status.ok()) {
      metrics_.Swept();
    } else {
      LogWarning("sweep failed, the next one tries again", {{"error", Message(status)}});
    }
  }
  return absl::OkStatus();
}

absl::Status Sweeper::SweepOnce(const std::stop_token& stop) {
  shard_.TakeSuspects();  // of a sweep that was not finished
  std::vector<HeardNode> nodes;
  RETURN_IF_ERROR(ReadNodes(&nodes));
  shard_.PostNodes(std::move(nodes));
  std::vector<LiveJob> live;
  RETURN_IF_ERROR(ReadLive(&live));
  shard_.PostLiveJobs(std::move(live));
  constexpr int kPatience = 100;
  for (int i = 0; i < kPatience; ++i) {
    if (const std::optional<Suspects> suspects = shard_.TakeSuspects(); suspects.has_value()) {
      RETURN_IF_ERROR(ConfirmGone(suspects->gone));
      return ConfirmOrphans(suspects->orphans);
    }
    Pause(clock_, Millis(100), stop);
    if (stop.stop_requested()) return absl::OkStatus();
  }
  return Unavailable("the cluster has not been listed yet");
}

absl::Status Sweeper::ReadNodes(std::vector<HeardNode>* nodes) {
  return store_->Query([&](pqxx::transaction_base& tx) {
    for (const auto& [pool, node] : LoadGraphNodes(tx)) nodes->push_back(HeardNode::Of(pool, node));
    return absl::OkStatus();
  });
}

absl::Status Sweeper::ReadLive(std::vector<LiveJob>* live) {
  return store_->Query([&](pqxx::transaction_base& tx) {
    *live = LoadLiveJobs(tx);
    return absl::OkStatus();
  });
}

absl::Status Sweeper::ConfirmGone(const std::vector<LiveJob>& suspects) {
  std::vector<std::string> gone;
  for (const LiveJob& job : suspects) {
    // Its pods have all been in the picture, but for those that are still to be bound.
    if (model::IsGroup(job.kind)) {
      bool starts = false;
      RETURN_IF_ERROR(store_->Query([&](pqxx::transaction_base& tx) {
        starts = HasTakenSlots(tx, job.job_id);
        return absl::OkStatus();
      }));
      if (!starts) gone.push_back(job.job_id);
      continue;
    }
    const auto& resource = job.kind == "Pod" ? kubernetes::kPods : kubernetes::kJobs;
    const absl::StatusOr<std::string> object = cluster_.Get(resource, job.space, job.name);
    if (object.ok()) {
      ASSIGN_OR_RETURN(const kubernetes::ObjectMeta meta, kubernetes::ParseMeta(*object));
      if (meta.uid == job.job_id) continue;
    } else if (!absl::IsNotFound(object.status())) {
      return object.status();
    }
    gone.push_back(job.job_id);
  }
  if (gone.empty()) return absl::OkStatus();
  std::vector<LiveJob> live;
  RETURN_IF_ERROR(ReadLive(&live));
  const LiveIndex index = IndexOf(live);
  for (std::string& job_id : gone) {
    const auto job = index.find(job_id);
    if (job == index.end() || !job->second->holding) continue;
    LogWarning("workload is gone, its job has not ended", {{"job", job_id}});
    shard_.PostGone(std::move(job_id));
  }
  return absl::OkStatus();
}

absl::Status Sweeper::ConfirmOrphans(const std::vector<Observer::OwnPod>& suspects) {
  if (suspects.empty()) return absl::OkStatus();
  std::vector<LiveJob> live;
  RETURN_IF_ERROR(ReadLive(&live));
  const LiveIndex index = IndexOf(live);
  for (const Observer::OwnPod& pod : suspects) {
    if (!IsOver(pod.job_id, pod.attempt, index)) continue;
    LogWarning("pod runs without an allocation, it counts as foreign use",
               {{"job", pod.job_id}, {"pod", pod.uid}});
    shard_.PostOrphan(pod.uid);
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::cleanup
