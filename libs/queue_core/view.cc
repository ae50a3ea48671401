#include "libs/queue_core/view.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace fluxqueue::queue_core {
namespace {

// Jobs of another queue wait, or hold something.
bool OthersUsePool(const JobBook& book, const Queue& queue) {
  const bool wait = std::any_of(book.served().begin(), book.served().end(), [&](const auto& one) {
    return one.second != &queue && !one.second->line.empty();
  });
  if (wait) return true;
  uint32_t others_hold = 0;
  for (const auto& [name, node] : book.tree().nodes()) {
    if (node->parent == nullptr) others_hold += node->total.running;
    if (name != queue.name) continue;
    // With those of the queues below it.
    others_hold -= node->total.running;
    for (const auto* child : node->children) others_hold += child->total.running;
  }
  return others_hold > 0;
}

}  // namespace

const scheduling::Strategy& StrategyOf(const Queue& queue) {
  return *scheduling::FindStrategy(queue.config->strategy());
}

const events::v1::QueueConfigured* View::ConfigOf(const std::string& queue) const {
  const auto it = book.queues().find(queue);
  return it == book.queues().end() ? nullptr : it->second->config.get();
}

bool View::MayKnow(const Job& told, const Job& other) const {
  if (!HasRules(model::kNamesNoOthers)) return true;
  const std::string& space = told.workload->namespace_();
  return space == other.workload->namespace_() && (!space.empty() || *told.user == *other.user);
}

std::string View::NameFor(const Job& told, const Job& other) const {
  if (MayKnow(told, other)) return fmt::format("job {}", FullName(other));
  return other.slots == 1 ? "a job of one slot" : fmt::format("a job of {} slots", other.slots);
}

const scheduling::Strategy& View::StrategyInForce(const Queue& queue) const {
  const scheduling::Strategy& strategy = StrategyOf(queue);
  if (!strategy.is_adaptive || !HasRules(model::kAdaptiveStepsBack)) return strategy;
  const bool shares = queue.config->order() == "fair-share" || OthersUsePool(book, queue);
  return shares ? *scheduling::FindStrategy("easy") : strategy;
}

scheduling::PassOptions View::PassNow() const {
  scheduling::PassOptions options = {
      .now_ms = state.now_ms,
      .beginning_ms = state.beginning_ms,
      .capacity = state.capacity == nullptr ? scheduling::Resources() : *state.capacity,
      .guarantees_all = !IsIndependent(),
      .has_accounts = HasAccounts(),
      .guarantees_others = GuaranteesOthers()};
  for (const auto& billing : config().billing()) {
    const std::string_view shared =
        scheduling::SharedName(scheduling::SharedIndex(billing.resource()));
    options.billing.emplace(shared.empty() ? billing.resource() : std::string(shared),
                            static_cast<double>(billing.weight_milli()) / 1000);
  }
  return options;
}

bool View::Backfills() const {
  return std::any_of(book.served().begin(), book.served().end(), [](const auto& served) {
    return !StrategyOf(*served.second).stops_at_first_blocked;
  });
}

bool View::HasSeveralLines() const {
  if (!IsIndependent()) return false;
  return 1 < std::count_if(book.served().begin(), book.served().end(), [](const auto& served) {
           return !served.second->line.empty();
         });
}

}  // namespace fluxqueue::queue_core
