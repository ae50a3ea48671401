#include "libs/queue_core/replacement.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "libs/queue_core/windows.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;

namespace {

// In one cycle; the others follow in the next.
constexpr size_t kMostReplacing = 128;
// The matcher has heard by then that the node is closed, or open again.
constexpr int64_t kClosedMs = 30'000;
constexpr int64_t kAvoidedMs = 600'000;

bool IsClosed(const LostSlot& lost, int64_t now_ms) {
  return lost.closed && now_ms < lost.lost_ms + kClosedMs;
}

void NameNodes(const Job& job, int64_t now_ms, Candidate* candidate) {
  std::set<std::string> closed;
  std::set<std::string> avoided;
  for (const LostSlot& lost : LostSlots(job)) {
    if (IsClosed(lost, now_ms)) {
      closed.insert(lost.node);
    } else if (now_ms < lost.lost_ms + kAvoidedMs) {
      avoided.insert(lost.node);
    }
  }
  for (const std::string& node : closed) candidate->add_closed_nodes(node);
  for (const std::string& node : avoided) {
    if (!closed.contains(node)) candidate->add_avoided_nodes(node);
  }
}

}  // namespace

bool Replacement::Replaces(const Job& job) const {
  return view_.HasRules(model::kReplacesSlots) && job.workload->kind() == "Job" &&
         job.workload->recreatable() && (!IsElastic(job) || job.resized);
}

std::vector<LostSlot> Replacement::NewlyLost(const Job& job,
                                             const events::v1::SlotsLost& lost) const {
  std::vector<LostSlot> slots;
  if (!Replaces(job)) return slots;
  const uint32_t numbers = job.held_slots == 0 ? job.slots : job.held_slots;
  std::set<uint32_t> seen(job.released_slots.begin(), job.released_slots.end());
  for (const events::v1::SlotsLost::Lost& one : lost.slots()) {
    if (one.slot() >= numbers || !seen.insert(one.slot()).second) continue;
    slots.push_back({one.slot(), one.node(), view_.state.now_ms, one.closed()});
  }
  std::sort(slots.begin(), slots.end(), [](const LostSlot& a, const LostSlot& b) {
    return a.slot < b.slot;
  });
  return slots;
}

void Replacement::NameFirst(CycleRequested* cycle,
                            const std::function<uint32_t(const Queue*)>& rule_of) const {
  if (IsPaused()) return;
  const std::vector<const Entry*> lacking = ThoseWhoLack();
  if (lacking.empty()) return;
  size_t next = 0;
  size_t names = std::min(lacking.size(), kMostReplacing);
  if (lacking.size() > kMostReplacing) {
    while (next < lacking.size() && lacking[next]->job.submission <= view_.state.replace_after) {
      ++next;
    }
    if (view_.state.replace_left > 0) names = std::min<size_t>(names, view_.state.replace_left);
  }
  google::protobuf::RepeatedPtrField<Candidate> candidates;
  for (size_t i = 0; i < names; ++i) {
    const Entry* entry = lacking[(next + i) % lacking.size()];
    const Job& job = entry->job;
    Candidate* candidate = candidates.Add();
    candidate->set_job_id(job.id);
    candidate->set_attempt(job.attempt);
    candidate->set_rule(rule_of(entry->counted_in));
    candidate->set_grow(true);
    candidate->set_replace(true);
    candidate->set_most_slots(LiveSlots(job) + MissingSlots(job));
    NameWindows(view_.state, job, candidate);
    NameNodes(job, view_.state.now_ms, candidate);
  }
  for (Candidate& behind : *cycle->mutable_candidates()) candidates.Add(std::move(behind));
  cycle->mutable_candidates()->Swap(&candidates);
}

bool Replacement::IsDue() const {
  const int64_t at_ms = view_.state.replace_ms;
  return at_ms != 0 && at_ms <= view_.state.now_ms && !view_.book.replacing().empty();
}

bool Replacement::IsPaused() const {
  return view_.state.now_ms < view_.state.replace_paused_ms;
}

std::vector<const Entry*> Replacement::ThoseWhoLack() const {
  std::vector<const Entry*> lacking;
  for (const auto& [submission, entry] : view_.book.replacing()) {
    if (entry->counted_in->config != nullptr) lacking.push_back(entry);
  }
  return lacking;
}

uint32_t Replacement::Lacking() const {
  return static_cast<uint32_t>(ThoseWhoLack().size());
}

int64_t Replacement::TryNextAt() const {
  const int64_t now_ms = view_.state.now_ms;
  if (view_.state.replace_left > 0) return now_ms;
  int64_t next_ms = 0;
  for (const Entry* entry : ThoseWhoLack()) {
    for (const LostSlot& lost : LostSlots(entry->job)) {
      const int64_t open_ms = lost.lost_ms + kClosedMs;
      if (IsClosed(lost, now_ms) && (next_ms == 0 || open_ms < next_ms)) next_ms = open_ms;
    }
  }
  return next_ms;
}

const Entry* Replacement::Replaced(const Outcome& outcome) const {
  const Entry* entry = view_.book.Find(outcome.job_id());
  // One that is refused says what it holds: the answer that gave it more may have been abandoned.
  const bool wanted = entry != nullptr && entry->job.attempt == outcome.attempt() &&
                      view_.book.replacing().contains(entry->job.submission) &&
                      outcome.slots() > std::max(entry->job.held_slots, entry->job.slots);
  return wanted ? entry : nullptr;
}

}  // namespace fluxqueue::queue_core
