#include "services/binder/domain/waiting_pods.h"

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

// It waits, or has ended.
bool LeavesPods(const JobFact& fact) {
  const auto state = static_cast<model::JobState>(fact.state());
  return model::kWaitingStates.Has(state) || model::IsTerminal(state);
}

PodCondition Condition(const PodFacts& pod, const JobFact& fact, std::string reason) {
  return {pod.space,
          pod.name,
          pod.uid,
          std::move(reason),
          Cut(fact.message().empty() ? fact.reason() : fact.message(), kMostMessageBytes),
          fact.created_ms()};
}

}  // namespace

void WaitingPods::Learn(const JobFact& fact, Millis now) {
  // A Job that waits is suspended: it has no pods.
  const std::string& kind = fact.workload().kind();
  if (kind == "Job" || model::IsClaim(kind)) return;
  const auto known = jobs_.find(fact.job_id());
  if (!LeavesPods(fact) || fact.reason().empty()) {
    if (known == jobs_.end()) return;
    due_.erase({known->second.due, fact.job_id()});
    jobs_.erase(known);
    return;
  }
  if (known != jobs_.end()) {
    known->second.fact = fact;
    return;
  }
  if (jobs_.size() == kMostJobs) return;
  const Millis due = now + kToldAfter;
  jobs_.emplace(fact.job_id(), Entry{due, fact});
  due_.emplace(due, fact.job_id());
}

std::vector<PodCondition> WaitingPods::TakeDue(const PodBoard& board, size_t most, Millis now) {
  std::vector<PodCondition> conditions;
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto job = jobs_.find(due_.begin()->second);
    const JobFact& fact = job->second.fact;
    for (const PodFacts* pod : PodsOf(board, fact)) {
      if (!pod->Waiting() || pod->waits_because == kubernetes::kUnschedulable ||
          pod->waits_because == fact.reason()) {
        continue;
      }
      if (conditions.size() == most) return conditions;
      conditions.push_back(Condition(*pod, fact, fact.reason()));
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

std::vector<PodCondition> SayUnschedulable(const PodBoard& board,
                                           const std::vector<JobFact>& lacking) {
  std::vector<PodCondition> conditions;
  for (const JobFact& fact : lacking) {
    for (const PodFacts* pod : PodsOf(board, fact)) {
      if (!pod->Waiting() || pod->waits_because == kubernetes::kUnschedulable) continue;
      conditions.push_back(Condition(*pod, fact, std::string(kubernetes::kUnschedulable)));
    }
  }
  return conditions;
}

std::vector<const PodFacts*> WronglyUnschedulable(const PodBoard& board,
                                                  const std::vector<JobFact>& lacking) {
  std::set<const PodFacts*> rightly;
  for (const JobFact& fact : lacking) {
    const std::vector<const PodFacts*> pods = PodsOf(board, fact);
    rightly.insert(pods.begin(), pods.end());
  }
  std::vector<const PodFacts*> wrongly;
  for (const std::string& uid : board.unschedulable()) {
    const PodFacts* pod = board.Find(uid);
    if (!rightly.contains(pod)) wrongly.push_back(pod);
  }
  return wrongly;
}

std::optional<PodCondition> TakeBack(const PodFacts& pod, const JobFact* fact) {
  if (fact != nullptr && !LeavesPods(*fact)) return std::nullopt;
  if (fact == nullptr || fact->reason().empty()) {
    return PodCondition{.space = pod.space,
                        .name = pod.name,
                        .uid = pod.uid,
                        .reason = "Queued",
                        .message = "it waits in a queue: kubectl fluxqueue explain says why"};
  }
  return Condition(pod, *fact, fact->reason());
}

}  // namespace fluxqueue::binder
