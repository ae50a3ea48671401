// Whose room would let a candidate start, of those that may be stopped for it.
//
// The naive way is to try every subset. Instead: all of them are taken out, and one match says
// whether that helps at all. Then the shortest beginning of the list that is enough is found by
// halving (those that lose least stand first), and of it everyone goes back in, from the end, whose
// room turns out not to be needed. What is left is minimal: without any one of them it does not
// fit. 1 + log2(n) + n matches at most. Where a policy finds room in less than it misses it in
// (more room may lead a heuristic astray), the beginning may be longer than need be; it is never
// too short, as each step was matched.
//
// Taken out is: released, and restored at its place afterwards; so the engine's fingerprint is the
// same. Reservations of this cycle stand all the while, and are not touched.
//
// What was found is kept for the rest of the cycle: the candidate holds it under its own key,
// besides the victims, which hold it too; whoever comes behind is matched around both. So room that
// is free now and that it counts on is not given away either. An engine that cannot hold more than
// there is (fluxion) ends the cycle instead.
#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/matcher_core.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;

namespace {

// The victims, each in or out of the graph.
class Victims {
 public:
  Victims(graph::Engine* engine, const graph::MatchRequest& request, const Candidate& candidate)
      : engine_(engine), request_(request) {
    for (const events::v1::AllocationKey& named : candidate.victims()) {
      AllocationKey key = FromProto(named);
      const graph::Placement* placement = engine_->Find(key);
      // Named twice, or it has given everything back since.
      if (placement == nullptr || IsNamed(key)) continue;
      victims_.push_back({std::move(key), *placement, false});
    }
  }
  ~Victims() { PutBack(); }
  Victims(const Victims&) = delete;
  Victims& operator=(const Victims&) = delete;

  // False, and all are in: it does not help. True: a minimal set is out.
  bool Find() {
    if (!FitsWithout(victims_.size())) return false;
    size_t enough = victims_.size();
    for (size_t least = 0; least + 1 < enough;) {
      const size_t half = (least + enough) / 2;
      (FitsWithout(half) ? enough : least) = half;
    }
    TakeOut(enough);
    for (size_t i = enough; i-- > 0;) {
      Set(&victims_[i], false);
      if (!Fits()) Set(&victims_[i], true);
    }
    return true;
  }

  void Name(Outcome* outcome) const {
    for (const Victim& victim : victims_) {
      if (victim.out) *outcome->add_victims() = ToProto(victim.key);
    }
  }

  void PutBack() { TakeOut(0); }

 private:
  struct Victim {
    AllocationKey key;
    graph::Placement placement;
    bool out = false;
  };

  bool IsNamed(const AllocationKey& key) const {
    return std::any_of(victims_.begin(), victims_.end(), [&key](const Victim& victim) {
      return victim.key == key;
    });
  }

  void Set(Victim* victim, bool out) {
    if (victim->out == out) return;
    victim->out = out;
    if (out) {
      engine_->Release(victim->key);
      return;
    }
    const absl::Status restored = engine_->Restore(victim->key, victim->placement);
    CHECK(restored.ok(), "{}", Message(restored));
  }

  // The first so many, and nobody else.
  void TakeOut(size_t count) {
    for (size_t i = victims_.size(); i-- > 0;) {
      if (i >= count) Set(&victims_[i], false);
    }
    for (size_t i = 0; i < count; ++i) Set(&victims_[i], true);
  }

  bool FitsWithout(size_t count) {
    TakeOut(count);
    return Fits();
  }

  bool Fits() {
    if (engine_->Match(request_).kind != graph::OutcomeKind::kAllocated) return false;
    engine_->Release(request_.key);
    return true;
  }

  graph::Engine* const engine_;
  const graph::MatchRequest& request_;
  std::vector<Victim> victims_;
};

}  // namespace

bool MatcherCore::Preempt(const Candidate& candidate,
                          const graph::Jobspec& jobspec,
                          Cycle* cycle,
                          Outcome* outcome) {
  const graph::MatchRequest request{
      .operation = graph::Operation::kAllocate,
      .key = {candidate.job_id(), candidate.attempt(), candidate.part()},
      .jobspec = jobspec,
      .now_s = cycle->request.now_s(),
      .duration_s = candidate.duration_s(),
      .corrected = cycle->request.corrects_plans(),
      .bound_s = candidate.bound_s()};
  if (engine_->Match(request).kind == graph::OutcomeKind::kAllocated) {
    outcome->set_kind(Outcome::KIND_ALLOCATED);
    outcome->set_at_s(cycle->request.now_s());
    outcome->set_placement_hash(WriteAllocation(request.key));
    return true;
  }
  Victims victims(engine_.get(), request, candidate);
  if (!victims.Find()) {
    victims.PutBack();
    return false;
  }
  victims.Name(outcome);
  const bool keeps = engine_kind().name == "native";
  if (keeps) {
    const graph::Outcome kept = engine_->Match(request);
    CHECK(kept.kind == graph::OutcomeKind::kAllocated, "job {}", candidate.job_id());
    cycle->kept.push_back(request.key);
  } else {
    cycle->stops = true;
  }
  victims.PutBack();
  outcome->set_kind(Outcome::KIND_BUSY);
  const int count = outcome->victims_size();
  outcome->set_reason(fmt::format("starts when {} {} given back what {} by being stopped",
                                  count,
                                  count == 1 ? "job has" : "jobs have",
                                  count == 1 ? "it holds" : "they hold"));
  return true;
}

void MatcherCore::ReleaseKept(Cycle* cycle) {
  for (const AllocationKey& key : cycle->kept) engine_->Release(key);
  cycle->kept.clear();
}

}  // namespace fluxqueue::matcher_core
