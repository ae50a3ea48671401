// What the jobs of a queue, of a namespace in it, or of a user in it may hold at a time, and which
// limit holds a job back. Pure, thread-compatible.
//
// A job counts in its queue and in every queue above it, and at each of these levels as the
// queue's, its namespace's and its user's. It may be tried when none of these limits is against it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/scheduling/budgets.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::scheduling {

// Unset: no limit.
struct Limits {
  std::optional<uint32_t> running_jobs{};
  // Those that may stand in line; the rest is held back from it.
  std::optional<uint32_t> queued_jobs{};
  std::array<std::optional<int64_t>, kShared> shared{};
  std::vector<std::pair<std::string, int64_t>> others{};
  // Used, less what the half-life has made forgotten.
  std::optional<int64_t> gpu_seconds{};

  // Of a resource as it is written: gpus whole.
  void Limit(std::string_view resource, int64_t amount);
  bool none() const;

  friend bool operator==(const Limits&, const Limits&) = default;
};

// What counts against a limit.
struct Standing {
  const Resources& held;
  uint32_t running = 0;
  double gpu_seconds = 0;
  // Named already in the pass under way, and so perhaps running soon.
  const Resources& planned;
  uint32_t named = 0;
};

// The limit that holds a job back.
struct Held {
  enum class Kind {
    kRunningJobs,
    kQueuedJobs,
    kAmount,
    kNeverFits,
    kGpuSeconds,
    kTooLarge,  // for one job of the queue
    kTooSmall,
    kBudget,  // limit is hours
  };
  Kind kind = Kind::kRunningJobs;
  std::string resource;  // of amounts and budgets
  int64_t limit = 0;
  int64_t used = 0;
  int64_t asked = 0;  // of amounts
  // Only what is named in this pass is against it, and may not start: no answer for people yet.
  bool soon = false;
  Period period = Period::kMonth;  // of a budget

  // Those behind it in its line wait too: they would take what it waits for. Else what holds it
  // back is its own, or passes by time alone.
  bool StopsItsLine() const {
    return kind == Kind::kRunningJobs || kind == Kind::kQueuedJobs || kind == Kind::kAmount ||
           kind == Kind::kGpuSeconds;
  }
};

// The first that is against it, in the order of the struct; unset: none. O(limits that are set).
std::optional<Held> FirstAgainst(const Limits& limits,
                                 const Standing& standing,
                                 const Resources& asked);

// The same of what one job may ask for at most and is to ask for at least.
std::optional<Held> SizeAgainst(const Limits& most, const Resources& least, const Resources& asked);

// The first budget that is used up and holds, and of whose resource something is asked. `spent`: as
// SpentOf gives it.
std::optional<Held> BudgetAgainst(const std::vector<Budget>& budgets,
                                  const std::vector<Spent>& spent,
                                  const Resources& asked);

// How many times `each`, up to `most`, the limits of amounts and of gpu-hours leave room for.
uint32_t TimesWithin(const Limits& limits,
                     const Standing& standing,
                     const Resources& each,
                     uint32_t most);

// Whose limit it is.
enum class Level { kQueue, kNamespace, kUser };

// "user ann runs 4 of at most 4 jobs in queue research". `name` is the user's or the namespace's.
std::string Sentence(const Held& held,
                     Level level,
                     std::string_view name,
                     std::string_view queue,
                     int64_t half_life_ms);

}  // namespace fluxqueue::scheduling
