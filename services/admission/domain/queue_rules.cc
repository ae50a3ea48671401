#include "services/admission/domain/queue_rules.h"

#include <algorithm>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/scheduling/limits.h"
#include "services/admission/domain/workload_messages.h"

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {

namespace {

std::string NameOf(std::string_view user) {
  return user.empty() ? "a user who is not known" : fmt::format("user '{}'", user);
}

std::string Of(std::string_view key, std::string_view problem) {
  return fmt::format("{}: {}", key, problem);
}

// The queue's own limit. `asked_ms`: 0, unlimited; unset, the queue's default.
std::optional<std::string> DurationProblem(std::optional<int64_t> asked_ms,
                                           const kubernetes::FluxQueue& queue) {
  const int64_t max = queue.max_duration_ms.value_or(0);
  if (!asked_ms && queue.undeclared_duration == "refuse") {
    return fmt::format(
        "{}: it is not there, and FluxQueue '{}' wants it: say how long it may run{}",
        kubernetes::kDurationKey,
        queue.meta.name,
        max == 0 ? "" : fmt::format(", up to {}s", max / 1000));
  }
  if (max == 0 || !asked_ms) return std::nullopt;
  if (*asked_ms > 0 && *asked_ms <= max) return std::nullopt;
  return fmt::format("{}: {} is more than FluxQueue '{}' allows; allowed: up to {}s",
                     kubernetes::kDurationKey,
                     *asked_ms == 0 ? "unlimited" : fmt::format("{}s", (*asked_ms + 999) / 1000),
                     queue.meta.name,
                     max / 1000);
}

// The class that a job goes by; null: none.
absl::StatusOr<const kubernetes::QosClass*> ClassOf(const Asked& asked,
                                                    const kubernetes::FluxQueue& queue,
                                                    const QueuesByName& queues) {
  if (!asked.qos.empty()) {
    const kubernetes::QosClass* named = FindQos(asked.qos, queue, queues);
    if (named != nullptr) return named;
    std::vector<std::string_view> names;
    for (const kubernetes::FluxQueue* at : WayUp(queue, queues)) {
      for (const kubernetes::QosClass& klass : at->qos) names.push_back(klass.name);
    }
    return InvalidArgument("{}: '{}': FluxQueue '{}' has no such class of QOS; allowed: {}",
                           kubernetes::kQosKey,
                           asked.qos,
                           queue.meta.name,
                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  for (const kubernetes::FluxQueue* at : WayUp(queue, queues)) {
    if (!at->default_qos.empty()) return FindQos(at->default_qos, queue, queues);
  }
  return nullptr;
}

// How long a job may run, where that has an end; 0: it has none.
int64_t EndOf(const Asked& asked, const kubernetes::FluxQueue& queue) {
  const int64_t undeclared_ms = queue.BoundsUndeclared() ? queue.max_duration_ms.value_or(0) : 0;
  return DurationOf(asked.submission).value_or(undeclared_ms);
}

std::optional<std::string> QosProblem(const Asked& asked,
                                      const kubernetes::FluxQueue& queue,
                                      const QueuesByName& queues) {
  const absl::StatusOr<const kubernetes::QosClass*> found = ClassOf(asked, queue, queues);
  if (!found.ok()) return Message(found.status());
  if (*found == nullptr) return std::nullopt;
  const kubernetes::QosClass& klass = **found;
  if (!klass.members.Include(asked.user, asked.space.name)) {
    return fmt::format(
        "{}: class '{}' is for its members, and namespace '{}' and {} are none; name another "
        "class, "
        "or have one of them added",
        kubernetes::kQosKey,
        klass.name,
        asked.space.name,
        NameOf(asked.user));
  }
  const int32_t priority = asked.submission.priority();
  if (klass.max_priority && priority > *klass.max_priority) {
    return fmt::format("{}: {} is more than class '{}' of QOS allows; allowed: up to {}",
                       kubernetes::kPriorityKey,
                       priority,
                       klass.name,
                       *klass.max_priority);
  }
  const int64_t end_ms = EndOf(asked, queue);
  const int64_t most_ms = klass.max_duration_ms.value_or(0);
  if (most_ms > 0 && (end_ms == 0 || end_ms > most_ms)) {
    return fmt::format("{}: {} is more than class '{}' of QOS allows; allowed: up to {}s",
                       kubernetes::kDurationKey,
                       end_ms == 0 ? "unlimited" : fmt::format("{}s", (end_ms + 999) / 1000),
                       klass.name,
                       most_ms / 1000);
  }
  scheduling::Limits limits;
  for (const auto& [resource, amount] : klass.most) limits.Limit(resource, amount);
  scheduling::Resources amounts;
  for (const events::v1::Amount& amount : asked.submission.spec().amounts()) {
    amounts.Add(amount.resource(), amount.amount());
  }
  const auto held = scheduling::SizeAgainst(limits, {}, amounts);
  if (!held) return std::nullopt;
  return fmt::format("{}: it asks for {} {}, and class '{}' of QOS allows a job at most {}",
                     kubernetes::kQosKey,
                     held->resource,
                     scheduling::FormatAmount(held->resource, held->asked),
                     klass.name,
                     scheduling::FormatAmount(held->resource, held->limit));
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

const kubernetes::QosClass* FindQos(std::string_view name,
                                    const kubernetes::FluxQueue& queue,
                                    const QueuesByName& queues) {
  for (const kubernetes::FluxQueue* at : WayUp(queue, queues)) {
    const auto found = std::find_if(
        at->qos.begin(), at->qos.end(), [name](const auto& klass) { return klass.name == name; });
    if (found != at->qos.end()) return &*found;
  }
  return nullptr;
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
  const access::Maker maker{asked.user, asked.space.name, asked.space.labels};
  if (auto problem = access::TakesProblem(maker, way)) return Of(kubernetes::kQueueKey, *problem);
  const bool admitted = asked.admitted_to == queue.meta.name;
  if (auto problem = access::SubmitProblem(asked.user, asked.groups, way); problem && !admitted) {
    return Of(kubernetes::kQueueKey, *problem);
  }
  if (auto problem =
          access::PriorityProblem(asked.submission.priority(), asked.priority_before, way)) {
    return Of(kubernetes::kPriorityKey, *problem);
  }
  if (auto problem = DurationProblem(DurationOf(asked.submission), queue)) return problem;
  return QosProblem(asked, queue, queues);
}

std::optional<std::string> QuotaProblem(const Asked& asked,
                                        const kubernetes::FluxQueue& queue,
                                        const QueuesByName& queues,
                                        const UsageBySpace& usage) {
  const auto bytes = static_cast<int64_t>(asked.submission.spec().jobspec().size());
  for (const kubernetes::FluxQueue* at : WayUp(queue, queues)) {
    const kubernetes::NamespaceQuota& quota = at->namespace_quota;
    if (quota.empty()) continue;
    const auto counts_here = [&](std::string_view name) {
      const auto other = queues.find(name);
      if (other == queues.end()) return false;
      const auto way = WayUp(other->second, queues);
      return std::find(way.begin(), way.end(), at) != way.end();
    };
    const Usage used = UsageOf(usage, asked.space.name, counts_here);
    const Usage before = counts_here(asked.counted_in) ? asked.counted : Usage{};
    const Usage then{.jobs = used.jobs - before.jobs + 1,
                     .jobspec_bytes = used.jobspec_bytes - before.jobspec_bytes + bytes};
    if (quota.jobs && before.jobs == 0 && then.jobs > *quota.jobs) {
      return fmt::format(
          "{}: namespace '{}' has {} jobs in FluxQueue '{}' that have not ended, and may have {} "
          "(spec.namespaceQuota.jobs); wait for some to end, delete some, or have it raised",
          kubernetes::kQueueKey,
          asked.space.name,
          used.jobs,
          at->meta.name,
          *quota.jobs);
    }
    if (quota.jobspec_bytes && bytes > before.jobspec_bytes &&
        then.jobspec_bytes > *quota.jobspec_bytes) {
      return fmt::format(
          "{}: with this one, of {} bytes, the jobspecs of namespace '{}' in FluxQueue '{}' would "
          "have {} bytes, and may have {} (spec.namespaceQuota.jobspecBytes); wait for jobs to "
          "end, delete some, shorten their node affinity, or have it raised",
          kubernetes::kQueueKey,
          bytes,
          asked.space.name,
          at->meta.name,
          then.jobspec_bytes,
          *quota.jobspec_bytes);
    }
  }
  return std::nullopt;
}

}  // namespace fluxqueue::admission
