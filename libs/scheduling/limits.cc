#include "libs/scheduling/limits.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace fluxqueue::scheduling {
namespace {

std::optional<Held> AmountAgainst(
    std::string_view resource, int64_t limit, int64_t held, int64_t planned, int64_t asked) {
  if (asked == 0) return std::nullopt;
  Held against{.kind = Held::Kind::kAmount,
               .resource = std::string(),
               .limit = limit,
               .used = held,
               .asked = asked};
  if (asked > limit) {
    against.kind = Held::Kind::kNeverFits;
  } else if (held <= limit - asked && planned <= limit - asked - held) {
    return std::nullopt;
  } else {
    against.soon = held <= limit - asked;
  }
  against.resource = resource;
  return against;
}

std::optional<Held> JobsAgainst(const Limits& limits, const Standing& standing) {
  const std::optional<uint32_t>& running = limits.running_jobs;
  if (running.has_value() && uint64_t{standing.running} + standing.named >= *running) {
    return Held{.kind = Held::Kind::kRunningJobs,
                .resource = "",
                .limit = *running,
                .used = standing.running,
                .asked = 0,
                .soon = standing.running < *running};
  }
  if (limits.queued_jobs.has_value() && standing.named >= *limits.queued_jobs) {
    return Held{.kind = Held::Kind::kQueuedJobs,
                .resource = "",
                .limit = *limits.queued_jobs,
                .used = standing.named};
  }
  return std::nullopt;
}

std::string SizeSentence(const Held& held,
                         std::string_view who,
                         std::string_view may,
                         std::string_view size) {
  return fmt::format(
      "it asks for {} {}, and a job of {} {} {}: make it {}, or hand it in to another queue",
      held.resource,
      FormatAmount(held.resource, held.asked),
      who,
      may,
      FormatAmount(held.resource, held.limit),
      size);
}

std::string HoursOf(int64_t seconds) {
  return fmt::format("{:.4g}", static_cast<double>(seconds) / 3600);
}

}  // namespace

void Limits::Limit(std::string_view resource, int64_t amount) {
  const size_t index = SharedIndex(resource);
  if (index < kShared) {
    Resources scaled;
    scaled.Add(resource, amount);
    shared[index] = scaled[index];
    return;
  }
  others.emplace_back(resource, std::max<int64_t>(amount, 0));
}

bool Limits::none() const {
  return !running_jobs.has_value() && !queued_jobs.has_value() && !gpu_seconds.has_value() &&
         others.empty() && std::none_of(shared.begin(), shared.end(), [](const auto& limit) {
           return limit.has_value();
         });
}

std::optional<Held> FirstAgainst(const Limits& limits,
                                 const Standing& standing,
                                 const Resources& asked) {
  if (auto held = JobsAgainst(limits, standing)) return held;
  for (size_t i = 0; i < kShared; ++i) {
    if (!limits.shared[i].has_value()) continue;
    auto held = AmountAgainst(
        SharedName(i), *limits.shared[i], standing.held[i], standing.planned[i], asked[i]);
    if (held.has_value()) return held;
  }
  for (const auto& [name, limit] : limits.others) {
    auto held = AmountAgainst(
        name, limit, standing.held.Of(name), standing.planned.Of(name), asked.Of(name));
    if (held.has_value()) return held;
  }
  // Only what asks for gpus costs any.
  if (limits.gpu_seconds.has_value() && asked[kGpu] > 0 &&
      standing.gpu_seconds >= static_cast<double>(*limits.gpu_seconds)) {
    return Held{.kind = Held::Kind::kGpuSeconds,
                .resource = "",
                .limit = *limits.gpu_seconds,
                .used = static_cast<int64_t>(standing.gpu_seconds)};
  }
  return std::nullopt;
}

std::optional<Held> SizeAgainst(const Limits& most,
                                const Resources& least,
                                const Resources& asked) {
  static const Resources nothing;
  if (!most.none()) {
    auto held = FirstAgainst(most, {.held = nothing, .planned = nothing}, asked);
    if (held.has_value()) {
      held->kind = Held::Kind::kTooLarge;
      return held;
    }
  }
  const auto below = [&asked](std::string_view resource, int64_t wanted) -> std::optional<Held> {
    if (asked.Of(resource) >= wanted) return std::nullopt;
    return Held{.kind = Held::Kind::kTooSmall,
                .resource = std::string(resource),
                .limit = wanted,
                .asked = asked.Of(resource)};
  };
  for (size_t i = 0; i < kShared; ++i) {
    if (auto held = below(SharedName(i), least[i])) return held;
  }
  for (const auto& [name, wanted] : least.others()) {
    if (auto held = below(name, wanted)) return held;
  }
  return std::nullopt;
}

std::optional<Held> BudgetAgainst(const std::vector<Budget>& budgets,
                                  const std::vector<Spent>& spent,
                                  const Resources& asked) {
  for (size_t i = 0; i < budgets.size(); ++i) {
    const Budget& budget = budgets[i];
    const bool is_used_up = HoursOf(spent[i]) >= static_cast<double>(budget.hours);
    if (!budget.holds || !is_used_up || asked.Of(budget.resource) == 0) continue;
    return Held{.kind = Held::Kind::kBudget,
                .resource = budget.resource,
                .limit = budget.hours,
                .period = budget.period};
  }
  return std::nullopt;
}

uint32_t TimesWithin(const Limits& limits,
                     const Standing& standing,
                     const Resources& each,
                     uint32_t most) {
  const auto take = [&most](int64_t limit, int64_t held, int64_t planned, int64_t of_each) {
    if (of_each == 0) return;
    const int64_t left = held >= limit || planned >= limit - held ? 0 : limit - held - planned;
    most = static_cast<uint32_t>(std::min<int64_t>(most, left / of_each));
  };
  for (size_t i = 0; i < kShared; ++i) {
    if (!limits.shared[i].has_value()) continue;
    take(*limits.shared[i], standing.held[i], standing.planned[i], each[i]);
  }
  for (const auto& [name, limit] : limits.others) {
    take(limit, standing.held.Of(name), standing.planned.Of(name), each.Of(name));
  }
  const bool used_up = limits.gpu_seconds.has_value() && each[kGpu] > 0 &&
                       standing.gpu_seconds >= static_cast<double>(*limits.gpu_seconds);
  return used_up ? 0 : most;
}

std::string Sentence(const Held& held,
                     Level level,
                     std::string_view name,
                     std::string_view queue,
                     int64_t half_life_ms) {
  const std::string who = level == Level::kQueue ? fmt::format("queue {}", queue)
                          : level == Level::kUser
                              ? fmt::format("user {}", name.empty() ? "(not known)" : name)
                              : fmt::format("namespace {}", name.empty() ? "(none)" : name);
  const std::string where = level == Level::kQueue ? "" : fmt::format(" in queue {}", queue);
  switch (held.kind) {
    case Held::Kind::kRunningJobs:
      return fmt::format("{} runs {} of at most {} jobs{}", who, held.used, held.limit, where);
    case Held::Kind::kQueuedJobs:
      return fmt::format(
          "{} has {} of at most {} jobs in line{}", who, held.used, held.limit, where);
    case Held::Kind::kAmount:
      return fmt::format("{} holds {} {} of at most {}{}, and this job asks for {}",
                         who,
                         held.resource,
                         FormatAmount(held.resource, held.used),
                         FormatAmount(held.resource, held.limit),
                         where,
                         FormatAmount(held.resource, held.asked));
    case Held::Kind::kNeverFits:
      return fmt::format(
          "it asks for {} {}, and {} may hold at most {}{}: make it smaller, or "
          "raise the limit",
          held.resource,
          FormatAmount(held.resource, held.asked),
          who,
          FormatAmount(held.resource, held.limit),
          where);
    case Held::Kind::kTooLarge:
      return SizeSentence(held, who, "may ask for at most", "smaller");
    case Held::Kind::kTooSmall:
      return SizeSentence(held, who, "is to ask for at least", "larger");
    case Held::Kind::kBudget:
      // Without what was used beyond it, which grows as long as others run.
      return fmt::format(
          "{} has used up its budget of {} {}-hours for this {} (UTC); jobs that ask for {} go on "
          "with the next",
          who,
          held.limit,
          held.resource,
          PeriodName(held.period),
          held.resource);
    case Held::Kind::kGpuSeconds:
      break;
  }
  const std::string forgotten =
      half_life_ms == 0
          ? ""
          : fmt::format("; half of it is forgotten each {} h", HoursOf(half_life_ms / 1000));
  return fmt::format("{} has used {} of at most {} gpu-hours{}{}",
                     who,
                     HoursOf(held.used),
                     HoursOf(held.limit),
                     where,
                     forgotten);
}

}  // namespace fluxqueue::scheduling
