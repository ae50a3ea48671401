// Where a job stands, brought in step with what it is: see job_book.h.
#include <algorithm>

#include "libs/queue_core/job_book.h"
#include "libs/scheduling/aging.h"

namespace fluxqueue::queue_core {

using model::JobState;

void JobBook::Place(Entry* entry) {
  const Job& job = entry->job;
  Own(entry);
  Queue* queue = QueueOf(job.queue);
  if (entry->counted_in != queue || entry->counted_as != job.state) {
    if (entry->counted_in != nullptr) {
      --entry->counted_in->counts[static_cast<size_t>(entry->counted_as)];
    }
    ++queue->counts[static_cast<size_t>(job.state)];
    entry->counted_in = queue;
    entry->counted_as = job.state;
  }
  const bool wants = job.state == JobState::kPending && !job.hold && job.depends_on.empty();
  PlaceTimes(entry, wants);
  PlaceHeld(entry);
  PlaceAwaited(entry);
  PlaceInLine(entry, wants && entry->alarm_ms == 0 ? queue : nullptr);
}

void JobBook::Own(Entry* entry) {
  const Job& job = entry->job;
  if (entry->owner != nullptr && entry->owner->queue->name == job.queue) return;
  entry->owner = tree_.OwnerOf(job.queue, *job.user, job.workload->namespace_());
}

void JobBook::PlaceTimes(Entry* entry, bool wants) {
  const Job& job = entry->job;
  const int64_t earliest = std::max(job.not_before_ms, job.begin_ms);
  const int64_t alarm = wants && earliest > now_ms_ ? earliest : 0;
  if (entry->alarm_ms != alarm) {
    if (entry->alarm_ms != 0) alarms_.erase({entry->alarm_ms, job.submission});
    if (alarm != 0) alarms_[{alarm, job.submission}] = entry;
    entry->alarm_ms = alarm;
  }
  const int64_t expiry = job.expires_ms;
  if (entry->expiry_ms != expiry) {
    if (entry->expiry_ms != 0) expiries_.erase({entry->expiry_ms, job.submission});
    if (expiry != 0) expiries_[{expiry, job.submission}] = entry;
    entry->expiry_ms = expiry;
  }
}

std::shared_ptr<const scheduling::Resources> JobBook::AmountsOf(const Job& job, uint32_t slots) {
  return slots == job.slots ? job.amounts : amounts_(job.amounts->Part(slots, job.slots));
}

void JobBook::PlaceHeld(Entry* entry) {
  const Job& job = entry->job;
  scheduling::Owner* holder = model::kHoldingStates.Has(job.state) ? entry->owner : nullptr;
  if (holder != nullptr && IsElastic(job) && job.state != JobState::kStopping) {
    growing_[job.submission] = entry;
  } else {
    growing_.erase(job.submission);
  }
  if (MissingSlots(job) > 0) {
    replacing_[job.submission] = entry;
  } else {
    replacing_.erase(job.submission);
  }
  const auto held = holder == nullptr ? nullptr : AmountsOf(job, SlotsOf(job));
  if (entry->holder == holder && entry->held == held) return;
  if (entry->holder != nullptr) {
    tree_.GiveBack(entry->holder, *entry->held, now_ms_);
    // A move lets others go, growth nobody; of an end the matcher tells, when there is room.
    if (holder != nullptr && (holder != entry->holder || !IsElastic(job))) entered_ = true;
  }
  entry->holder = holder;
  entry->held = held;
  if (holder == nullptr) {
    holding_.erase(job.submission);
    return;
  }
  holding_[job.submission] = entry;
  tree_.Hold(holder, *entry->held, now_ms_);
}

void JobBook::PlaceAwaited(Entry* entry) {
  const Job& job = entry->job;
  if (job.depends_on.empty() && entry->awaited.empty()) return;
  for (const std::string& target : entry->awaited) dependents_.Remove(target, job.submission);
  entry->awaited.clear();
  for (const Dependency& dependency : job.depends_on) {
    // An id, or a name: both, while nobody knows.
    entry->awaited.push_back(dependency.job);
    entry->awaited.push_back(job.workload->namespace_() + "/" + dependency.job);
  }
  for (const std::string& target : entry->awaited) dependents_.Add(target, job.submission);
  if (entry->awaited.empty()) {
    by_submission_.erase(job.submission);
  } else {
    by_submission_[job.submission] = entry;
  }
}

void JobBook::PlaceInLine(Entry* entry, Queue* line) {
  const Job& job = entry->job;
  scheduling::OrderKey key{0, job.submission};
  if (line != nullptr) {
    const int64_t aging = line->config == nullptr ? 0 : line->config->aging_ms();
    key.rank = scheduling::RankOf(job.priority, std::max(job.submitted_ms, job.begin_ms), aging);
  }
  // It may start as soon as there is room for its least.
  const auto amounts =
      line == nullptr ? nullptr : AmountsOf(job, IsElastic(job) ? job.min_slots : job.slots);
  const bool same = line == nullptr || (entry->line_key == key && entry->line_amounts == amounts);
  if (entry->in_line_of == line && same) return;
  if (entry->in_line_of != nullptr) LeaveLine(entry);
  entry->in_line_of = line;
  entry->line_key = key;
  if (line == nullptr) return;
  entry->line_owner = entry->owner;
  entry->line_amounts = amounts;
  entry->amounts = entry->line_amounts.get();
  line->line.Insert(key, entry);
  entered_ = true;
  tree_.Wait(entry->line_owner, key, entry);
}

void JobBook::LeaveLine(Entry* entry) {
  left_ = true;
  entry->in_line_of->line.Erase(entry->line_key);
  tree_.NoLongerWait(entry->line_owner, entry->line_key);
  entry->in_line_of = nullptr;
  entry->line_owner = nullptr;
  entry->line_amounts = nullptr;
  entry->amounts = nullptr;
}

void JobBook::Unplace(Entry* entry) {
  if (entry->counted_in != nullptr) {
    --entry->counted_in->counts[static_cast<size_t>(entry->counted_as)];
  }
  if (entry->in_line_of != nullptr) LeaveLine(entry);
  if (entry->alarm_ms != 0) alarms_.erase({entry->alarm_ms, entry->job.submission});
  if (entry->expiry_ms != 0) expiries_.erase({entry->expiry_ms, entry->job.submission});
  if (entry->holder != nullptr) {
    tree_.GiveBack(entry->holder, *entry->held, now_ms_);
    holding_.erase(entry->job.submission);
    growing_.erase(entry->job.submission);
    replacing_.erase(entry->job.submission);
  }
  for (const std::string& target : entry->awaited) {
    dependents_.Remove(target, entry->job.submission);
  }
  if (!entry->awaited.empty()) by_submission_.erase(entry->job.submission);
  entry->awaited.clear();
  entry->counted_in = nullptr;
  entry->alarm_ms = 0;
  entry->expiry_ms = 0;
  entry->holder = nullptr;
  entry->held = nullptr;
}

}  // namespace fluxqueue::queue_core
