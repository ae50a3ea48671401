// Whose room would let a candidate start, of those that may be stopped for it.
//
// A search goes through four steps (VictimSearch::Find). Each takes holders out of the graph and
// puts them back (removal.h), and matches the candidate without them. No step stops anything, and
// at the end the graph is as it was, but for the room that the fourth keeps.
//
//   1. Wait. Those that are being stopped already are out, and slots that elastic jobs are giving
//      back. Where that is enough no other is named.
//   2. Choose. Those are out, too, without which it would fit for as long as stopping takes longer
//      (Candidate.stop_s): slots of elastic jobs that go on without them, as few as will do. Where
//      all of these are not enough, the fewest jobs besides, and of these the ones that lose
//      least; none of them can be spared.
//   3. Judge. Those ahead who wait have their turn first in the next cycle. They are tried as they
//      will be then (next_cycle.h). When the candidate has no room beside what they take, it waits
//      as any other: no job is to be stopped in vain.
//   4. Keep. What was found is kept until the cycle ends. The candidate holds it under its own key,
//      besides the victims, which hold it too; all behind it are matched around both. So room that
//      is free now and that it counts on is not given away either. An engine that cannot hold more
//      than there is (fluxion) has to end the cycle instead.
//
// How it is chosen: the naive way is to try every subset. Instead, what is free where, with whom,
// is written down as plain amounts (stop_model.h), and the fewest whose leaving makes room are
// found there (stop_search.h). Then these are taken out of the graph, and a match says whether that
// is so: it knows about parts of gpus that others use, engines that give whole cores, levels that
// are preferred. If not, all are taken out, and the shortest beginning of the list that is enough
// is found by halving (those that lose least stand first). Of what was found every one goes back
// in, those that lose most first, whose room turns out not to be needed. What is left is minimal.
//
// What queues can spare of what they hold beyond their guarantee is kept book of for the whole
// cycle (lenders.h), so that the queue does not refuse what was chosen.
//
// Slots are looked for like jobs, each as a holder of its own, and what a job can spare is one more
// lender. An engine that cannot give back a part of a node (fluxion) stops elastic jobs whole.
//
// Cycles of rules 2 name a few victims with the candidate: there is only the second step, in which
// a beginning is found by halving, and the fourth.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/lenders.h"
#include "libs/matcher_core/next_cycle.h"
#include "libs/matcher_core/removal.h"
#include "libs/matcher_core/stop_model.h"
#include "libs/matcher_core/stop_search.h"

namespace fluxqueue::matcher_core {

// Belongs to one cycle, and keeps what it has found while it lives: each search knows of those
// before it.
class VictimSearch {
 public:
  // What the line refers to outlives it.
  explicit VictimSearch(const Line& line);
  // The room that was kept is free again.
  ~VictimSearch();
  VictimSearch(const VictimSearch&) = delete;
  VictimSearch& operator=(const VictimSearch&) = delete;

  // Those without which the candidate could start, and that may be stopped for it. Nothing: there
  // are none, or it would not start all the same. REQUIRES: it cannot start now; jobs may be
  // stopped for it; the nodes are closed to it, and those behind it have reserved nothing.
  std::optional<Victims> Find(const events::v1::Candidate& candidate,
                              const graph::Jobspec& jobspec);
  // Whether the room of those that were found is kept. If not, all behind might take it.
  bool keeps_room() const { return keeps_room_; }

 private:
  struct Stoppables;

  // Those that the candidate names are out, as far as they are needed. False: it does not fit
  // without all of them.
  bool FindNamed(const events::v1::Candidate& candidate,
                 const graph::MatchRequest& request,
                 Removal* removal) const;
  // Those that may be stopped for it, of all that the request lists.
  void Collect(const events::v1::Candidate& candidate, Stoppables* stoppables) const;
  void CollectSlots(const events::v1::Candidate& candidate, Stoppables* stoppables) const;
  // Those without which the request fits are out, and none of them can be spared. False: there are
  // none.
  bool Choose(const events::v1::Candidate& candidate,
              const graph::MatchRequest& request,
              Stoppables* stoppables) const;
  // The same of slots alone. False: all are out that can be spared together.
  bool ChooseSlots(const events::v1::Candidate& candidate,
                   const graph::MatchRequest& request,
                   Stoppables* stoppables) const;
  // The same of jobs, beside the slots that are out.
  bool ChooseJobs(const events::v1::Candidate& candidate,
                  const graph::MatchRequest& request,
                  Stoppables* stoppables) const;
  // Those that come free anyway, and slots, go back in where they are not needed.
  static void SpareSlots(const graph::MatchRequest& request, Stoppables* stoppables);
  // The room, and parts of the removal from `first` to before `last` as its holders, of which the
  // lenders are not said.
  StopProblem RoomOf(const events::v1::Candidate& candidate,
                     const graph::MatchRequest& request,
                     size_t first,
                     size_t last,
                     const Removal& removal) const;
  // What is out counts for those behind, too.
  void Note(const Stoppables& stoppables);
  JobToFit FitOf(const events::v1::Candidate& candidate, const graph::MatchRequest& request) const;
  // Those ahead of the candidate leave it the room that it needs, when those are gone that are out.
  bool StartsBehindThoseAhead(const events::v1::Candidate& candidate,
                              const graph::MatchRequest& request,
                              Removal* removal);
  // Those that are out, which are put back. The room is kept.
  Victims Keep(const graph::MatchRequest& request, Removal* removal);

  const Line line_;
  const bool keeps_room_;
  Waiting waiting_;
  // What queues can spare beside those that are to be stopped; unset: none were looked for yet.
  std::optional<Lenders> lenders_;
  // Those to which no stop is of use: shape, duration, and who may be stopped.
  std::set<std::string> helpless_;
};

}  // namespace fluxqueue::matcher_core
