#include "services/queue/adapters/fact_feed.h"

#include <algorithm>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

constexpr size_t kMostWatchers = 256;
constexpr ptrdiff_t kMostOfOne = 32;

absl::Status NotHeld(const std::string& pool) {
  return Unavailable("pool {} is not held by this replica (any more): call again", pool);
}

}  // namespace

FactFeed::FactFeed() : expirer_([this](const std::stop_token& stop) { ExpireWaiters(stop); }) {}

FactFeed::~FactFeed() {
  Close();
}

void FactFeed::Changed(const std::vector<JobSeen>& jobs) {
  std::vector<std::pair<Done, events::v1::JobFact>> done;
  std::vector<std::pair<std::shared_ptr<FactWatcher>, const events::v1::JobFact*>> told;
  {
    const std::lock_guard lock(mutex_);
    if (watchers_.empty() && waiters_.empty()) return;
    for (const JobSeen& job : jobs) {
      for (const auto& [watcher, watched] : watchers_) {
        if (watched.pool == job.fact.pool()) told.emplace_back(watcher, &job.fact);
      }
      std::vector<uint64_t> served;
      const auto [first, last] = by_job_.equal_range(job.fact.job_id());
      for (auto it = first; it != last; ++it) {
        if (waiters_.at(it->second).wants(job.fact)) served.push_back(it->second);
      }
      for (const uint64_t id : served) done.emplace_back(std::move(Remove(id)->done), job.fact);
    }
  }
  for (auto& [watcher, fact] : told) watcher->Changed(*fact);
  for (auto& [call, fact] : done) call(std::move(fact));
}

void FactFeed::Gained(const std::string& pool) {
  const std::lock_guard lock(mutex_);
  pools_.insert(pool);
}

void FactFeed::Lost(const std::string& pool) {
  std::vector<std::shared_ptr<FactWatcher>> ended;
  {
    const std::lock_guard lock(mutex_);
    pools_.erase(pool);
    for (const auto& [watcher, watched] : watchers_) {
      if (watched.pool == pool) ended.push_back(watcher);
    }
    for (const auto& watcher : ended) watchers_.erase(watcher);
  }
  for (const auto& watcher : ended) watcher->End(NotHeld(pool));
}

bool FactFeed::Holds(const std::string& pool) {
  const std::lock_guard lock(mutex_);
  return pools_.contains(pool);
}

absl::Status FactFeed::Watch(const std::string& pool,
                             const std::string& tenant,
                             std::shared_ptr<FactWatcher> watcher) {
  const std::lock_guard lock(mutex_);
  if (closed_ || !pools_.contains(pool)) return NotHeld(pool);
  if (watchers_.size() >= kMostWatchers) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      "{} watchers are served already, which is as many as may be; watch through "
                      "another replica, or later",
                      watchers_.size());
  }
  const auto own = std::count_if(watchers_.begin(), watchers_.end(), [&tenant](const auto& other) {
    return other.second.tenant == tenant;
  });
  if (!tenant.empty() && own >= kMostOfOne) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      "{} watches of {} are served already, which is as many as may be of one user "
                      "(of service accounts: of one namespace); end some",
                      own,
                      tenant);
  }
  watchers_.emplace(std::move(watcher), Watched{pool, tenant});
  return absl::OkStatus();
}

void FactFeed::Unwatch(const std::shared_ptr<FactWatcher>& watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

uint64_t FactFeed::Await(const std::string& job_id, TimePoint deadline, Wants wants, Done done) {
  std::unique_lock lock(mutex_);
  const uint64_t id = ++last_waiter_;
  if (closed_) {
    lock.unlock();
    done(std::nullopt);
    return id;
  }
  waiters_[id] = {job_id, deadline, std::move(wants), std::move(done)};
  by_job_.emplace(job_id, id);
  by_deadline_[{deadline, id}] = id;
  wake_.notify_one();
  return id;
}

bool FactFeed::Forget(uint64_t waiter) {
  const std::lock_guard lock(mutex_);
  return Remove(waiter).has_value();
}

// Called with mutex_ held.
std::optional<FactFeed::Waiter> FactFeed::Remove(uint64_t id) {
  const auto it = waiters_.find(id);
  if (it == waiters_.end()) return std::nullopt;
  Waiter waiter = std::move(it->second);
  waiters_.erase(it);
  by_deadline_.erase({waiter.deadline, id});
  const auto [first, last] = by_job_.equal_range(waiter.job_id);
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second != id) continue;
    by_job_.erase(entry);
    break;
  }
  return waiter;
}

void FactFeed::ExpireWaiters(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (by_deadline_.empty()) {
      wake_.wait(lock, stop, [this] { return !by_deadline_.empty(); });
      continue;
    }
    const TimePoint first = by_deadline_.begin()->first.first;
    if (std::chrono::steady_clock::now() < first) {
      wake_.wait_until(lock, stop, first, [this, first] {
        return by_deadline_.empty() || by_deadline_.begin()->first.first < first;
      });
      continue;
    }
    const std::optional<Waiter> waiter = Remove(by_deadline_.begin()->second);
    telling_ = true;
    lock.unlock();
    waiter->done(std::nullopt);
    lock.lock();
    telling_ = false;
    wake_.notify_all();
  }
}

void FactFeed::Close() {
  decltype(watchers_) watchers;
  std::vector<Done> done;
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    watchers.swap(watchers_);
    while (!waiters_.empty()) done.push_back(std::move(Remove(waiters_.begin()->first)->done));
    // Nobody is told of anything after this.
    wake_.wait(lock, [this] { return !telling_; });
  }
  for (const auto& [watcher, watched] : watchers) watcher->End(Unavailable("the service stops"));
  for (const Done& call : done) call(std::nullopt);
}

}  // namespace fluxqueue::queue
