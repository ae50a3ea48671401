#include "libs/matcher_core/reservations.h"

#include <algorithm>
#include <map>

#include "libs/base/check.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/promises.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Outcome;
using events::v1::Slip;

namespace {

// Whether what the last cycle planned would be planned again, candidate by candidate.
class LastPlan {
 public:
  LastPlan(const View& view, int64_t now_s)
      : view_(view), stands_(!view.state.room_came() && view.engine.Overran(now_s).empty()) {}

  // The next of the line that has a reservation, for so long. Whether all up to this one are as
  // they were planned.
  bool Follows(const AllocationKey& key, int64_t duration_s) {
    while (next_ < view_.plan.size() && !view_.promises.Has(view_.plan[next_])) ++next_;
    stands_ = stands_ && next_ < view_.plan.size() && view_.plan[next_] == key &&
              view_.promises.Find(key)->duration_s == duration_s;
    ++next_;
    return stands_;
  }

 private:
  const View& view_;
  size_t next_ = 0;
  bool stands_;
};

// Of one that may not reserve any more, as it is not the first of its queue: who is. Empty: it is
// no candidate, and its queue knows why.
std::string FirstOfItsLine(const CycleRequested& request, const AllocationKey& key) {
  if (!HasFirmPromises(request)) return "";
  const auto& all = request.candidates();
  const auto it = std::find_if(all.begin(), all.end(), [&key](const Candidate& candidate) {
    return candidate.job_id() == key.job_id && candidate.attempt() == key.attempt &&
           candidate.part() == key.part;
  });
  if (it == all.end()) return "";
  const auto first = std::find_if(all.begin(), all.end(), [&it](const Candidate& candidate) {
    return candidate.rule() == it->rule() && !candidate.replace();
  });
  return first == all.end() ? "" : first->job_id();
}

int64_t Lasting(int64_t duration_s) {
  return duration_s == 0 ? graph::kForever : duration_s;
}

}  // namespace

std::vector<AllocationKey> PlanOf(const CycleAnswered& answer) {
  std::vector<AllocationKey> plan;
  for (const Outcome& outcome : answer.outcomes()) {
    if (outcome.kind() != Outcome::KIND_RESERVED) continue;
    plan.push_back({outcome.job_id(), outcome.attempt(), outcome.part()});
  }
  return plan;
}

Reservations::Reservations(const CycleRequested& request,
                           const View& view,
                           PromiseBook* promises,
                           graph::Engine* engine)
    : request_(request),
      view_(view),
      promises_(*promises),
      engine_(*engine),
      quota_(request),
      last_(static_cast<size_t>(request.rules_size())) {}

void Reservations::TakeUp() {
  room_came_ = view_.state.room_came();
  const Standing standing = ThoseThatStand();
  for (auto next = promises_.map().begin(); next != promises_.map().end();) {
    const auto& [key, promise] = *next++;
    const auto it = standing.find(&promise);
    const Candidate* candidate = it == standing.end() ? nullptr : it->second;
    const bool same = candidate != nullptr && candidate->duration_s() == promise.duration_s;
    if (!same || !promises_.are_up()) TakeUpOne(AllocationKey(key), candidate);
  }
  std::reverse(behind_.begin(), behind_.end());
  promises_.SetUp();
}

Reservations::Standing Reservations::ThoseThatStand() {
  Standing standing;
  LastPlan plan(view_, request_.now_s());
  // As many by each rule as may reserve.
  const ReservationQuota none_given(request_);
  ReservationQuota given(request_);
  for (const Candidate& candidate : request_.candidates()) {
    if (!none_given.Allows(candidate)) continue;
    const AllocationKey key = KeyOf(candidate);
    const graph::Placement* promise = promises_.Find(key);
    if (promise == nullptr) continue;
    if (!plan.Follows(key, candidate.duration_s()) && RuleOf(request_, candidate)->plans_anew()) {
      Lose(key, SlipBy(Slip::CAUSE_PLAN, ""));
      continue;
    }
    const bool has_more = given.Allows(candidate);
    given.Count(candidate);
    if (!has_more) {
      Lose(key, SlipBy(Slip::CAUSE_AHEAD, behind_.back().job_id));
      continue;
    }
    if (standing.emplace(promise, &candidate).second) behind_.push_back(key);
  }
  return standing;
}

void Reservations::TakeUpOne(const AllocationKey& key, const Candidate* candidate) {
  engine_.DropReservation(key);
  if (candidate == nullptr) {
    Lose(key, SlipBy(Slip::CAUSE_AHEAD, FirstOfItsLine(request_, key)));
  } else {
    const graph::Placement& promise = *promises_.Find(key);
    const bool same = candidate->duration_s() == promise.duration_s;
    const bool fits = Lasting(candidate->duration_s()) <= Lasting(promise.duration_s);
    graph::Placement again = promise;
    again.duration_s = candidate->duration_s();
    if (fits && engine_.Reserve(key, again)) {
      if (same) return;
      promises_.Put(key, std::move(again));
      room_came_ = true;
      return;
    }
    // Its nodes are not free in time, or it asks for more time.
    Lose(key,
         fits ? WhyNotInTime(view_, request_.now_s(), /*kept_for=*/"", *candidate, promise)
              : SlipBy(Slip::CAUSE_COMMAND, ""));
  }
  promises_.Erase(key);
  std::erase(behind_, key);
  room_came_ = true;
}

bool Reservations::TakeTurn(const Candidate& candidate) {
  if (behind_.empty() || behind_.back() != KeyOf(candidate)) return false;
  behind_.pop_back();
  return true;
}

bool Reservations::PassThoseBehind(const Slip& slip, const std::function<bool()>& match) {
  for (const AllocationKey& key : behind_) engine_.DropReservation(key);
  if (!match()) {
    for (const AllocationKey& key : behind_) Reserve(key);
    return false;
  }
  for (const AllocationKey& key : std::exchange(behind_, {})) {
    Lose(key, slip);
    Forget(key);
  }
  return true;
}

void Reservations::Count(const Candidate& candidate) {
  quota_.Count(candidate);
  last_[candidate.rule()] = candidate.job_id();
  if (first_.empty()) first_ = candidate.job_id();
}

std::string Reservations::LastOfItsRule(const Candidate& candidate) const {
  return candidate.rule() < last_.size() ? last_[candidate.rule()] : "";
}

void Reservations::Forget(const AllocationKey& key) {
  engine_.DropReservation(key);
  promises_.Erase(key);
  RoomCame();
}

void Reservations::Reserve(const AllocationKey& key) {
  CHECK(engine_.Reserve(key, *promises_.Find(key)), "job {}", key.job_id);
}

void Reservations::RoomCame() {
  room_came_ = true;
  room_came_late_ |= !first_.empty();
}

}  // namespace fluxqueue::matcher_core
