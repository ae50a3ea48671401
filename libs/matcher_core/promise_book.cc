#include "libs/matcher_core/promise_book.h"

#include <algorithm>
#include <utility>

#include "libs/matcher_core/codec.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Slip;

Slip SlipBy(Slip::Cause cause, const std::string& by) {
  Slip slip;
  slip.set_cause(cause);
  slip.set_by(by);
  return slip;
}

void PromiseBook::Lose(const AllocationKey& key, const Slip& slip) {
  if (!model::HasRules(state_.config().rules(), model::kFirmPromises)) return;
  matcher::v1::PoolState::LostPromise* added = state_.add_lost_promises();
  *added->mutable_key() = ToProto(key);
  *added->mutable_slip() = slip;
}

bool PromiseBook::HasLost(const AllocationKey& key) const {
  const auto& lost = state_.lost_promises();
  return std::any_of(lost.begin(), lost.end(), [&key](const auto& one) {
    return one.key().job_id() == key.job_id && one.key().attempt() == key.attempt &&
           one.key().part() == key.part;
  });
}

std::map<AllocationKey, Slip> PromiseBook::TakeLost() {
  std::map<AllocationKey, Slip> lost;
  for (auto& one : *state_.mutable_lost_promises()) {
    lost.emplace(FromProto(one.key()), std::move(*one.mutable_slip()));
  }
  state_.clear_lost_promises();
  return lost;
}

void PromiseBook::PutAway(graph::Engine* engine) {
  if (std::exchange(up_, false)) engine->DropReservations();
}

void PromiseBook::Void(const AllocationKey& key, const Slip& slip) {
  Lose(key, slip);
  Erase(key);
  state_.set_room_came(true);
}

void PromiseBook::LoseOf(const std::string& job_id, graph::Engine* engine) {
  auto next = map().lower_bound(AllocationKey{job_id, 0, 0});
  while (next != map().end() && next->first.job_id == job_id) {
    const AllocationKey key = (next++)->first;
    engine->DropReservation(key);
    Void(key, SlipBy(Slip::CAUSE_COMMAND, ""));
  }
}

void PromiseBook::LoseOn(const std::string& node) {
  for (auto next = map().begin(); next != map().end();) {
    const auto& [key, placement] = *next++;
    const bool on_it = std::any_of(
        placement.slots.begin(), placement.slots.end(), [&node](const graph::PlacedSlot& slot) {
          return slot.node == node;
        });
    if (on_it) Void(AllocationKey(key), SlipBy(Slip::CAUSE_NODE, node));
  }
}

void PromiseBook::LoseAll(const Slip& slip) {
  while (!map().empty()) Void(AllocationKey(map().begin()->first), slip);
  state_.set_room_came(true);
}

void PromiseBook::Rollback(graph::Engine* engine) {
  up_ = false;
  engine->DropReservations();
  promises_.Rollback();
}

void PromiseBook::Clear() {
  promises_.Clear();
  up_ = false;
}

}  // namespace fluxqueue::matcher_core
