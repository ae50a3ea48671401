#include "services/admission/domain/queue_rules.h"

#include <vector>

#include "libs/kubernetes/labels.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {

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

}  // namespace fluxqueue::admission
