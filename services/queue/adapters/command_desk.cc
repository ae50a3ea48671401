#include "services/queue/adapters/command_desk.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fluxqueue::queue {

const char* Name(ErrandResult::Outcome outcome) {
  switch (outcome) {
    case ErrandResult::Outcome::kDone:
      return "done";
    case ErrandResult::Outcome::kRepeated:
      return "repeated";
    case ErrandResult::Outcome::kNotHeld:
      return "not_held";
    case ErrandResult::Outcome::kNotLive:
      return "not_live";
    case ErrandResult::Outcome::kRefused:
      return "refused";
    case ErrandResult::Outcome::kLate:
      return "late";
    case ErrandResult::Outcome::kFull:
      return "full";
  }
  return "?";
}

void CommandDesk::Put(Errand errand) {
  {
    std::unique_lock lock(mutex_);
    if (!open_ || errands_.size() >= kMost) {
      const auto outcome = open_ ? ErrandResult::Outcome::kFull : ErrandResult::Outcome::kNotHeld;
      lock.unlock();
      return errand.done({.outcome = outcome});
    }
    errands_.push_back(std::move(errand));
  }
  wake_();
}

bool CommandDesk::empty() const {
  const std::lock_guard lock(mutex_);
  return errands_.empty();
}

std::vector<Errand> CommandDesk::Take(size_t max) {
  const std::lock_guard lock(mutex_);
  const auto end = errands_.begin() + static_cast<std::ptrdiff_t>(std::min(max, errands_.size()));
  std::vector<Errand> taken(std::make_move_iterator(errands_.begin()),
                            std::make_move_iterator(end));
  errands_.erase(errands_.begin(), end);
  return taken;
}

void CommandDesk::Return(std::vector<Errand> errands) {
  const std::lock_guard lock(mutex_);
  errands_.insert(errands_.begin(),
                  std::make_move_iterator(errands.begin()),
                  std::make_move_iterator(errands.end()));
}

void CommandDesk::Open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void CommandDesk::Shut() {
  std::deque<Errand> left;
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    left.swap(errands_);
  }
  for (const Errand& errand : left) errand.done({.outcome = ErrandResult::Outcome::kNotHeld});
}

}  // namespace fluxqueue::queue
