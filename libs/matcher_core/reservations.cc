// What was promised is kept: reservations from one cycle to the next.
//
// The naive way is to plan anew in each cycle, in the order of the line. A plan made anew on nodes
// may put a job elsewhere than the last one did, which delays others for no reason that anybody
// could be told; and it is a search for every job in every cycle. Instead, what a job has reserved
// stays reserved, and the line is gone through in its order:
//
// - A job with a reservation is only looked at again when something has come free that it did not
//   know of (a job ended early, nodes came), or when its time has come. Then its own reservation is
//   dropped and it is matched beside those of all others, whether it could start earlier. If not,
//   it has again what it had. So nobody is delayed by that, and holes are filled in the order of
//   the line (compression, as in Mu'alem and Feitelson, "Utilization, Predictability, Workloads,
//   and User Runtime Estimates", IEEE TPDS 12(6), 2001).
// - A job without one that stands ahead of others with one is in its right: it is tried beside
//   theirs first, and then as if they had none. If that is what it needed, theirs are void, and
//   they are planned anew when their turn comes. That is how a job of a higher priority delays
//   others.
// - Whoever is no candidate any more, or may not reserve any more, loses its reservation.
// - By a rule that plans anew, what the last plan reserved stays only as long as the same would be
//   planned again: nothing has come free, nothing overran, and the line is as it was. From the
//   first that stands elsewhere on, all are void, and so are those behind one that starts late and
//   is better off without them. With true durations most cycles keep most.
//
// A reservation on a node that is lost, or has less than it had, is void, and all are when windows
// change. While the inventory changes none of them is on the graph.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/batch.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;
using events::v1::Slip;

namespace {

// Of one that may not reserve any more, as it is not the first of its queue: who is. Empty: it is
// no candidate, and its queue knows why.
std::string FirstOfItsLine(const events::v1::CycleRequested& request, const AllocationKey& key) {
  if (request.version() < model::kFirmPromises) return "";
  const auto& all = request.candidates();
  const auto it = std::find_if(all.begin(), all.end(), [&key](const Candidate& candidate) {
    return candidate.job_id() == key.job_id && candidate.attempt() == key.attempt &&
           candidate.part() == key.part;
  });
  if (it == all.end()) return "";
  return std::find_if(all.begin(),
                      all.end(),
                      [&it](const Candidate& candidate) { return candidate.rule() == it->rule(); })
      ->job_id();
}

int64_t Lasting(int64_t duration_s) {
  return duration_s == 0 ? graph::kForever : duration_s;
}

}  // namespace

class MatcherCore::LastPlan {
 public:
  LastPlan(const MatcherCore& core, int64_t now_s)
      : order_(core.plan_),
        reservations_(core.reservations_.map()),
        stands_(!core.state_.room_came() && core.engine_->Overran(now_s).empty()) {}

  // The next of the line that has a reservation, for so long. Whether all so far are as they were
  // planned.
  bool Follows(const AllocationKey& key, int64_t duration_s) {
    while (next_ < order_.size() && !reservations_.contains(order_[next_])) ++next_;
    stands_ = stands_ && next_ < order_.size() && order_[next_] == key &&
              reservations_.at(key).duration_s == duration_s;
    ++next_;
    return stands_;
  }

 private:
  const std::vector<AllocationKey>& order_;
  const std::map<AllocationKey, graph::Placement>& reservations_;
  size_t next_ = 0;
  bool stands_;
};

void MatcherCore::TakeUpReservations(Cycle* cycle) {
  cycle->room_came = state_.room_came();
  LastPlan plan(*this, cycle->request.now_s());
  // As many by each rule as may reserve.
  std::unordered_map<const graph::Placement*, const Candidate*> candidates;
  std::vector<uint32_t> by_rule(cycle->reserved.size());
  for (const Candidate& candidate : cycle->request.candidates()) {
    if (!MayReserve(*cycle, candidate)) continue;
    const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
    const graph::Placement* reservation = reservations_.Find(key);
    if (reservation == nullptr) continue;
    const auto& rule = cycle->request.rules(static_cast<int>(candidate.rule()));
    if (!plan.Follows(key, candidate.duration_s()) && rule.plans_anew()) {
      Lose(key, SlipBy(Slip::CAUSE_PLAN, ""));
      continue;
    }
    const bool has_more = by_rule[candidate.rule()]++ < rule.most_reservations();
    if (!has_more && !candidate.overdue()) {
      Lose(key, SlipBy(Slip::CAUSE_AHEAD, cycle->promised.back().job_id));
      continue;
    }
    if (candidates.emplace(reservation, &candidate).second) {
      cycle->promised.push_back(key);
    }
  }
  for (auto next = reservations_.map().begin(); next != reservations_.map().end();) {
    const graph::Placement& promised = next->second;
    const auto candidate = candidates.find(&promised);
    const bool stands = candidate != candidates.end();
    const int64_t duration_s = stands ? candidate->second->duration_s() : 0;
    const bool same = stands && duration_s == promised.duration_s;
    const auto reservation = next++;
    if (same && reservations_up_) continue;
    const AllocationKey key = reservation->first;
    engine_->DropReservation(key);
    graph::Placement again = promised;
    again.duration_s = duration_s;
    const bool fits = stands && Lasting(duration_s) <= Lasting(promised.duration_s);
    if (fits && engine_->Reserve(key, again)) {
      if (!same) reservations_.Put(key, std::move(again));
    } else {
      // It may not reserve any more, its nodes are not free in time, or it asks for more time.
      if (!stands) {
        Lose(key, SlipBy(Slip::CAUSE_AHEAD, FirstOfItsLine(cycle->request, key)));
      } else {
        Lose(key,
             fits ? WhyNotInTime(*cycle, *candidate->second, promised)
                  : SlipBy(Slip::CAUSE_COMMAND, ""));
      }
      reservations_.Put(key, std::nullopt);
      std::erase(cycle->promised, key);
    }
    cycle->room_came |= !same || !reservations_.Has(key);
  }
  std::reverse(cycle->promised.begin(), cycle->promised.end());
  reservations_up_ = true;
}

std::vector<AllocationKey> MatcherCore::PlanOf(const events::v1::CycleAnswered& answer) {
  std::vector<AllocationKey> plan;
  for (const Outcome& outcome : answer.outcomes()) {
    if (outcome.kind() != Outcome::KIND_RESERVED) continue;
    plan.push_back({outcome.job_id(), outcome.attempt(), outcome.part()});
  }
  return plan;
}

void MatcherCore::Forget(const AllocationKey& key, Cycle* cycle) {
  engine_->DropReservation(key);
  reservations_.Put(key, std::nullopt);
  cycle->RoomCame();
}

bool MatcherCore::MatchReserved(const Candidate& candidate,
                                const graph::Jobspec& jobspec,
                                Cycle* cycle,
                                Outcome* outcome) {
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  if (!MayReserve(*cycle, candidate)) {
    // Those ahead have all that its rule gives.
    const bool named = candidate.rule() < cycle->last_reserved.size();
    Lose(key, SlipBy(Slip::CAUSE_AHEAD, named ? cycle->last_reserved[candidate.rule()] : ""));
    Forget(key, cycle);
    return false;
  }
  const graph::Placement& known = reservations_.map().at(key);
  const bool due = known.start_s <= cycle->request.now_s();
  const graph::Outcome kept{graph::OutcomeKind::kReserved, nullptr, known.start_s};
  if (!MayPreempt(candidate) && !due && !cycle->room_came) {
    NotAllocated(candidate, jobspec, kept, cycle, outcome);
    return true;
  }
  const graph::Placement promised = known;
  const Slip by_this = SlipBy(Slip::CAUSE_AHEAD, key.job_id);
  if (MayPreempt(candidate)) {
    engine_->DropReservation(key);
    const auto preempt = [&]() { return Preempt(candidate, jobspec, cycle, outcome); };
    if (PassThoseBehind(by_this, cycle, preempt)) {
      // It gives up what it was promised for their room, which it has sooner, if they end in time.
      if (!outcome->victims().empty()) {
        Lose(key, SlipBy(Slip::CAUSE_OVERRUN, outcome->victims(0).job_id()));
      }
      Forget(key, cycle);
      return true;
    }
    CHECK(engine_->Reserve(key, promised), "job {}", key.job_id);
  }
  if (!due && !cycle->room_came) {
    NotAllocated(candidate, jobspec, kept, cycle, outcome);
    return true;
  }
  graph::MatchRequest request = RequestOf(*cycle, candidate, jobspec);
  if (!due) request.before_s = promised.start_s;
  graph::Outcome matched;
  std::optional<graph::Placement> placed;
  const auto match = [&]() {
    matched = engine_->Match(request);
    if (matched.placement != nullptr) placed = *matched.placement;
    return placed.has_value();
  };
  const bool anew = cycle->request.rules(static_cast<int>(candidate.rule())).plans_anew();
  if (anew && promised.start_s != request.now_s) {
    PassThoseBehind(by_this, cycle, match);
  } else {
    match();
    // Its time is over without it, and those behind have theirs by now: it is in its right.
    const bool is_late = cycle->IsIndependent() && promised.start_s < request.now_s;
    if (is_late && matched.kind != graph::OutcomeKind::kAllocated) {
      placed.reset();
      PassThoseBehind(WhyNotInTime(*cycle, candidate, promised), cycle, match);
    }
  }
  if (matched.kind == graph::OutcomeKind::kAllocated) {
    reservations_.Put(key, std::nullopt);
    const bool as_promised = promised.start_s == request.now_s && placed->slots == promised.slots;
    if (!as_promised) cycle->RoomCame();
    Allocated(key, *cycle, outcome);
    return true;
  }
  if (due) Lose(key, WhyNotInTime(*cycle, candidate, promised));
  if (matched.kind == graph::OutcomeKind::kReserved) {
    reservations_.Put(key, *std::move(placed));
    cycle->RoomCame();
    NotAllocated(candidate, jobspec, matched, cycle, outcome);
  } else if (due) {
    Forget(key, cycle);
    NotAllocated(candidate, jobspec, matched, cycle, outcome);
  } else {
    CHECK(engine_->Reserve(key, promised), "job {}", key.job_id);
    NotAllocated(candidate, jobspec, kept, cycle, outcome);
  }
  return true;
}

bool MatcherCore::PassThoseBehind(const Slip& slip,
                                  Cycle* cycle,
                                  const std::function<bool()>& match) {
  for (const AllocationKey& key : cycle->promised) engine_->DropReservation(key);
  if (!match()) {
    for (const AllocationKey& key : cycle->promised) {
      CHECK(engine_->Reserve(key, reservations_.map().at(key)), "job {}", key.job_id);
    }
    return false;
  }
  for (const AllocationKey& key : std::exchange(cycle->promised, {})) {
    Lose(key, slip);
    Forget(key, cycle);
  }
  return true;
}

void MatcherCore::PutAwayReservations() {
  if (!std::exchange(reservations_up_, false)) return;
  engine_->DropReservations();
}

void MatcherCore::ForgetReservationsOf(const std::string& job_id) {
  auto next = reservations_.map().lower_bound(AllocationKey{job_id, 0, 0});
  while (next != reservations_.map().end() && next->first.job_id == job_id) {
    const AllocationKey key = (next++)->first;
    Lose(key, SlipBy(Slip::CAUSE_COMMAND, ""));
    engine_->DropReservation(key);
    reservations_.Put(key, std::nullopt);
    state_.set_room_came(true);
  }
}

void MatcherCore::ForgetReservationsOn(const std::string& node) {
  for (auto next = reservations_.map().begin(); next != reservations_.map().end();) {
    const auto& [key, placement] = *next++;
    const bool on_it = std::any_of(
        placement.slots.begin(), placement.slots.end(), [&node](const graph::PlacedSlot& slot) {
          return slot.node == node;
        });
    if (!on_it) continue;
    Lose(key, SlipBy(Slip::CAUSE_NODE, node));
    reservations_.Put(AllocationKey(key), std::nullopt);
    state_.set_room_came(true);
  }
}

void MatcherCore::ForgetReservations(const Slip& slip) {
  while (!reservations_.empty()) {
    const AllocationKey key = reservations_.map().begin()->first;
    Lose(key, slip);
    reservations_.Put(key, std::nullopt);
  }
  state_.set_room_came(true);
}

}  // namespace fluxqueue::matcher_core
