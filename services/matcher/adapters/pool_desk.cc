#include "services/matcher/adapters/pool_desk.h"

#include <algorithm>
#include <iterator>

#include "libs/base/status_macros.h"

namespace fluxqueue::matcher {
namespace {

// How often overdue questions are looked for.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

absl::Status PoolDesk::NotHeld(const std::string& pool) {
  return Unavailable("pool {} is not held by this replica, or there is no such pool", pool);
}

PoolDesk::PoolDesk(std::function<void()> wake)
    : wake_(std::move(wake)), expirer_([this](const std::stop_token& stop) { Expire(stop); }) {}

void PoolDesk::Ask(std::string pool, TimePoint deadline, Question question) {
  absl::Status refused;
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || closed_) {
      refused = NotHeld(pool);
    } else if (questions_.size() >= kMostQuestions) {
      refused = MakeStatus(absl::StatusCode::kResourceExhausted,
                           "{} questions wait already; call again",
                           kMostQuestions);
    } else {
      questions_.push_back({std::move(pool), deadline, std::move(question)});
      asked_.notify_one();
    }
  }
  if (refused.ok()) {
    wake_();
  } else {
    question(refused);
  }
}

bool PoolDesk::empty() const {
  const std::lock_guard lock(mutex_);
  return questions_.empty();
}

std::vector<PoolDesk::Asked> PoolDesk::Take() {
  const std::lock_guard lock(mutex_);
  std::vector<Asked> taken(std::make_move_iterator(questions_.begin()),
                           std::make_move_iterator(questions_.end()));
  questions_.clear();
  return taken;
}

void PoolDesk::Expire(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!asked_.wait(lock, stop, [this] { return !questions_.empty(); })) return;
    asked_.wait_for(lock, stop, kLook, [] { return false; });
    const auto now = std::chrono::steady_clock::now();
    std::vector<Asked> overdue;
    for (Asked& asked : questions_) {
      if (asked.deadline <= now) overdue.push_back(std::move(asked));
    }
    std::erase_if(questions_, [](const Asked& asked) { return asked.question == nullptr; });
    lock.unlock();
    for (const Asked& asked : overdue) {
      asked.question(
          MakeStatus(absl::StatusCode::kDeadlineExceeded,
                     "pool {} could not be asked in time: what the matcher needs (Kafka, "
                     "Postgres) may be away, see its /readyz",
                     asked.pool));
    }
    lock.lock();
  }
}

void PoolDesk::Watch(const std::string& pool, Watcher watcher) {
  std::vector<Watcher>& watchers = watchers_[pool];
  std::erase_if(watchers, [](const Watcher& other) { return other.ended(); });
  watchers.push_back(std::move(watcher));
}

void PoolDesk::Tell(const std::string& pool,
                    const PoolAtHand* at_hand,
                    const std::vector<graph::AllocationKey>& changed) {
  const auto found = watchers_.find(pool);
  if (found == watchers_.end()) return;
  std::erase_if(found->second, [](const Watcher& watcher) { return watcher.ended(); });
  for (const Watcher& watcher : found->second) watcher.tell(at_hand, changed);
  if (found->second.empty() || at_hand == nullptr) watchers_.erase(found);
}

void PoolDesk::Open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void PoolDesk::Shut() {
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  for (const Asked& asked : Take()) asked.question(NotHeld(asked.pool));
}

void PoolDesk::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (const Asked& asked : Take()) asked.question(Unavailable("the matcher stops"));
}

}  // namespace fluxqueue::matcher
