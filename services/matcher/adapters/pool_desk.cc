#include "services/matcher/adapters/pool_desk.h"

#include <iterator>

namespace fluxqueue::matcher {

void PoolDesk::Ask(std::string pool, Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (open_) {
      questions_.emplace_back(std::move(pool), std::move(question));
      question = nullptr;
    }
  }
  if (question) {
    question(nullptr);
  } else {
    wake_();
  }
}

bool PoolDesk::empty() const {
  const std::lock_guard lock(mutex_);
  return questions_.empty();
}

std::vector<std::pair<std::string, PoolDesk::Question>> PoolDesk::Take() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Question>> taken(std::make_move_iterator(questions_.begin()),
                                                      std::make_move_iterator(questions_.end()));
  questions_.clear();
  return taken;
}

void PoolDesk::Watch(const std::string& pool, Watcher watcher) {
  watchers_[pool].push_back(std::move(watcher));
}

void PoolDesk::Tell(const std::string& pool,
                    const PoolAtHand* at_hand,
                    const std::vector<graph::AllocationKey>& changed) {
  const auto found = watchers_.find(pool);
  if (found == watchers_.end()) return;
  std::erase_if(found->second, [&](const Watcher& watcher) { return !watcher(at_hand, changed); });
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
  for (const auto& [pool, question] : Take()) question(nullptr);
}

}  // namespace fluxqueue::matcher
