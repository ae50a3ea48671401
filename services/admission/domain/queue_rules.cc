#include "services/admission/domain/queue_rules.h"

#include <algorithm>
#include <vector>

#include "libs/access/queue_limits.h"
#include "libs/kubernetes/labels.h"
#include "services/admission/domain/workload_messages.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {

namespace {

std::string Of(std::string_view key, std::string_view problem) {
  return fmt::format("{}: {}", key, problem);
}

// Jobs of `other` may stop jobs of `queue`.
bool MayStop(const kubernetes::FluxQueue& other,
             const kubernetes::FluxQueue& queue,
             const QueuesByName& queues) {
  if (other.meta.name == queue.meta.name) return other.preempts_by_priority;
  auto theirs = WayUp(other, queues);
  auto mine = WayUp(queue, queues);
  while (!theirs.empty() && !mine.empty() && theirs.back()->meta.name == mine.back()->meta.name) {
    theirs.pop_back();
    mine.pop_back();
  }
  if (theirs.empty() || mine.empty()) return false;  // one is above the other
  const int32_t before = theirs.back()->priority.value_or(0);
  const int32_t priority = mine.back()->priority.value_or(0);
  return (other.preempts_by_priority && priority < before) ||
         (other.preempts_to_reclaim && priority <= before);
}

}  // namespace

std::string NoSuchQueue(std::string_view name,
                        const ClusterFacts::ByName<kubernetes::FluxQueue>& queues) {
  constexpr size_t kShown = 10;
  std::vector<std::string_view> names;
  for (const auto& [known, queue] : queues) {
    if (names.size() == kShown) break;
    names.push_back(known);
  }
  std::string existing = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  if (queues.size() > kShown) existing += fmt::format(" and {} more", queues.size() - kShown);
  return fmt::format(
      "{}: '{}': there is no such FluxQueue; existing: {}", kubernetes::kQueueKey, name, existing);
}

bool MayBeStopped(const kubernetes::FluxQueue& queue, const QueuesByName& queues) {
  return std::any_of(queues.begin(), queues.end(), [&](const auto& other) {
    return PoolOfObject(other.second) == PoolOfObject(queue) &&
           MayStop(other.second, queue, queues);
  });
}

std::optional<std::string> JobspecProblem(const events::v1::PartSpec& spec, size_t max_bytes) {
  const size_t bytes = spec.jobspec().size();
  if (bytes <= max_bytes) return std::nullopt;
  return fmt::format(
      "its jobspec has {} bytes, allowed are {}: shorten the node affinity, "
      "nodeSelector or tolerations",
      bytes,
      max_bytes);
}

std::optional<std::string> JobProblem(const Asked& asked,
                                      const kubernetes::FluxQueue& queue,
                                      const QueuesByName& queues) {
  const access::Way way = WayUp(queue, queues);
  // One that is in the queue stays, whomever it takes now: its user must be able to cancel it.
  const bool stays = asked.priority_before.has_value();
  const access::Maker maker{asked.user, asked.space.name, asked.space.labels};
  if (auto problem = access::TakesProblem(maker, way); problem && !stays) {
    return Of(kubernetes::kQueueKey, *problem);
  }
  const bool admitted = stays || asked.admitted_to == queue.meta.name;
  if (auto problem = access::SubmitProblem(asked.user, asked.groups, way); problem && !admitted) {
    return Of(kubernetes::kQueueKey, *problem);
  }
  if (auto problem =
          access::PriorityProblem(asked.submission.priority(), asked.priority_before, way)) {
    return Of(kubernetes::kPriorityKey, *problem);
  }
  access::AskedJob job{.user = asked.user,
                       .space = asked.space.name,
                       .qos = asked.qos,
                       .priority = asked.submission.priority(),
                       .duration_ms = DurationOf(asked.submission)};
  for (const events::v1::Amount& amount : asked.submission.spec().amounts()) {
    job.amounts.Add(amount.resource(), amount.amount());
  }
  return access::LimitProblem(job, way);
}

std::optional<std::string> QuotaProblem(const Asked& asked,
                                        const kubernetes::FluxQueue& queue,
                                        const QueuesByName& queues,
                                        const UsageBySpace& usage) {
  const auto bytes = static_cast<int64_t>(asked.submission.spec().jobspec().size());
  for (const kubernetes::FluxQueue* at : WayUp(queue, queues)) {
    if (at->namespace_quota.empty()) continue;
    const auto counts_here = [&](std::string_view name) {
      const auto other = queues.find(name);
      if (other == queues.end()) return false;
      const auto way = WayUp(other->second, queues);
      return std::find(way.begin(), way.end(), at) != way.end();
    };
    const Usage used = UsageOf(usage, asked.space.name, counts_here);
    const Usage before = counts_here(asked.counted_in) ? asked.counted : Usage{};
    if (auto problem = access::QuotaProblem(asked.space.name, bytes, before, used, *at)) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace fluxqueue::admission
