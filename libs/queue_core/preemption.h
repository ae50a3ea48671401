// Preemption: for whom others may be stopped, who is stopped, and how that is said.
//
// The first few candidates of a queue that preempts are named with all that may be stopped for them
// (libs/scheduling/stop_list.h), whether or not they were refused before: the matcher, which knows
// who is where, tries to start them without first, and answers with the few whose room they need.
// Only those are stopped, and wait in line again with their submission number, so at their old
// place. By rules 2 up to 64 are named, those that lose least, wherever they run.
//
// What the matcher may choose is what the queue allows: the lists are made by the rules by which
// the choice is judged when it comes back. A choice is refused only when something has changed
// since it was asked for, and then the next cycle knows of that; so nothing is asked for again for
// ever.
//
// Those that are stopped take their time. What is chosen must be of use after that, too: a
// candidate that must be through before a window or a reservation is to fit that much later
// (Candidate.stop_s).
//
// Nothing is remembered about who is stopped for whom. What is being stopped is named first, as its
// room comes free anyway, so the next cycle finds that the same job needs the same room and stops
// no other; the matcher keeps that room from all behind it. When that is not enough any more
// (somebody ahead of it took some), others are chosen. A restored core knows as much.
//
// From rules 7 on elastic jobs give slots back before any job is stopped (elastic.h): a list says
// how many each of them can spare, and which slots it is giving back already. The matcher looks
// for room in those first.
//
// Not before the inventory is complete: what is busy then may have room a moment later.
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/view.h"
#include "libs/scheduling/stop_list.h"
#include "libs/scheduling/victims.h"

namespace fluxqueue::queue_core {

class Preemption {
 public:
  explicit Preemption(View view) : view_(view) {}

  // Tells for the first candidates who may be stopped for them. `entries`: the candidates.
  void NameVictims(const std::vector<const Entry*>& entries,
                   events::v1::CycleRequested* cycle) const;

  struct Stop {
    Entry* entry = nullptr;
    int64_t grace_ms = 0;
    std::string why;
    // It goes on without these slots. None, and `goes_on`: it was told of all of them before, and
    // has not given them back for long.
    bool goes_on = false;
    std::vector<uint32_t> slots = {};
  };
  // When a job that gives slots back is to be told again that it does. REQUIRES: it has not done
  // so.
  static int64_t AskAgainAt(const Job& job);

  // Those of the outcome that are to be stopped by now; nothing: not all of them may be, for
  // something has changed. `ahead`: what those before it in the answer ask for.
  std::optional<std::vector<Stop>> Judge(const Entry& preemptor,
                                         const events::v1::Outcome& outcome,
                                         const scheduling::Ahead& ahead) const;

 private:
  struct Choice {
    scheduling::Victim victim;
    bool goes_on = false;  // as in Stop
    std::vector<uint32_t> slots = {};
  };
  using Victims = std::optional<std::vector<Choice>>;
  // All that hold something, by submission; both lists in that order.
  struct Holders {
    std::vector<Entry*> entries;
    std::vector<scheduling::HoldingJob> jobs;
    std::unordered_map<const Entry*, size_t> places;
    std::deque<scheduling::Resources> parts;  // that the jobs point to
  };
  // `preemptors`: the candidates that have a choice, in the order of the list's.
  void WriteStopList(const scheduling::StopList& list,
                     const Holders& holders,
                     const std::vector<events::v1::Candidate*>& preemptors,
                     events::v1::CycleRequested* cycle) const;
  // What elastic jobs of the list can spare; and those that are giving slots back, listed or not.
  static void WriteSlots(const Holders& holders, events::v1::CycleRequested* cycle);
  Victims JudgeChoice(const Entry& preemptor,
                      const events::v1::Outcome& outcome,
                      const Holders& holders,
                      const scheduling::Ahead& ahead) const;
  // Of elastic jobs, beside those that are chosen. False: not all of it may be given back.
  bool JudgeSlots(const events::v1::Outcome& outcome,
                  const Holders& holders,
                  scheduling::VictimRules* rules,
                  std::vector<Choice>* chosen) const;
  // The same, of those that a list of a few names.
  Victims FindVictims(const Entry& preemptor,
                      const events::v1::Outcome& outcome,
                      const Holders& holders,
                      const scheduling::Ahead& ahead) const;
  // False: there are none.
  bool NameVictimsOf(const Entry& entry,
                     const Holders& holders,
                     const scheduling::Ahead& ahead,
                     events::v1::Candidate* candidate) const;
  Holders HoldersNow() const;
  // Of the job that was added last: what is leaving, and what it may give back.
  static void AddParts(const Job& job, Holders* holders);
  // REQUIRES: the entry stands in line.
  std::vector<scheduling::Victim> VictimsFor(const Entry& entry,
                                             const Holders& holders,
                                             const scheduling::Ahead& ahead) const;
  bool Holds(const events::v1::AllocationKey& key) const;

  View view_;
};

}  // namespace fluxqueue::queue_core
