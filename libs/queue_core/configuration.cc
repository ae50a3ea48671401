// Queues, windows, the pool's configuration, and what the matcher says besides its answers.
#include <algorithm>
#include <utility>

#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/windows.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

using model::JobState;

namespace {

template <typename Config>
bool AreSame(const Config& a, const Config& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

bool IsSet(const PoolState& state, const events::v1::WindowConfigured& window) {
  return state.windows != nullptr &&
         std::ranges::any_of(*state.windows, [&window](const auto& one) {
           return one.window() == window.window() && AreSame(one, window);
         });
}

}  // namespace

void QueueCore::Impl::OnQueueConfigured(const events::v1::QueueConfigured& configured) {
  const std::string& name = configured.queue();
  const bool existed = book_.Exists(name);
  if (configured.deleted()) {
    if (!existed) {
      ++out_->stale;
      return;
    }
    // Started jobs go on; those that wait, wait for the queue to come back.
    const std::vector<Entry*> waiting = book_.JobsOf(name, JobState::kPending);
    book_.Configure(name, nullptr);
    ConfigureAdaptive(name);
    for (Entry* entry : waiting) {
      Job& job = book_.Edit(entry);
      Disown(job);
      SetWaiting(job, reason::kNoQueue, "");
      Say(entry);
    }
    return;
  }
  // Configurations are said again and again, should the log have lost one.
  const bool may_know = view_.HasRules(model::kAsksForTheLost);
  if (may_know && existed && AreSame(*book_.QueueOf(name)->config, configured)) return;
  book_.Configure(name, std::make_shared<const events::v1::QueueConfigured>(configured));
  ConfigureAdaptive(name);
  PlaceRunning(name);
  // Other limits, another strategy, others that may be stopped: who was refused may be let in.
  state_.ask_again = true;
  // Other limits may let somebody grow.
  if (!book_.growing().empty()) state_.growth = Growth::kDue;
  if (existed) return;
  for (Entry* entry : book_.JobsOf(name, JobState::kSubmitted)) {
    SetWaiting(book_.Edit(entry), reason::kQueued, "in line");
    Say(entry);
  }
}

bool QueueCore::Impl::HasHindsight() const {
  // A virtual machine that does not know nodes starts gangs that no node has gpus for.
  const bool has_gpus = state_.capacity != nullptr && (*state_.capacity)[scheduling::kGpu] > 0;
  return view_.HasRules(model::kAdaptiveHindsight) && !has_gpus;
}

void QueueCore::Impl::ConfigureAdaptive(const std::string& name) {
  const auto& config = book_.QueueOf(name)->config;
  const bool on = config != nullptr && scheduling::FindStrategy(config->strategy())->is_adaptive;
  adaptive_.Configure(name,
                      on,
                      HasHindsight(),
                      state_.capacity == nullptr ? scheduling::Resources() : *state_.capacity,
                      &book_,
                      state_.now_ms,
                      [this](const Job& job) { return planning_.ExpectedDuration(job); });
}

void QueueCore::Impl::OnPoolConfigured(const events::v1::PoolConfigured& configured) {
  if (view_.HasRules(model::kAsksForTheLost) && AreSame(config(), configured)) return;
  state_.config = std::make_shared<const events::v1::PoolConfigured>(configured);
  book_.tree().CountOthers(view_.HasAccounts());
  adaptive_.SetHindsight(HasHindsight());
  for (const auto& [order, queue] : book_.served()) PlaceRunning(queue->name);
  // Another policy or other levels may find room where there was none.
  state_.ask_again = true;
  if (view_.IsIndependent()) ComeBack();
}

void QueueCore::Impl::ComeBack() {
  for (Entry* entry : book_.SetAside()) {
    book_.Edit(entry).not_before_ms = 0;
    Place(entry);
  }
}

void QueueCore::Impl::OnInventoryChanged(const events::v1::InventoryChanged& changed) {
  const bool first_sync = changed.synced() && !state_.synced;
  if (first_sync) state_.synced = true;
  if (changed.grew() || first_sync) {
    state_.room_changed = true;
    ComeBack();
  }
  if (changed.nodes_up() < state_.nodes_up) state_.lost_node = changed.node();
  state_.nodes_up = changed.nodes_up();
  if (!changed.capacity().empty()) {
    state_.capacity =
        std::make_shared<const scheduling::Resources>(ToResources(changed.capacity()));
    adaptive_.SetCapacity(*state_.capacity, book_, state_.now_ms);
    adaptive_.SetHindsight(HasHindsight());
  }
  for (const events::v1::AllocationKey& key : changed.broken()) OnNodeGone(key, changed.node());
}

void QueueCore::Impl::OnReleased(const events::v1::Released& released) {
  if (!released.nothing_held()) state_.room_changed = true;
  // The last release names no slots: those that do were asked for before it.
  if (released.slots_size() == 0 &&
      book_.EndedAttempt(released.key().job_id()) == released.key().attempt()) {
    book_.Confirm(released.key().job_id());
  }
}

void QueueCore::Impl::PlaceRunning(const std::string& queue) {
  for (Entry* entry : book_.JobsOf(queue, JobState::kRunning)) {
    const int64_t expires_ms = planning_.ExpiryOf(entry->job);
    if (expires_ms == entry->job.expires_ms) continue;
    book_.Edit(entry).expires_ms = expires_ms;
    book_.Place(entry);
  }
}

void QueueCore::Impl::OnWindowConfigured(const events::v1::WindowConfigured& configured) {
  if (view_.HasRules(model::kAsksForTheLost) && IsSet(state_, configured)) return;
  std::optional<Windows> windows = WithWindow(state_, configured);
  if (!windows.has_value()) {
    ++out_->stale;
    return;
  }
  if (!configured.deleted() && configured.end_ms() > state_.now_ms) {
    state_.window_set = configured.window();
  }
  SetWindows(*std::move(windows));
}

void QueueCore::Impl::SetWindows(Windows windows) {
  state_.windows = windows.empty() ? nullptr : std::make_shared<const Windows>(std::move(windows));
  state_.ask_again = true;
}

}  // namespace fluxqueue::queue_core
