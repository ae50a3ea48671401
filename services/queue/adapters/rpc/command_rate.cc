#include "services/queue/adapters/rpc/command_rate.h"

#include <algorithm>
#include <cmath>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

constexpr std::chrono::minutes kBetweenSweeps(1);

absl::Status TooOften(const std::string& of, const CommandRate::Bound& bound) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    "{} has had {} commands, and more than one in {} s since: call again later",
                    of,
                    bound.burst,
                    1 / bound.each_second);
}

}  // namespace

double CommandRate::Left(const Buckets& buckets,
                         const std::string& key,
                         const Bound& bound,
                         TimePoint now) {
  const auto found = buckets.find(key);
  if (found == buckets.end()) return bound.burst;
  const std::chrono::duration<double> passed = now - found->second.at;
  return std::min(bound.burst, found->second.left + passed.count() * bound.each_second);
}

absl::Status CommandRate::Take(std::string_view user, const std::string& job, TimePoint now) {
  if (user.empty()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  Sweep(now);
  const std::string name(user);
  const double of_user = Left(users_, name, kOfUser, now);
  if (of_user < 1) return TooOften(fmt::format("user '{}'", name), kOfUser);
  if (!job.empty()) {
    const double of_job = Left(jobs_, job, kOfJob, now);
    if (of_job < 1) return TooOften(fmt::format("job {}", job), kOfJob);
    jobs_[job] = {of_job - 1, now};
  }
  users_[name] = {of_user - 1, now};
  return absl::OkStatus();
}

void CommandRate::Sweep(TimePoint now) {
  if (now - swept_ < kBetweenSweeps) return;
  swept_ = now;
  const auto drop_full = [now](Buckets* buckets, const Bound& bound) {
    std::erase_if(*buckets, [&](const auto& entry) {
      return Left(*buckets, entry.first, bound, now) >= bound.burst;
    });
  };
  drop_full(&users_, kOfUser);
  drop_full(&jobs_, kOfJob);
}

size_t CommandRate::size() const {
  const std::lock_guard lock(mutex_);
  return users_.size() + jobs_.size();
}

}  // namespace fluxqueue::queue
