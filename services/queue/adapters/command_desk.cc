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

size_t CommandDesk::BytesOf(const Errand& errand) {
  return errand.command.has_value() ? errand.command->ByteSizeLong() : 0;
}

void CommandDesk::Put(Errand errand) {
  const size_t bytes = BytesOf(errand);
  {
    std::unique_lock lock(mutex_);
    const bool full = errands_.size() >= kMost || bytes_ >= kMostBytes;
    if (!open_ || full) {
      const auto outcome = open_ ? ErrandResult::Outcome::kFull : ErrandResult::Outcome::kNotHeld;
      if (open_) ++times_full_;
      lock.unlock();
      return errand.done({.outcome = outcome});
    }
    bytes_ += bytes;
    errands_.push_back(std::move(errand));
  }
  wake_();
}

size_t CommandDesk::size() const {
  const std::lock_guard lock(mutex_);
  return errands_.size();
}

uint64_t CommandDesk::times_full() const {
  const std::lock_guard lock(mutex_);
  return times_full_;
}

std::vector<Errand> CommandDesk::Take(size_t max) {
  const std::lock_guard lock(mutex_);
  const auto end = errands_.begin() + static_cast<std::ptrdiff_t>(std::min(max, errands_.size()));
  std::vector<Errand> taken(std::make_move_iterator(errands_.begin()),
                            std::make_move_iterator(end));
  errands_.erase(errands_.begin(), end);
  for (const Errand& errand : taken) bytes_ -= BytesOf(errand);
  return taken;
}

void CommandDesk::Return(std::vector<Errand> errands) {
  const std::lock_guard lock(mutex_);
  for (const Errand& errand : errands) bytes_ += BytesOf(errand);
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
    bytes_ = 0;
  }
  for (const Errand& errand : left) errand.done({.outcome = ErrandResult::Outcome::kNotHeld});
}

}  // namespace fluxqueue::queue
