#include "libs/queue_core/preemption.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "libs/queue_core/elastic.h"
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
// Slots that are not given back so long after their pods were to have ended are asked for again: a
// message may have been lost.
constexpr int64_t kVacateAgainMs = 60'000;

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

scheduling::Preemptor PreemptorOf(const Entry& entry, const View& view) {
  const events::v1::Preemption& preemption = entry.in_line_of->config->preemption();
  return {.owner = entry.line_owner,
          .priority = entry.job.priority,
          .rank = entry.line_key.rank,
          .amounts = entry.amounts,
          .by_priority = preemption.by_priority(),
          .reclaim = preemption.reclaim(),
          .by_resource = view.HasAccounts(),
          .every_resource = view.GuaranteesOthers()};
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

// `what` becomes of the victim: "stopped"; for whom: "job team/train".
std::string WhyStopped(const std::string& what,
                       const std::string& who,
                       const Entry& victim,
                       const Entry& preemptor,
                       Victim::Why why) {
  if (why == Victim::Why::kReclaim) {
    return fmt::format(
        "{} for {}, to give queue {} back its guarantee", what, who, preemptor.job.queue);
  }
  if (victim.job.queue != preemptor.job.queue) {
    return fmt::format("{} for {} of queue {}, which goes before queue {}",
                       what,
                       who,
                       preemptor.job.queue,
                       victim.job.queue);
  }
  return fmt::format("{} for {} of higher priority: {}, and its own is {}",
                     what,
                     who,
                     preemptor.job.priority,
                     victim.job.priority);
}

}  // namespace

Preemption::Holders Preemption::HoldersNow() const {
  Holders holders;
  holders.entries.reserve(view_.book.holding().size());
  holders.jobs.reserve(view_.book.holding().size());
  for (const auto& [submission, entry] : view_.book.holding()) {
    holders.places.emplace(entry, holders.entries.size());
    holders.entries.push_back(entry);
    holders.jobs.push_back(HoldingJobOf(*entry));
    if (view_.ShrinksFirst()) AddParts(entry->job, &holders);
  }
  return holders;
}

void Preemption::AddParts(const Job& job, Holders* holders) {
  const auto part = [&](size_t slots) {
    return &holders->parts.emplace_back(job.amounts->Part(static_cast<uint32_t>(slots), job.slots));
  };
  scheduling::HoldingJob& holding = holders->jobs.back();
  const size_t leaving = holding.stopping ? 0 : Vacating(job).size();
  if (leaving > 0) {
    holding.leaving = part(leaving);
    holding.amounts = part(SlotsOf(job) - leaving);
  }
  if (SpareSlots(job) > 0) holding.slot = part(1);
}

std::vector<scheduling::Victim> Preemption::VictimsFor(const Entry& entry,
                                                       const Holders& holders,
                                                       const scheduling::Ahead& ahead) const {
  return scheduling::ChooseVictims(
      PreemptorOf(entry, view_), holders.jobs, ahead, view_.PassNow().capacity, view_.state.now_ms);
}

bool Preemption::NameVictimsOf(const Entry& entry,
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

void Preemption::NameVictims(const std::vector<const Entry*>& entries,
                             events::v1::CycleRequested* cycle) const {
  uint32_t left = 0;
  for (const auto& [order, queue] : view_.book.served())
    left += Preempts(*queue) ? kMostPreemptors : 0;
  if (left == 0 || !view_.state.synced || view_.book.holding().empty()) return;
  std::unordered_map<const Queue*, uint32_t> named;
  scheduling::Ahead ahead;
  const Holders holders = HoldersNow();
  std::optional<scheduling::StopListMaker> list;
  if (view_.MatcherChooses())
    list.emplace(holders.jobs, view_.PassNow().capacity, view_.state.now_ms);
  std::vector<events::v1::Candidate*> preemptors;
  for (size_t i = 0; i < entries.size() && left > 0; ++i) {
    const Entry& entry = *entries[i];
    if (Preempts(*entry.in_line_of) && named[entry.in_line_of] < kMostPreemptors) {
      events::v1::Candidate* candidate = cycle->mutable_candidates(static_cast<int>(i));
      const bool any = list ? list->Add(PreemptorOf(entry, view_), ahead)
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
  WriteStopList(list->Make(view_.state.last_cycle_id), holders, preemptors, cycle);
}

void Preemption::WriteSlots(const Holders& holders, events::v1::CycleRequested* cycle) {
  std::unordered_map<std::string_view, const Job*> unlisted;
  for (const Entry* entry : holders.entries) {
    if (IsElastic(entry->job)) unlisted.emplace(entry->job.id, &entry->job);
  }
  const auto vacate = [](const Job& job, events::v1::CycleRequested::Stoppable* stoppable) {
    for (const uint32_t slot : Vacating(job)) stoppable->add_vacating(slot);
  };
  for (auto& stoppable : *cycle->mutable_stoppable()) {
    const auto found = unlisted.find(stoppable.key().job_id());
    if (found == unlisted.end()) continue;
    const Job& job = *found->second;
    unlisted.erase(found);
    if (job.state == model::JobState::kStopping) continue;
    stoppable.set_spare_slots(SpareSlots(job));
    vacate(job, &stoppable);
  }
  for (const Entry* entry : holders.entries) {
    const Job& job = entry->job;
    if (!unlisted.contains(job.id) || job.state == model::JobState::kStopping) continue;
    if (Vacating(job).empty()) continue;
    events::v1::CycleRequested::Stoppable* stoppable = cycle->add_stoppable();
    stoppable->mutable_key()->set_job_id(job.id);
    stoppable->mutable_key()->set_attempt(job.attempt);
    vacate(job, stoppable);
  }
}

void Preemption::WriteStopList(const scheduling::StopList& list,
                               const Holders& holders,
                               const std::vector<events::v1::Candidate*>& preemptors,
                               events::v1::CycleRequested* cycle) const {
  for (const scheduling::StopList::Stoppable& one : list.stoppable) {
    const Job& job = holders.entries[one.job]->job;
    events::v1::CycleRequested::Stoppable* stoppable = cycle->add_stoppable();
    stoppable->mutable_key()->set_job_id(job.id);
    stoppable->mutable_key()->set_attempt(job.attempt);
    stoppable->set_lost(one.lost);
    stoppable->set_stopping(job.state == model::JobState::kStopping);
    if (!one.lender) continue;
    stoppable->set_lender(static_cast<uint32_t>(*one.lender + 1));
    for (const int64_t amount : list.HoldsOf(*holders.jobs[one.job].amounts)) {
      stoppable->add_holds(amount);
    }
  }
  if (view_.ShrinksFirst()) WriteSlots(holders, cycle);
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

std::optional<std::vector<Preemption::Stop>> Preemption::Judge(
    const Entry& preemptor, const Outcome& outcome, const scheduling::Ahead& ahead) const {
  if (!Preempts(*preemptor.in_line_of)) return std::nullopt;
  const Holders holders = HoldersNow();
  const Victims chosen = view_.MatcherChooses() ? JudgeChoice(preemptor, outcome, holders, ahead)
                                                : FindVictims(preemptor, outcome, holders, ahead);
  if (!chosen) return std::nullopt;
  std::vector<Stop> stops;
  for (const auto& [victim, goes_on, slots] : *chosen) {
    Entry* entry = holders.entries[victim.job];
    const std::string what =
        goes_on ? fmt::format("gives {} of its slots back", slots.size()) : "stopped";
    stops.push_back(
        {.entry = entry,
         .grace_ms = preemptor.in_line_of->config->preemption().grace_ms(),
         .why = WhyStopped(
             what, view_.NameFor(entry->job, preemptor.job), *entry, preemptor, victim.why),
         .goes_on = goes_on,
         .slots = slots});
  }
  return stops;
}

Preemption::Victims Preemption::FindVictims(const Entry& preemptor,
                                            const Outcome& outcome,
                                            const Holders& holders,
                                            const scheduling::Ahead& ahead) const {
  const std::vector<Victim> allowed = VictimsFor(preemptor, holders, ahead);
  std::vector<Choice> chosen;
  for (const events::v1::AllocationKey& key : outcome.victims()) {
    const auto victim = std::find_if(allowed.begin(), allowed.end(), [&](const Victim& one) {
      const Job& job = holders.entries[one.job]->job;
      return job.id == key.job_id() && job.attempt == key.attempt();
    });
    // It has ended or stopped: its release is behind the cycle, and brings another.
    if (victim == allowed.end() && !Holds(key)) continue;
    if (victim == allowed.end()) return std::nullopt;
    if (victim->why != Victim::Why::kStopping) chosen.push_back({*victim});
  }
  return chosen;
}

Preemption::Victims Preemption::JudgeChoice(const Entry& preemptor,
                                            const Outcome& outcome,
                                            const Holders& holders,
                                            const scheduling::Ahead& ahead) const {
  const scheduling::Preemptor who = PreemptorOf(preemptor, view_);
  scheduling::VictimRules rules(who, ahead);
  for (const scheduling::HoldingJob& job : holders.jobs) {
    if (job.stopping) rules.TakeStopping(job);
    if (job.leaving != nullptr) rules.Take(job.With(job.leaving));
  }
  std::vector<Choice> chosen;
  for (const events::v1::AllocationKey& key : outcome.victims()) {
    // It has ended or stopped: its release is behind the cycle, and brings another.
    if (!Holds(key)) continue;
    const size_t place = holders.places.at(view_.book.Find(key.job_id()));
    const scheduling::HoldingJob& job = holders.jobs[place];
    if (job.stopping) continue;
    const std::optional<Victim::Why> why = rules.MayStop(job);
    if (!why) return std::nullopt;
    rules.Take(job);
    chosen.push_back({{place, *why}});
  }
  if (!JudgeSlots(outcome, holders, &rules, &chosen)) return std::nullopt;
  return chosen;
}

bool Preemption::JudgeSlots(const Outcome& outcome,
                            const Holders& holders,
                            scheduling::VictimRules* rules,
                            std::vector<Choice>* chosen) const {
  for (const events::v1::HeldSlots& held : outcome.vacate()) {
    if (!Holds(held.key())) continue;
    const Entry* entry = view_.book.Find(held.key().job_id());
    const size_t place = holders.places.at(entry);
    const bool stops = holders.jobs[place].stopping ||
                       std::any_of(chosen->begin(), chosen->end(), [place](const Choice& one) {
                         return one.victim.job == place;
                       });
    if (stops) continue;
    const Job& job = entry->job;
    std::vector<uint32_t> slots(held.slots().begin(), held.slots().end());
    std::erase_if(slots, [&job](uint32_t slot) {
      const auto among = [slot](const std::vector<uint32_t>& rising) {
        return std::binary_search(rising.begin(), rising.end(), slot);
      };
      return slot >= job.held_slots || among(job.released_slots) || among(job.vacated_slots);
    });
    if (slots.empty()) {
      const bool late = view_.state.now_ms >= AskAgainAt(job);
      if (late && !Vacating(job).empty()) chosen->push_back({{place}, /*goes_on=*/true});
      continue;
    }
    if (slots.size() > SpareSlots(job)) return false;
    const scheduling::Resources amounts =
        job.amounts->Part(static_cast<uint32_t>(slots.size()), job.slots);
    const scheduling::HoldingJob part = holders.jobs[place].With(&amounts);
    const std::optional<Victim::Why> why = rules->MayStop(part);
    if (!why) return false;
    rules->Take(part);
    chosen->push_back({{place, *why}, /*goes_on=*/true, std::move(slots)});
  }
  return true;
}

int64_t Preemption::AskAgainAt(const Job& job) {
  return job.updated_ms + std::max(job.grace_ms, kPodGraceMs) + kVacateAgainMs;
}

bool Preemption::Holds(const events::v1::AllocationKey& key) const {
  const Entry* entry = view_.book.Find(key.job_id());
  return entry != nullptr && entry->holder != nullptr && entry->job.attempt == key.attempt();
}

}  // namespace fluxqueue::queue_core
