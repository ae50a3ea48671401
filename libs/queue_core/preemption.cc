// Preemption: for whom others may be stopped, who is stopped, and how that is said.
//
// The first few candidates of a queue that preempts are named with those that may be stopped for
// them (libs/scheduling/victims.h), whether or not they were refused before: the matcher tries to
// start them without first, and answers with the few whose room they need. Only those are stopped,
// and wait in line again with their submission number, so at their old place.
//
// Nothing is remembered about who is stopped for whom. What is being stopped is named first, as its
// room comes free anyway, so the next cycle finds that the same job needs the same room and stops
// nobody else; the matcher keeps that room from all behind it. When that is not enough any more
// (somebody ahead of it took some), others are chosen. A restored core knows as much.
//
// Not before the inventory is complete: what is busy then may have room a moment later.
#include <algorithm>
#include <utility>

#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/aging.h"

namespace fluxqueue::queue_core {

using events::v1::Outcome;
using scheduling::Victim;

namespace {

// Of the candidates of a queue for whom anybody may be stopped: the first so many.
constexpr uint32_t kMostPreemptors = 4;

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

scheduling::Preemptor PreemptorOf(const Entry& entry) {
  const events::v1::Preemption& preemption = entry.in_line_of->config->preemption();
  return {.owner = entry.line_owner,
          .priority = entry.job.priority,
          .rank = entry.line_key.rank,
          .amounts = entry.amounts,
          .by_priority = preemption.by_priority(),
          .reclaim = preemption.reclaim()};
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
      PreemptorOf(entry), holders.jobs, ahead, PassNow().capacity, state_.now_ms);
}

void QueueCore::Impl::NameVictims(const std::vector<const Entry*>& entries,
                                  events::v1::CycleRequested* cycle) const {
  uint32_t left = 0;
  for (const auto& [order, queue] : book_.served()) left += Preempts(*queue) ? kMostPreemptors : 0;
  if (left == 0 || !state_.synced || book_.holding().empty()) return;
  std::unordered_map<const Queue*, uint32_t> named;
  scheduling::Ahead ahead;
  const Holders holders = HoldersNow();
  for (size_t i = 0; i < entries.size() && left > 0; ++i) {
    const Entry& entry = *entries[i];
    if (Preempts(*entry.in_line_of) && named[entry.in_line_of] < kMostPreemptors) {
      const std::vector<Victim> victims = VictimsFor(entry, holders, ahead);
      if (!victims.empty()) {
        ++named[entry.in_line_of];
        --left;
      }
      for (const Victim& victim : victims) {
        const Job& job = holders.entries[victim.job]->job;
        events::v1::AllocationKey* key =
            cycle->mutable_candidates(static_cast<int>(i))->add_victims();
        key->set_job_id(job.id);
        key->set_attempt(job.attempt);
      }
    }
    scheduling::AddAhead(*entry.line_owner, *entry.amounts, &ahead);
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
  const std::vector<Victim> allowed = VictimsFor(preemptor, holders, ahead);
  std::vector<Victim> chosen;
  for (const events::v1::AllocationKey& key : outcome.victims()) {
    const auto victim = std::find_if(allowed.begin(), allowed.end(), [&](const Victim& one) {
      const Job& job = holders.entries[one.job]->job;
      return job.id == key.job_id() && job.attempt == key.attempt();
    });
    // It has ended or stopped: its release is behind the cycle, and brings another.
    if (victim == allowed.end() && !Holds(key)) continue;
    if (victim == allowed.end()) return false;
    if (victim->why != Victim::Why::kStopping) chosen.push_back(*victim);
  }
  const int64_t grace_ms = preemptor.in_line_of->config->preemption().grace_ms();
  for (const Victim& victim : chosen) {
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

bool QueueCore::Impl::Holds(const events::v1::AllocationKey& key) const {
  const Entry* entry = book_.Find(key.job_id());
  return entry != nullptr && entry->holder != nullptr && entry->job.attempt == key.attempt();
}

}  // namespace fluxqueue::queue_core
