// What was promised is kept: reservations from one cycle to the next, and those that this one may
// give.
//
// The naive way is to plan all again in each cycle, in the order of the line. A new plan on nodes
// may put a job elsewhere than the last one did, which delays others for no reason that they could
// be told; and it is a search for every job in every cycle. Instead, what a job has reserved stays
// reserved, and the line is gone through in its order:
//
// - A job with a reservation is only looked at again when something has come free that it did not
//   know of (a job ended early, nodes came), or when its time has come. Then its own reservation is
//   dropped and it is matched beside those of all others, whether it could start earlier. If not,
//   it has again what it had. So no other is delayed by that, and holes are filled in the order of
//   the line (compression, as in Mu'alem and Feitelson, "Utilization, Predictability, Workloads,
//   and User Runtime Estimates", IEEE TPDS 12(6), 2001).
// - A job without one that stands ahead of others with one is in its right: it is tried beside
//   theirs first, and then as if they had none. If that is what it needed, theirs are void, and
//   they are planned again when their turn comes. That is how a job of a higher priority delays
//   others.
// - A job that is no candidate any more, or may not reserve any more, loses its reservation.
// - By a rule with plans_anew, what the last plan reserved stays only as long as the same would be
//   planned again: nothing has come free, nothing overran, and the line is as it was. From the
//   first that stands elsewhere on, all are void, and so are those behind one that starts late and
//   is better off without them. With true durations most cycles keep most.
//
// A reservation on a node that is lost, or has less than it had, is void, and all are when windows
// change (promise_book.h).
//
// Belongs to one cycle. How a candidate is tried with what it has reserved: trial.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/promise_book.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// The order in which a cycle reserved: View::plan of the next one.
std::vector<AllocationKey> PlanOf(const events::v1::CycleAnswered& answer);

class Reservations {
 public:
  // `promises`: the view's, of which none was made by other windows. All outlive it.
  Reservations(const events::v1::CycleRequested& request,
               const View& view,
               PromiseBook* promises,
               graph::Engine* engine);

  // What is promised to the request's candidates is reserved on the graph, in the order of the
  // line; all else is lost. Before the first candidate is tried.
  void TakeUp();

  // ------------------------------------------------------------------ the order of the line
  // Its turn has come. Whether it came with a reservation.
  bool TakeTurn(const events::v1::Candidate& candidate);
  // Those that came with one whose turn is still to come, the last one first.
  const std::vector<AllocationKey>& behind() const { return behind_; }
  // Matches as if those behind had reserved nothing. Theirs are void when that was of use, which
  // `match` tells and this returns; `slip` is why.
  bool PassThoseBehind(const events::v1::Slip& slip, const std::function<bool()>& match);

  // ------------------------------------------------------------------------ what is given
  bool MayReserve(const events::v1::Candidate& candidate) const { return quota_.Allows(candidate); }
  // Of those that this cycle reserves for, or leaves their reservations.
  void Count(const events::v1::Candidate& candidate);
  // Of these the first of all, and the last of the candidate's rule; empty: there is none.
  const std::string& first() const { return first_; }
  std::string LastOfItsRule(const events::v1::Candidate& candidate) const;

  // ---------------------------------------------------------------------------- one of them
  void Put(const AllocationKey& key, graph::Placement promise) {
    promises_.Put(key, std::move(promise));
  }
  // It starts, and is promised nothing more.
  void Start(const AllocationKey& key) { promises_.Erase(key); }
  // Why it will be void.
  void Lose(const AllocationKey& key, const events::v1::Slip& slip) { promises_.Lose(key, slip); }
  // It is void.
  void Forget(const AllocationKey& key);
  // It has on the graph again what it is promised. REQUIRES: it was dropped there, and its room was
  // not given away.
  void Reserve(const AllocationKey& key);

  // Something has come free that those behind do not know of.
  void RoomCame();
  bool room_came() const { return room_came_; }
  // It has after one was looked at, so the next cycle looks again.
  bool room_came_late() const { return room_came_late_; }

 private:
  using Standing = std::unordered_map<const graph::Placement*, const events::v1::Candidate*>;

  // Those promises that are not void before the graph is asked, and whose they are.
  Standing ThoseThatStand();
  // `candidate` null: it may not reserve any more.
  void TakeUpOne(const AllocationKey& key, const events::v1::Candidate* candidate);

  const events::v1::CycleRequested& request_;
  const View& view_;
  PromiseBook& promises_;
  graph::Engine& engine_;
  ReservationQuota quota_;
  std::vector<AllocationKey> behind_;
  std::string first_;
  std::vector<std::string> last_;  // by rule
  bool room_came_ = false;
  bool room_came_late_ = false;
};

}  // namespace fluxqueue::matcher_core
