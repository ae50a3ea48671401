// 6, 7: every job is somewhere, and its life is told without a gap.
#include <algorithm>

#include <fmt/format.h>

#include "libs/model/job_state.h"
#include "libs/model/workload.h"
#include "libs/verify/invariants.h"

namespace fluxqueue::verify::internal {
namespace {

bool HasLivePods(const Cluster& cluster, const std::string& job_id) {
  return std::ranges::any_of(cluster.pods, [&job_id](const PodView& pod) {
    return pod.job_id == job_id && !pod.node.empty() && !pod.ended;
  });
}

void CheckState(const Snapshot& snapshot, const JobRow& job, Check* check) {
  const std::string name = JobName(snapshot, job.id);
  const auto state = model::ParseJobState(job.state);
  if (!state.has_value() || *state == model::JobState::kNone) {
    check->findings.push_back(
        {"state " + job.id, fmt::format("{}: \"{}\" is not a state of a job", name, job.state)});
    return;
  }
  const auto events = snapshot.events.find(job.id);
  if (events != snapshot.events.end()) {
    const EventTrail& trail = events->second;
    if (trail.last_state != job.state) {
      check->findings.push_back(
          {"told " + job.id,
           fmt::format("{} is {}, and its last event says {}", name, job.state, trail.last_state)});
    }
    if (trail.ended != 0 && trail.ended != trail.last) {
      check->findings.push_back(
          {"risen " + job.id,
           fmt::format("{} ended with version {}, and its life goes on to version {}",
                       name,
                       trail.ended,
                       trail.last)});
    }
  }
  if (!snapshot.cluster.has_value() || model::IsTerminal(*state)) return;
  // A claim and a group are no objects there; cleanup sees the pods of a group.
  if (model::IsClaim(job.kind) || model::IsGroup(job.kind)) return;
  const auto object = snapshot.cluster->objects.find(job.id);
  if (object != snapshot.cluster->objects.end() && !object->second.ended) return;
  // A pod that had places has not ended before the pods that took them have.
  if (job.kind == "Pod" && HasLivePods(*snapshot.cluster, job.id)) return;
  // The version is part of the key: what moves is on its way.
  if (object == snapshot.cluster->objects.end()) {
    check->findings.push_back(
        {fmt::format("gone {} {}", job.id, job.version),
         fmt::format(
             "{} is {}, and its {} is not in the cluster (any more)", name, job.state, job.kind)});
  } else {
    check->findings.push_back(
        {fmt::format("over {} {}", job.id, job.version),
         fmt::format("{} is {}, and its {} has ended", name, job.state, job.kind)});
  }
}

}  // namespace

Check NoneLost(const Snapshot& snapshot) {
  Check check{.number = 6,
              .title = "every workload admitted is in exactly one state, and none is lost"};
  for (const WorkloadRow& row : snapshot.workloads) {
    if (snapshot.jobs.contains(row.job_id)) continue;
    check.findings.push_back(
        {"lost " + row.job_id,
         fmt::format("{} {}/{} ({}) was submitted, and the queue does not know it",
                     row.kind,
                     row.space,
                     row.name,
                     row.job_id)});
  }
  for (const auto& [id, job] : snapshot.jobs) CheckState(snapshot, job, &check);
  check.checked = fmt::format(
      "{} jobs, {} workloads that live", snapshot.jobs.size(), snapshot.workloads.size());
  if (snapshot.cluster.has_value()) {
    check.checked += fmt::format(", {} held objects", snapshot.cluster->objects.size());
  } else {
    check.not_checked = "the cluster was not looked at: kubernetes.kubeconfig is not set";
  }
  return check;
}

Check Versions(const Snapshot& snapshot) {
  Check check{.number = 7, .title = "a job's versions are 1, 2, 3 … with no gap and no repeat"};
  const auto find = [&](const std::string& id, const std::string& what) {
    check.findings.push_back({id + " " + what, fmt::format("{}: {}", JobName(snapshot, id), what)});
  };
  uint64_t events = 0;
  for (const auto& [id, trail] : snapshot.events) {
    events += trail.count;
    if (!snapshot.jobs.contains(id)) find(id, "it has events and no row in queue.jobs");
    const bool begins = trail.first == 1 || trail.count >= model::kKeptEvents;
    if (begins && trail.count == trail.last - trail.first + 1) continue;
    find(id, fmt::format("{} events with versions {} to {}", trail.count, trail.first, trail.last));
  }
  for (const auto& [id, job] : snapshot.jobs) {
    const auto trail = snapshot.events.find(id);
    const uint64_t last = trail == snapshot.events.end() ? 0 : trail->second.last;
    if (last != job.version)
      find(id, fmt::format("it is at version {}, its events at {}", job.version, last));
    const auto told = snapshot.topic.find(id);
    const uint64_t said = told == snapshot.topic.end() ? 0 : told->second.last;
    if (said != job.version && !(said == 0 && snapshot.topic_cut)) {
      find(id, fmt::format("it is at version {}, the jobs topic at {}", job.version, said));
    }
  }
  for (const auto& [id, trail] : snapshot.topic) {
    for (const std::string& fault : trail.faults) find(id, "jobs topic: " + fault);
    if (!snapshot.jobs.contains(id)) find(id, "it is in the jobs topic and not in queue.jobs");
  }
  for (const std::string& record : snapshot.unreadable) {
    check.findings.push_back({record, "jobs topic: " + record});
  }
  check.checked = fmt::format("{} jobs, {} events, {} jobs in the topic",
                              snapshot.jobs.size(),
                              events,
                              snapshot.topic.size());
  if (snapshot.topic_lost > 0) {
    check.checked += fmt::format(", {} facts that Kafka has lost", snapshot.topic_lost);
  }
  return check;
}

}  // namespace fluxqueue::verify::internal
