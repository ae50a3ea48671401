// Who is tried in a cycle (cycle_plan.h), with the virtual machines of adaptive queues brought to
// this moment; and who is not tried, because a limit holds it back.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {

using events::v1::CycleRequested;
using scheduling::HeldJob;
using scheduling::Pass;

const Entry* QueueCore::Impl::FirstToTry() {
  if (book_.Head() == nullptr) return nullptr;
  Pass pass(&book_.tree(), view_.PassNow());
  return static_cast<const Entry*>(pass.Next());
}

std::vector<std::string> QueueCore::Impl::LackNodes() {
  std::vector<std::string> ids;
  if (!state_.synced) return ids;
  std::map<uint64_t, const Entry*> unsatisfiable;
  Pass pass(&book_.tree(), view_.PassNow());
  for (size_t looked = 0; looked < kLooked; ++looked) {
    const auto* entry = static_cast<const Entry*>(pass.Next());
    if (entry == nullptr) break;
    const Job& job = entry->job;
    // It is tried again, as there are other nodes: until then it lacks them.
    if (job.reason == reason::kUnsatisfiable) unsatisfiable[job.submission] = entry;
    const bool tried = job.reason == reason::kBusy || job.reason == reason::kReserved;
    if (!tried || job.slots_now >= (IsElastic(job) ? job.min_slots : job.slots)) continue;
    ids.push_back(job.id);
    pass.Close(entry->in_line_of->name);
  }
  for (const auto& [when, entry] : book_.alarms()) {
    const Job& job = entry->job;
    if (job.reason == reason::kUnsatisfiable) unsatisfiable[job.submission] = entry;
  }
  std::set<std::pair<std::string, std::string>> users;
  for (const auto& [submission, entry] : unsatisfiable) {
    const Job& job = entry->job;
    if (IsClaim(job) || !users.emplace(job.queue, *job.user).second) continue;
    scheduling::WaitingJob asks;
    asks.amounts = job.amounts.get();
    if (HeldBack(*entry->owner, asks, state_.now_ms).has_value()) continue;
    ids.push_back(job.id);
  }
  return ids;
}

std::unordered_set<const Entry*> QueueCore::Impl::PreferAdaptive(Pass* pass) {
  std::unordered_set<const Entry*> passers;
  if (adaptive_.empty()) return passers;
  const scheduling::PassOptions now = view_.PassNow();
  int64_t used = 0;
  for (const auto& [name, node] : book_.tree().nodes()) {
    if (node->parent == nullptr) used += scheduling::SizeOf(node->total.held, now.capacity);
  }
  for (const auto& [order, queue] : book_.served()) {
    scheduling::Adaptive* rule = adaptive_.Find(queue->name);
    if (rule == nullptr || queue->line.empty()) continue;
    const scheduling::Adaptive::Choice choice =
        rule->Choose(now.now_ms, scheduling::kWholePool - used, DepthOf(queue->config.get()));
    if (!view_.StrategyInForce(*queue).is_adaptive) continue;
    std::vector<Pass::Preferred> preferred;
    const auto prefer = [&preferred, queue = queue](scheduling::OrderKey key) {
      Entry* entry = queue->line.Find(key);
      CHECK(entry != nullptr, "submission {} is in no line", key.submission);
      preferred.push_back({entry->line_owner, entry});
      return entry;
    };
    for (const scheduling::OrderKey key : choice.passers) passers.insert(prefer(key));
    for (const scheduling::OrderKey key : choice.pinned) {
      if (passers.count(queue->line.Find(key)) == 0) prefer(key);
    }
    pass->Prefer(queue->name, std::move(preferred));
  }
  return passers;
}

void QueueCore::Impl::ChooseCandidates(CycleRequested* cycle) {
  if (state_.suspects != nullptr) {
    Pass pass(&book_.tree(), view_.PassNow());
    state_.growth = planner_.Plan(PreferAdaptive(&pass), &pass, cycle);
    if (!cycle->candidates().empty()) return;
    // None of them may go now: who is to blame is found when they are tried again.
    SetSuspects({}, 0);
    cycle->Clear();
  }
  Pass pass(&book_.tree(), view_.PassNow());
  const std::unordered_set<const Entry*> passers = PreferAdaptive(&pass);
  state_.growth = planner_.Plan(passers, &pass, cycle);
  state_.limits_due_ms = pass.due_ms().value_or(0);
  SayHeldBack(pass.held());
}

void QueueCore::Impl::SayHeldBack(const std::vector<HeldJob>& held) {
  for (const HeldJob& job : held) {
    // What is only named may not start: then it is no answer for people.
    if (job.held.soon) continue;
    const Job& known = static_cast<const Entry*>(job.job)->job;
    const bool said = known.reason == reason::kLimit;
    if (said && state_.now_ms - known.updated_ms < kSentenceIntervalMs) continue;
    std::string sentence = job.Sentence();
    if (said && known.message == sentence) continue;
    Entry* entry = book_.Find(known.id);
    Job& changed = book_.Edit(entry);
    changed.reason = reason::kLimit;
    changed.message = std::move(sentence);
    changed.start_ms = 0;
    Say(entry);
  }
}

}  // namespace fluxqueue::queue_core
