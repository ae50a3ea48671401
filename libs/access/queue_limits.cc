#include "libs/access/queue_limits.h"

#include <algorithm>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/scheduling/limits.h"

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::access {
namespace {

std::string NameOf(std::string_view user) {
  return user.empty() ? "a user who is not known" : fmt::format("user '{}'", user);
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
absl::StatusOr<const kubernetes::QosClass*> ClassOf(const AskedJob& asked, const Way& way) {
  if (!asked.qos.empty()) {
    const kubernetes::QosClass* named = FindQos(asked.qos, way);
    if (named != nullptr) return named;
    std::vector<std::string_view> names;
    for (const kubernetes::FluxQueue* at : way) {
      for (const kubernetes::QosClass& klass : at->qos) names.push_back(klass.name);
    }
    return InvalidArgument("{}: '{}': FluxQueue '{}' has no such class of QOS; allowed: {}",
                           kubernetes::kQosKey,
                           asked.qos,
                           way.front()->meta.name,
                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  for (const kubernetes::FluxQueue* at : way) {
    if (!at->default_qos.empty()) return FindQos(at->default_qos, way);
  }
  return nullptr;
}

// How long a job may run, where that has an end; 0: it has none.
int64_t EndOf(const AskedJob& asked, const kubernetes::FluxQueue& queue) {
  const int64_t undeclared_ms = queue.BoundsUndeclared() ? queue.max_duration_ms.value_or(0) : 0;
  return asked.duration_ms.value_or(undeclared_ms);
}

std::optional<std::string> QosProblem(const AskedJob& asked, const Way& way) {
  const absl::StatusOr<const kubernetes::QosClass*> found = ClassOf(asked, way);
  if (!found.ok()) return Message(found.status());
  if (*found == nullptr) return std::nullopt;
  const kubernetes::QosClass& klass = **found;
  if (!klass.members.Include(asked.user, asked.space)) {
    return fmt::format(
        "{}: class '{}' is for its members, and namespace '{}' and {} are none; name another "
        "class, or have one of them added",
        kubernetes::kQosKey,
        klass.name,
        asked.space,
        NameOf(asked.user));
  }
  if (klass.max_priority && asked.priority > *klass.max_priority) {
    return fmt::format("{}: {} is more than class '{}' of QOS allows; allowed: up to {}",
                       kubernetes::kPriorityKey,
                       asked.priority,
                       klass.name,
                       *klass.max_priority);
  }
  const int64_t end_ms = EndOf(asked, *way.front());
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
  const auto held = scheduling::SizeAgainst(limits, {}, asked.amounts);
  if (!held) return std::nullopt;
  return fmt::format("{}: it asks for {} {}, and class '{}' of QOS allows a job at most {}",
                     kubernetes::kQosKey,
                     held->resource,
                     scheduling::FormatAmount(held->resource, held->asked),
                     klass.name,
                     scheduling::FormatAmount(held->resource, held->limit));
}

}  // namespace

const kubernetes::QosClass* FindQos(std::string_view name, const Way& way) {
  for (const kubernetes::FluxQueue* at : way) {
    const auto found = std::find_if(
        at->qos.begin(), at->qos.end(), [name](const auto& klass) { return klass.name == name; });
    if (found != at->qos.end()) return &*found;
  }
  return nullptr;
}

std::optional<std::string> LimitProblem(const AskedJob& asked, const Way& way) {
  if (auto problem = DurationProblem(asked.duration_ms, *way.front())) return problem;
  return QosProblem(asked, way);
}

std::optional<std::string> QuotaProblem(std::string_view space,
                                        int64_t bytes,
                                        const JobUse& before,
                                        const JobUse& used,
                                        const kubernetes::FluxQueue& queue) {
  const kubernetes::NamespaceQuota& quota = queue.namespace_quota;
  const JobUse then{.jobs = used.jobs - before.jobs + 1,
                    .jobspec_bytes = used.jobspec_bytes - before.jobspec_bytes + bytes};
  if (quota.jobs && before.jobs == 0 && then.jobs > *quota.jobs) {
    return fmt::format(
        "{}: namespace '{}' has {} jobs in FluxQueue '{}' that have not ended, and may have {} "
        "(spec.namespaceQuota.jobs); wait for some to end, delete some, or have it raised",
        kubernetes::kQueueKey,
        space,
        used.jobs,
        queue.meta.name,
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
        space,
        queue.meta.name,
        then.jobspec_bytes,
        *quota.jobspec_bytes);
  }
  return std::nullopt;
}

}  // namespace fluxqueue::access
