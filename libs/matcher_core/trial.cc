#include "libs/matcher_core/trial.h"

#include <optional>
#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/keeping.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/promises.h"
#include "libs/matcher_core/windows.h"
#include "libs/model/no_jobspec.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;
using events::v1::Slip;

namespace {

bool AwaitsOthers(const Outcome& outcome) {
  return outcome.victims_size() > 0 || outcome.vacate_size() > 0;
}

void SayVictims(const Victims& victims, Outcome* outcome) {
  size_t slots = 0;
  for (const AllocationKey& key : victims.stopped) *outcome->add_victims() = ToProto(key);
  for (const SlotsOf& some : victims.vacated) {
    events::v1::HeldSlots* vacate = outcome->add_vacate();
    *vacate->mutable_key() = ToProto(some.key);
    for (const uint32_t slot : some.slots) vacate->add_slots(slot);
    slots += some.slots.size();
  }
  const size_t stopped = victims.stopped.size();
  std::vector<std::string> whats;
  if (stopped > 0) {
    whats.push_back(fmt::format("{} {} given back what {} by being stopped",
                                stopped,
                                stopped == 1 ? "job has" : "jobs have",
                                stopped == 1 ? "it holds" : "they hold"));
  }
  if (slots > 0) {
    const size_t jobs = victims.vacated.size();
    whats.push_back(fmt::format("{} elastic {} given back {} {}",
                                jobs,
                                jobs == 1 ? "job has" : "jobs have",
                                slots,
                                slots == 1 ? "slot" : "slots"));
  }
  outcome->set_reason(fmt::format("starts when {}", fmt::join(whats, " and ")));
}

}  // namespace

void SayWho(const Candidate& candidate, Outcome* outcome) {
  outcome->set_job_id(candidate.job_id());
  outcome->set_attempt(candidate.attempt());
  outcome->set_part(candidate.part());
}

Trial::Trial(const CycleRequested& request,
             const View& view,
             Reservations* reservations,
             AllocationRows* rows,
             graph::Engine* engine)
    : request_(request),
      view_(view),
      reservations_(*reservations),
      rows_(*rows),
      engine_(*engine),
      closed_(view, request.now_s(), *reservations, engine),
      explainer_(view, request.now_s(), closed_, *reservations),
      elastic_(request.now_s(), &refusals_, &closed_, engine),
      replacement_(view, request.now_s(), reservations, &closed_, engine),
      victims_(Line{request, view, *reservations, closed_, *engine}) {
  for (const Candidate& candidate : request.candidates()) closed_.Prepare(candidate);
}

void Trial::Try(const Candidate& candidate, Outcome* outcome) {
  SayWho(candidate, outcome);
  const Spec* spec = view_.specs.Find(SpecKey(candidate.job_id(), candidate.part()));
  const graph::Jobspec* jobspec = spec == nullptr ? nullptr : spec->jobspec.get();
  const bool is_elastic = jobspec != nullptr && jobspec->min_slots != 0;
  const AllocationKey key = KeyOf(candidate);
  const bool promised = reservations_.TakeTurn(candidate);
  closed_.CloseTo(candidate);
  const std::optional<graph::Jobspec> preferring = Preferring(candidate, jobspec);
  const graph::Jobspec* wanted = preferring.has_value() ? &*preferring : jobspec;
  if (candidate.replace()) {
    TryReplacement(candidate, wanted, outcome);
  } else if (candidate.grow()) {
    TryGrowth(candidate, wanted, outcome);
  } else if (const graph::Placement* held = engine_.Find(key); held != nullptr) {
    outcome->set_kind(Outcome::KIND_ALLOCATED);
    outcome->set_at_s(held->start_s);
    outcome->set_placement_hash(PlacementHash(ToProto(*held)));
    if (is_elastic) outcome->set_slots(static_cast<uint32_t>(held->slots.size()));
  } else if (jobspec == nullptr) {
    outcome->set_kind(Outcome::KIND_INVALID);
    outcome->set_reason(spec != nullptr ? spec->error : model::NoJobspec(candidate.part()));
  } else if (!jobspec->pods.AreNone() &&
             !model::HasRules(view_.state.config().rules(), model::kPodRules)) {
    outcome->set_kind(Outcome::KIND_INVALID);
    outcome->set_reason(fmt::format(
        "jobspec: rules between pods are kept by rules {} and later; pool {} goes by {}",
        model::kPodRules,
        view_.pool,
        view_.state.config().rules()));
  } else if (engine_.nodes() == 0) {
    outcome->set_kind(Outcome::KIND_BUSY);
    outcome->set_reason(
        fmt::format("pool {} has no nodes{}", view_.pool, view_.state.synced() ? "" : " yet"));
  } else if (is_elastic) {
    TryElastic(candidate, *wanted, promised, outcome);
    return;
  } else if (IsPlacedOneByOne(*jobspec)) {
    PlaceOneByOne(candidate, *jobspec, outcome);
  } else {
    Match(candidate, *wanted, promised, outcome);
    if (outcome->kind() == Outcome::KIND_ALLOCATED) {
      Rearrange(candidate, *jobspec, promised, outcome);
    }
    return;
  }
  if (promised) reservations_.Forget(key);
}

void Trial::TryElastic(const Candidate& candidate,
                       const graph::Jobspec& jobspec,
                       bool promised,
                       Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  const graph::Jobspec least = graph::WithSlots(jobspec, jobspec.min_slots);
  const uint32_t most = MostSlots(candidate, jobspec);
  // Where nothing came free, what is promised is as early as it can be.
  const bool stays = promised && !reservations_.room_came() &&
                     view_.promises.Find(key)->start_s > request_.now_s();
  if (most > least.slots && !stays &&
      !refusals_.Has(closed_.RefusedAs(least, candidate), DurationOf(candidate))) {
    const graph::Jobspec all = graph::WithSlots(jobspec, most);
    engine_.Match(StartNow(request_, candidate, all));
    if (promised && engine_.Find(key) != nullptr) {
      reservations_.Forget(key);
    } else if (promised) {
      reservations_.Reserve(key);
    }
  }
  if (engine_.Find(key) == nullptr) {
    Match(candidate, least, promised, outcome);
    if (outcome->kind() != Outcome::KIND_ALLOCATED) return;
    elastic_.TakeMore(candidate, jobspec);
  }
  SayHolds(key, outcome);
}

void Trial::TryGrowth(const Candidate& candidate, const graph::Jobspec* jobspec, Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  const auto grow = [&]() {
    return jobspec->min_slots == 0 ? replacement_.Try(candidate, *jobspec)
                                   : elastic_.Grow(candidate, *jobspec);
  };
  const bool resizes = model::HasRules(view_.state.config().rules(), model::kGrowsResized);
  const bool grows =
      jobspec != nullptr && (jobspec->min_slots != 0 || (resizes && jobspec->groups.size() == 1));
  if (engine_.Find(key) == nullptr || !grows) {
    outcome->set_kind(Outcome::KIND_BUSY);
    outcome->set_reason("it holds nothing that could grow");
  } else if (grow()) {
    SayHolds(key, outcome);
  } else {
    outcome->set_kind(Outcome::KIND_BUSY);
    outcome->set_reason("there is no room for another slot");
    // The queue may not have heard of the last growth: that answer may have been abandoned.
    if (!model::HasRules(view_.state.config().rules(), model::kSaysWhatIsHeld)) return;
    const graph::Placement& held = *engine_.Find(key);
    outcome->set_slots(static_cast<uint32_t>(held.slots.size()));
    outcome->set_placement_hash(PlacementHash(ToProto(held)));
  }
}

void Trial::TryReplacement(const Candidate& candidate,
                           const graph::Jobspec* jobspec,
                           Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  const bool holds = engine_.Find(key) != nullptr && jobspec != nullptr &&
                     jobspec->groups.size() == 1 && jobspec->min_slots == 0;
  if (holds && replacement_.Try(candidate, *jobspec)) return SayHolds(key, outcome);
  outcome->set_kind(Outcome::KIND_BUSY);
  outcome->set_reason(
      holds ? explainer_.Explain(candidate, replacement_.Refused(), /*never=*/false).sentence
            : "it holds nothing in place of which it could have others");
  if (!holds) return;
  // The queue may not have heard of what it was given last: that answer may have been abandoned.
  const graph::Placement& held = *engine_.Find(key);
  outcome->set_slots(static_cast<uint32_t>(held.slots.size()));
  outcome->set_placement_hash(PlacementHash(ToProto(held)));
}

void Trial::Match(const Candidate& candidate,
                  const graph::Jobspec& jobspec,
                  bool promised,
                  Outcome* outcome) {
  if (promised && MatchPromised(candidate, jobspec, outcome)) return;
  // A candidate that is named twice.
  const AllocationKey key = KeyOf(candidate);
  if (view_.promises.Has(key)) reservations_.Forget(key);
  const bool refused = !MayPreempt(candidate) && RefusalOf(candidate, jobspec) != nullptr;
  if (reservations_.behind().empty() || refused) {
    MatchNew(candidate, jobspec, outcome);
    return;
  }
  if (engine_.Match(StartNow(request_, candidate, jobspec)).kind ==
      graph::OutcomeKind::kAllocated) {
    SayStarts(key, outcome);
    return;
  }
  reservations_.PassThoseBehind(SlipBy(Slip::CAUSE_AHEAD, key.job_id), [&]() {
    MatchNew(candidate, jobspec, outcome);
    return outcome->kind() == Outcome::KIND_ALLOCATED ||
           outcome->kind() == Outcome::KIND_RESERVED || AwaitsOthers(*outcome);
  });
}

void Trial::Answer(const Refusals::Refusal& refused, const Candidate& candidate, Outcome* outcome) {
  outcome->set_kind(refused.kind);
  outcome->set_reason(refused.reason);
  outcome->set_slots_now(refused.slots_now);
  SayLength(candidate, outcome);
}

void Trial::MatchNew(const Candidate& candidate, const graph::Jobspec& jobspec, Outcome* outcome) {
  if (MayPreempt(candidate) && StartOrStop(candidate, jobspec, outcome)) return;
  if (const Refusals::Refusal* refused = RefusalOf(candidate, jobspec); refused != nullptr) {
    return Answer(*refused, candidate, outcome);
  }
  // Where other pods will be is not known: nothing is promised by that.
  const bool may_reserve = reservations_.MayReserve(candidate) && jobspec.pods.beside.empty() &&
                           jobspec.pods.spread.empty();
  const graph::MatchRequest request = StartOrReserve(request_, candidate, jobspec, may_reserve);
  const graph::Outcome matched = engine_.Match(request);
  if (matched.kind == graph::OutcomeKind::kAllocated) {
    SayStarts(request.key, outcome);
    return;
  }
  if (matched.kind == graph::OutcomeKind::kReserved) {
    reservations_.Put(request.key, *matched.placement);
  }
  Wait(candidate, jobspec, matched, outcome);
}

bool Trial::MatchPromised(const Candidate& candidate,
                          const graph::Jobspec& jobspec,
                          Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  if (!reservations_.MayReserve(candidate)) {
    // Those ahead have all that its rule gives.
    reservations_.Lose(key, SlipBy(Slip::CAUSE_AHEAD, reservations_.LastOfItsRule(candidate)));
    reservations_.Forget(key);
    return false;
  }
  if (MayPreempt(candidate) && StartOrStopSooner(candidate, jobspec, outcome)) return true;
  const graph::Placement& promise = *view_.promises.Find(key);
  if (promise.start_s <= request_.now_s() || reservations_.room_came()) {
    MatchAgain(candidate, jobspec, graph::Placement(promise), outcome);
  } else {
    Wait(candidate, jobspec, {graph::OutcomeKind::kReserved, nullptr, promise.start_s}, outcome);
  }
  return true;
}

void Trial::MatchAgain(const Candidate& candidate,
                       const graph::Jobspec& jobspec,
                       const graph::Placement& promise,
                       Outcome* outcome) {
  const bool due = promise.start_s <= request_.now_s();
  graph::MatchRequest request = StartOrReserve(request_, candidate, jobspec, /*may_reserve=*/true);
  if (!due) request.before_s = promise.start_s;
  graph::Outcome matched;
  std::optional<graph::Placement> placed;
  const auto match = [&]() {
    matched = engine_.Match(request);
    if (matched.placement != nullptr) placed = *matched.placement;
    return placed.has_value();
  };
  const auto why_late = [&]() {
    return WhyNotInTime(view_, request_.now_s(), closed_.kept_for(), candidate, promise);
  };
  if (RuleOf(request_, candidate)->plans_anew() && promise.start_s != request.now_s) {
    reservations_.PassThoseBehind(SlipBy(Slip::CAUSE_AHEAD, request.key.job_id), match);
  } else {
    match();
    // Its time is over without it, and those behind have theirs by now: it is in its right.
    const bool is_late = IsIndependent(request_) && promise.start_s < request.now_s;
    if (is_late && matched.kind != graph::OutcomeKind::kAllocated) {
      placed.reset();
      reservations_.PassThoseBehind(why_late(), match);
    }
  }
  if (matched.kind == graph::OutcomeKind::kAllocated) {
    reservations_.Start(request.key);
    const bool as_promised = promise.start_s == request.now_s && placed->slots == promise.slots;
    if (!as_promised) reservations_.RoomCame();
    SayStarts(request.key, outcome);
    return;
  }
  if (due) reservations_.Lose(request.key, why_late());
  if (matched.kind == graph::OutcomeKind::kReserved) {
    reservations_.Put(request.key, *std::move(placed));
    reservations_.RoomCame();
  } else if (due) {
    reservations_.Forget(request.key);
  } else {
    reservations_.Reserve(request.key);
    matched = {graph::OutcomeKind::kReserved, nullptr, promise.start_s};
  }
  Wait(candidate, jobspec, matched, outcome);
}

bool Trial::StartOrStop(const Candidate& candidate,
                        const graph::Jobspec& jobspec,
                        Outcome* outcome) {
  const graph::MatchRequest request = StartNow(request_, candidate, jobspec);
  if (engine_.Match(request).kind == graph::OutcomeKind::kAllocated) {
    SayStarts(request.key, outcome);
    return true;
  }
  const std::optional<Victims> victims = victims_.Find(candidate, jobspec);
  if (!victims.has_value()) return false;
  ends_cycle_ = !victims_.keeps_room();
  outcome->set_kind(Outcome::KIND_BUSY);
  SayVictims(*victims, outcome);
  return true;
}

bool Trial::StartOrStopSooner(const Candidate& candidate,
                              const graph::Jobspec& jobspec,
                              Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  engine_.DropReservation(key);
  const bool starts = reservations_.PassThoseBehind(SlipBy(Slip::CAUSE_AHEAD, key.job_id), [&]() {
    return StartOrStop(candidate, jobspec, outcome);
  });
  if (!starts) {
    reservations_.Reserve(key);
    return false;
  }
  // It gives up what it was promised for their room, which it has sooner, if they end in time.
  if (AwaitsOthers(*outcome)) {
    const events::v1::AllocationKey& first =
        outcome->victims().empty() ? outcome->vacate(0).key() : outcome->victims(0);
    reservations_.Lose(key, SlipBy(Slip::CAUSE_OVERRUN, first.job_id()));
  }
  reservations_.Forget(key);
  return true;
}

const Refusals::Refusal* Trial::RefusalOf(const Candidate& candidate,
                                          const graph::Jobspec& jobspec) const {
  const Refusals::Refusal* refused =
      refusals_.Find(closed_.RefusedAs(jobspec, candidate), DurationOf(candidate));
  const bool holds = refused != nullptr && (!reservations_.MayReserve(candidate) ||
                                            refused->kind == Outcome::KIND_UNSATISFIABLE);
  return holds ? refused : nullptr;
}

void Trial::Wait(const Candidate& candidate,
                 const graph::Jobspec& jobspec,
                 const graph::Outcome& matched,
                 Outcome* outcome) {
  // Rules 1: a job that can be promised nothing is protected by letting no other pass.
  ends_cycle_ = matched.waits_for_unending && !IsIndependent(request_);
  const bool never = matched.kind == graph::OutcomeKind::kUnsatisfiable;
  const auto [refused, is_new] = refusals_.Of(closed_.RefusedAs(jobspec, candidate));
  if (is_new) {
    Explainer::Why why = explainer_.Explain(candidate, jobspec, never);
    refused.reason = std::move(why.sentence);
    refused.slots_now = why.slots_now;
  }
  refused.kind = never && view_.state.synced() ? Outcome::KIND_UNSATISFIABLE : Outcome::KIND_BUSY;
  refused.shortest_s = DurationOf(candidate);
  outcome->set_kind(refused.kind);
  outcome->set_reason(refused.reason);
  outcome->set_slots_now(refused.slots_now);
  if (matched.kind == graph::OutcomeKind::kReserved) {
    outcome->set_kind(Outcome::KIND_RESERVED);
    outcome->set_at_s(matched.at_s);
    reservations_.Count(candidate);
  }
  SayLength(candidate, outcome);
  // Kept nodes are of no use to one whose nodes are closed by rules between pods.
  const bool keeps = closed_.kept_for().empty() && closed_.ClosedByRules() == 0;
  if (matched.waits_for_unending && candidate.overdue() && keeps) {
    KeepNodesFor(candidate, jobspec, outcome);
  }
}

void Trial::KeepNodesFor(const Candidate& candidate,
                         const graph::Jobspec& jobspec,
                         Outcome* outcome) {
  closed_.KeepFor(candidate.job_id(),
                  NodesToKeep(engine_, LevelsOf(view_.state.config()), jobspec));
  outcome->mutable_reason()->append(fmt::format("; {} node{} kept for it from jobs without an end",
                                                closed_.kept(),
                                                closed_.kept() == 1 ? " is" : "s are"));
}

void Trial::SayStarts(const AllocationKey& key, Outcome* outcome) {
  closed_.Changed(key.job_id);
  outcome->set_kind(Outcome::KIND_ALLOCATED);
  outcome->set_at_s(request_.now_s());
  outcome->set_placement_hash(rows_.Write(key, *engine_.Find(key)));
}

void Trial::SayHolds(const AllocationKey& key, Outcome* outcome) {
  closed_.Changed(key.job_id);
  const graph::Placement& held = *engine_.Find(key);
  outcome->set_kind(Outcome::KIND_ALLOCATED);
  outcome->set_at_s(held.start_s);
  outcome->set_slots(static_cast<uint32_t>(held.slots.size()));
  outcome->set_placement_hash(rows_.Write(key, held));
}

}  // namespace fluxqueue::matcher_core
