#include "services/binder/domain/waiting_pods.h"

#include <algorithm>

#include "libs/base/text.h"
#include "libs/kubernetes/views.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;

std::vector<const PodFacts*> PodsOf(const PodBoard& board, const JobFact& fact) {
  const events::v1::Workload& workload = fact.workload();
  return workload.pods_size() > 0 ? board.OfGroup(workload.pods(), workload.namespace_())
                                  : board.OfJob(fact.job_id(), workload.namespace_());
}

bool HasEnded(const JobFact& fact) {
  return model::IsTerminal(static_cast<model::JobState>(fact.state()));
}

// It waits, or has ended.
bool LeavesPods(const JobFact& fact) {
  return HasEnded(fact) || model::kWaitingStates.Has(static_cast<model::JobState>(fact.state()));
}

// In line and not tried yet is told in an Event alone: a burst of jobs passes through it.
bool IsTold(const JobFact& fact) {
  return LeavesPods(fact) && !HasNoPods(fact) && !fact.reason().empty() &&
         fact.reason() != "Queued";
}

bool SaysUnschedulable(const PodFacts& pod) {
  return pod.waits_because == kubernetes::kUnschedulable;
}

PodCondition Condition(const PodFacts& pod, const JobFact& fact, std::string reason) {
  return {pod.space,
          pod.name,
          pod.uid,
          std::move(reason),
          Cut(fact.message().empty() ? fact.reason() : fact.message(), kMostMessageBytes),
          fact.created_ms()};
}

PodCondition NothingKnown(const PodFacts& pod) {
  return {.space = pod.space,
          .name = pod.name,
          .uid = pod.uid,
          .reason = "Waiting",
          .message = "not for nodes alone: kubectl fluxqueue explain says what it waits for"};
}

}  // namespace

bool HasNoPods(const JobFact& fact) {
  const events::v1::Workload& workload = fact.workload();
  if (workload.kind() != "Job" || workload.controlled()) return false;
  // To be tried again it was stopped by its suspend.
  return workload.suspended() || fact.attempt() > 1;
}

void WaitingPods::Learn(int partition, const JobFact& fact, Millis now) {
  if (model::IsClaim(fact.workload().kind())) return;
  if (const auto named = named_.find(fact.job_id()); named != named_.end()) {
    named->second.fact = fact;
  }
  const auto known = jobs_.find(fact.job_id());
  if (!IsTold(fact)) {
    if (known == jobs_.end()) return;
    due_.erase({known->second.at, fact.job_id()});
    jobs_.erase(known);
    return;
  }
  if (known != jobs_.end()) {
    known->second.fact = fact;
    known->second.told = 0;
    return;
  }
  if (jobs_.size() >= kMostJobs && !HasEnded(fact)) return;
  const Millis at = now + kToldAfter;
  jobs_.emplace(fact.job_id(), Due{.partition = partition, .at = at, .fact = fact});
  due_.emplace(at, fact.job_id());
}

void WaitingPods::Drop(int partition) {
  std::erase_if(jobs_, [&](const auto& job) {
    if (job.second.partition != partition) return false;
    due_.erase({job.second.at, job.first});
    return true;
  });
  std::erase_if(named_, [&](const auto& job) { return job.second.partition == partition; });
}

std::vector<PodCondition> WaitingPods::TakeDue(const PodBoard& board, size_t most, Millis now) {
  std::vector<PodCondition> conditions;
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto job = jobs_.find(due_.begin()->second);
    const JobFact& fact = job->second.fact;
    const std::vector<const PodFacts*> pods = PodsOf(board, fact);
    // Compare sees to those that lack nodes.
    size_t& told = job->second.told;
    for (; told < pods.size() && !named_.contains(fact.job_id()); ++told) {
      const PodFacts& pod = *pods[told];
      if (!pod.Waiting() || SaysUnschedulable(pod) || pod.waits_because == fact.reason()) continue;
      if (conditions.size() == most) return conditions;
      conditions.push_back(Condition(pod, fact, fact.reason()));
    }
    due_.erase(due_.begin());
    jobs_.erase(job);
  }
  return conditions;
}

std::optional<Millis> WaitingPods::NextDue() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void WaitingPods::LearnNamed(const std::vector<LackingJob>& lacking) {
  for (auto& [job_id, named] : named_) named.lacks = false;
  for (const LackingJob& job : lacking) {
    if (!job.partition.has_value()) continue;
    Named& named = named_[job.fact.job_id()];
    named.partition = *job.partition;
    named.lacks = true;
    if (named.fact.version() <= job.fact.version()) named.fact = job.fact;
  }
}

void WaitingPods::TakeBack(const PodBoard& board, std::vector<PodCondition>* conditions) {
  std::erase_if(named_, [&](const auto& job) {
    const Named& named = job.second;
    if (named.lacks) return false;
    if (!LeavesPods(named.fact) || named.fact.reason().empty()) return true;
    bool said = false;
    for (const PodFacts* pod : PodsOf(board, named.fact)) {
      if (!SaysUnschedulable(*pod)) continue;
      said = true;
      conditions->push_back(Condition(*pod, named.fact, named.fact.reason()));
    }
    return !said;
  });
}

std::vector<PodCondition> WaitingPods::Compare(const PodBoard& board,
                                               const std::vector<LackingJob>& lacking,
                                               const Others& others,
                                               size_t most) {
  LearnNamed(lacking);
  std::set<const PodFacts*> known;
  const auto know = [&](const JobFact& fact) {
    const std::vector<const PodFacts*> pods = PodsOf(board, fact);
    known.insert(pods.begin(), pods.end());
  };
  for (const LackingJob& job : lacking) know(job.fact);
  for (const auto& [job_id, named] : named_) know(named.fact);
  std::vector<PodCondition> conditions;
  TakeBack(board, &conditions);
  std::set<std::string> strangers;
  for (const std::string& uid : board.unschedulable()) {
    const PodFacts& pod = *board.Find(uid);
    if (!others.ours || known.contains(&pod) || others.starts(pod)) continue;
    // A replica that knows its job goes first.
    if (strangers_.contains(uid)) conditions.push_back(NothingKnown(pod));
    strangers.insert(uid);
  }
  strangers_ = std::move(strangers);
  conditions.resize(std::min(conditions.size(), most / 2));
  // Of each job those of its pods that are to say it, and the next one's turn.
  std::vector<std::pair<const JobFact*, std::vector<const PodFacts*>>> turns;
  for (const LackingJob& job : lacking) {
    if (!job.partition.has_value()) continue;
    std::vector<const PodFacts*> pods = PodsOf(board, job.fact);
    std::erase_if(pods, [](const auto* pod) { return !pod->Waiting() || SaysUnschedulable(*pod); });
    if (!pods.empty()) turns.emplace_back(&job.fact, std::move(pods));
  }
  for (size_t turn = 0; !turns.empty(); ++turn) {
    std::erase_if(turns, [turn](const auto& job) { return job.second.size() <= turn; });
    for (const auto& [fact, pods] : turns) {
      if (conditions.size() >= most) return conditions;
      conditions.push_back(Condition(*pods[turn], *fact, std::string(kubernetes::kUnschedulable)));
    }
  }
  return conditions;
}

}  // namespace fluxqueue::binder
