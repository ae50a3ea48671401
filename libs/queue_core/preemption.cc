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
// nobody else; the matcher keeps that room from all behind it. When that is not enough any more
// (somebody ahead of it took some), others are chosen. A restored core knows as much.
//
// Not before the inventory is complete: what is busy then may have room a moment later.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/aging.h"

namespace fluxqueue::queue_core {

using events::v1::Outcome;
using scheduling::Victim;

namespace {

// Of the candidates of a queue for whom anybody may be stopped: the first so many.
constexpr uint32_t kMostPreemptors = 4;
// What Kubernetes gives pods that say nothing else, and what binder and cleanup take for the rest.
constexpr int64_t kPodGraceMs = 30'000;
constexpr int64_t kSeenMs = 5'000;

bool Preempts(const Queue& queue) {
  if (queue.config == nullptr) return false;
  return queue.config->preemption().reclaim() || queue.config->preemption().by_priority();
}

// As if it stood in line; see JobBook::PlaceInLine.
int64_t RankOf(const Entry& entry) {
  const Job& job = entry.job;
  const auto& config = entry.counted_in->config;
  const int64_t aging = config == nullptr ? 0 : config->aging_ms();
  return scheduling::RankOf(job.priority, std::max(job.submitted_ms, job.begin_ms), aging);
}

scheduling::Preemptor PreemptorOf(const Entry& entry, bool by_resource) {
  const events::v1::Preemption& preemption = entry.in_line_of->config->preemption();
  return {.owner = entry.line_owner,
          .priority = entry.job.priority,
          .rank = entry.line_key.rank,
          .amounts = entry.amounts,
          .by_priority = preemption.by_priority(),
          .reclaim = preemption.reclaim(),
          .by_resource = by_resource};
}

scheduling::HoldingJob HoldingJobOf(const Entry& entry) {
  const Job& job = entry.job;
  const bool running = job.state == model::JobState::kRunning;
  return {.id = job.id,
          .owner = entry.holder,
          .priority = job.priority,
          .rank = RankOf(entry),
          .amounts = entry.held.get(),
          .start_ms = running ? job.start_ms : 0,
          .recreatable = job.workload->recreatable() && !IsClaim(job),
          .stopping = job.state == model::JobState::kStopping};
}

int64_t StopSeconds(const Queue& queue) {
  const int64_t grace_ms = queue.config->preemption().grace_ms();
  return ((grace_ms == 0 ? kPodGraceMs : grace_ms) + kSeenMs + 999) / 1000;
}

std::string ToBits(const std::vector<size_t>& places) {
  std::string bits(places.empty() ? 0 : places.back() / 8 + 1, '\0');
  for (const size_t place : places) {
    bits[place / 8] = static_cast<char>(bits[place / 8] | 1 << place % 8);
  }
  return bits;
}

std::string WhyStopped(const Entry& victim, const Entry& preemptor, Victim::Why why) {
  const std::string who = FullName(preemptor.job);
  if (why == Victim::Why::kReclaim) {
    return fmt::format(
        "stopped for job {}, to give queue {} back its guarantee", who, preemptor.job.queue);
  }
  if (victim.job.queue != preemptor.job.queue) {
    return fmt::format("stopped for job {} of queue {}, which goes before queue {}",
                       who,
                       preemptor.job.queue,
                       victim.job.queue);
  }
  return fmt::format("stopped for job {} of higher priority: {}, and its own is {}",
                     who,
                     preemptor.job.priority,
                     victim.job.priority);
}

}  // namespace

QueueCore::Impl::Holders QueueCore::Impl::HoldersNow() const {
  Holders holders;
  holders.entries.reserve(book_.holding().size());
  holders.jobs.reserve(book_.holding().size());
  for (const auto& [submission, entry] : book_.holding()) {
    holders.entries.push_back(entry);
    holders.jobs.push_back(HoldingJobOf(*entry));
  }
  return holders;
}

std::vector<scheduling::Victim> QueueCore::Impl::VictimsFor(const Entry& entry,
                                                            const Holders& holders,
                                                            const scheduling::Ahead& ahead) const {
  return scheduling::ChooseVictims(
      PreemptorOf(entry, HasAccounts()), holders.jobs, ahead, PassNow().capacity, state_.now_ms);
}

bool QueueCore::Impl::NameVictimsOf(const Entry& entry,
                                    const Holders& holders,
                                    const scheduling::Ahead& ahead,
                                    events::v1::Candidate* candidate) const {
  const std::vector<Victim> victims = VictimsFor(entry, holders, ahead);
  for (const Victim& victim : victims) {
    const Job& job = holders.entries[victim.job]->job;
    events::v1::AllocationKey* key = candidate->add_victims();
    key->set_job_id(job.id);
    key->set_attempt(job.attempt);
  }
  return !victims.empty();
}

bool QueueCore::Impl::MatcherChooses() const {
  return model::HasRules(config().rules(), model::kMatcherChooses);
}

void QueueCore::Impl::NameVictims(const std::vector<const Entry*>& entries,
                                  events::v1::CycleRequested* cycle) const {
  uint32_t left = 0;
  for (const auto& [order, queue] : book_.served()) left += Preempts(*queue) ? kMostPreemptors : 0;
  if (left == 0 || !state_.synced || book_.holding().empty()) return;
  std::unordered_map<const Queue*, uint32_t> named;
  scheduling::Ahead ahead;
  const Holders holders = HoldersNow();
  std::optional<scheduling::StopListMaker> list;
  if (MatcherChooses()) list.emplace(holders.jobs, PassNow().capacity, state_.now_ms);
  std::vector<events::v1::Candidate*> preemptors;
  for (size_t i = 0; i < entries.size() && left > 0; ++i) {
    const Entry& entry = *entries[i];
    if (Preempts(*entry.in_line_of) && named[entry.in_line_of] < kMostPreemptors) {
      events::v1::Candidate* candidate = cycle->mutable_candidates(static_cast<int>(i));
      const bool any = list ? list->Add(PreemptorOf(entry, HasAccounts()), ahead)
                            : NameVictimsOf(entry, holders, ahead, candidate);
      if (any) {
        ++named[entry.in_line_of];
        --left;
        preemptors.push_back(candidate);
        if (list) candidate->set_stop_s(StopSeconds(*entry.in_line_of));
      }
    }
    scheduling::AddAhead(*entry.line_owner, *entry.amounts, &ahead);
  }
  if (!list || preemptors.empty()) return;
  WriteStopList(list->Make(state_.last_cycle_id), holders, preemptors, cycle);
}

void QueueCore::Impl::WriteStopList(const scheduling::StopList& list,
                                    const Holders& holders,
                                    const std::vector<events::v1::Candidate*>& preemptors,
                                    events::v1::CycleRequested* cycle) {
  for (const scheduling::StopList::Stoppable& one : list.stoppable) {
    const Job& job = holders.entries[one.job]->job;
    events::v1::CycleRequested::Stoppable* stoppable = cycle->add_stoppable();
    stoppable->mutable_key()->set_job_id(job.id);
    stoppable->mutable_key()->set_attempt(job.attempt);
    stoppable->set_lost(one.lost);
    stoppable->set_stopping(job.state == model::JobState::kStopping);
    if (!one.lender) continue;
    stoppable->set_lender(static_cast<uint32_t>(*one.lender + 1));
    for (const int64_t amount : holders.jobs[one.job].amounts->shared()) {
      stoppable->add_holds(amount);
    }
  }
  for (const scheduling::StopList::Lender& one : list.lenders) {
    events::v1::CycleRequested::Lender* lender = cycle->add_lenders();
    for (const int64_t amount : one.spare) lender->add_spare(amount);
    if (one.above) lender->set_above(static_cast<uint32_t>(*one.above + 1));
  }
  for (size_t i = 0; i < preemptors.size(); ++i) {
    preemptors[i]->set_stoppable(ToBits(list.choices[i].stoppable));
    preemptors[i]->set_lenders(ToBits(list.choices[i].lenders));
  }
}

void QueueCore::Impl::StopVictims(const events::v1::CycleAnswered& answered) {
  const auto& outcomes = answered.outcomes();
  if (std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
        return outcome.victims().empty();
      })) {
    return;
  }
  scheduling::Ahead ahead;
  for (const Outcome& outcome : outcomes) {
    const Entry* entry = book_.Find(outcome.job_id());
    const bool waits =
        entry != nullptr && entry->in_line_of != nullptr && entry->job.attempt == outcome.attempt();
    if (!waits) continue;
    // What has changed since it was asked for changes the choice, too: ask again.
    if (!outcome.victims().empty() && !StopFor(*entry, outcome, ahead)) state_.ask_again = true;
    scheduling::AddAhead(*entry->line_owner, *entry->amounts, &ahead);
  }
}

bool QueueCore::Impl::StopFor(const Entry& preemptor,
                              const Outcome& outcome,
                              const scheduling::Ahead& ahead) {
  if (!Preempts(*preemptor.in_line_of)) return false;
  const Holders holders = HoldersNow();
  const auto chosen = MatcherChooses() ? JudgeChoice(preemptor, outcome, holders, ahead)
                                       : FindVictims(preemptor, outcome, holders, ahead);
  if (!chosen) return false;
  const int64_t grace_ms = preemptor.in_line_of->config->preemption().grace_ms();
  for (const Victim& victim : *chosen) {
    Entry* entry = holders.entries[victim.job];
    Job& job = book_.Edit(entry);
    job.grace_ms = grace_ms;
    job.requeue_is_failure = false;
    Stop(entry,
         events::v1::JobFact::AFTER_STOP_REQUEUE,
         reason::kPreempted,
         WhyStopped(*entry, preemptor, victim.why));
  }
  return true;
}

std::optional<std::vector<Victim>> QueueCore::Impl::FindVictims(
    const Entry& preemptor,
    const Outcome& outcome,
    const Holders& holders,
    const scheduling::Ahead& ahead) const {
  const std::vector<Victim> allowed = VictimsFor(preemptor, holders, ahead);
  std::vector<Victim> chosen;
  for (const events::v1::AllocationKey& key : outcome.victims()) {
    const auto victim = std::find_if(allowed.begin(), allowed.end(), [&](const Victim& one) {
      const Job& job = holders.entries[one.job]->job;
      return job.id == key.job_id() && job.attempt == key.attempt();
    });
    // It has ended or stopped: its release is behind the cycle, and brings another.
    if (victim == allowed.end() && !Holds(key)) continue;
    if (victim == allowed.end()) return std::nullopt;
    if (victim->why != Victim::Why::kStopping) chosen.push_back(*victim);
  }
  return chosen;
}

std::optional<std::vector<Victim>> QueueCore::Impl::JudgeChoice(
    const Entry& preemptor,
    const Outcome& outcome,
    const Holders& holders,
    const scheduling::Ahead& ahead) const {
  const scheduling::Preemptor who = PreemptorOf(preemptor, HasAccounts());
  scheduling::VictimRules rules(who, ahead);
  std::unordered_map<const Entry*, size_t> places;
  for (size_t i = 0; i < holders.jobs.size(); ++i) {
    places.emplace(holders.entries[i], i);
    if (holders.jobs[i].stopping) rules.TakeStopping(holders.jobs[i]);
  }
  std::vector<Victim> chosen;
  for (const events::v1::AllocationKey& key : outcome.victims()) {
    // It has ended or stopped: its release is behind the cycle, and brings another.
    if (!Holds(key)) continue;
    const size_t place = places.at(book_.Find(key.job_id()));
    const scheduling::HoldingJob& job = holders.jobs[place];
    if (job.stopping) continue;
    const std::optional<Victim::Why> why = rules.MayStop(job);
    if (!why) return std::nullopt;
    rules.Take(job);
    chosen.push_back({place, *why});
  }
  return chosen;
}

bool QueueCore::Impl::Holds(const events::v1::AllocationKey& key) const {
  const Entry* entry = book_.Find(key.job_id());
  return entry != nullptr && entry->holder != nullptr && entry->job.attempt == key.attempt();
}

}  // namespace fluxqueue::queue_core
