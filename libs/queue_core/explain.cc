#include "libs/queue_core/explain.h"

#include <fmt/format.h>

#include "libs/model/job_state.h"
#include "libs/queue_core/planning.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/windows.h"

namespace fluxqueue::queue_core {

using model::JobState;

namespace {

constexpr int64_t kMsPerMinute = 60'000;

std::string Lasting(int64_t ms) {
  return ms >= 2 * kMsPerMinute ? fmt::format("{} min", ms / kMsPerMinute)
                                : fmt::format("{} s", ms / 1000);
}

bool TakesTurns(const Entry& entry) {
  return entry.line_owner->queue->spec.order == scheduling::JobOrder::kFairShare;
}

// Of those ahead of it in line, or of all where users take turns, who is promised the earliest
// start; null: nobody is.
const Job* FirstPromised(const Entry& entry, int64_t now_ms) {
  const Job* first = nullptr;
  for (const auto& [key, other] : entry.in_line_of->line) {
    if (other == &entry && TakesTurns(entry)) continue;
    if (other == &entry) break;
    if (other->job.reason != reason::kReserved || other->job.start_ms <= now_ms) continue;
    if (first == nullptr || other->job.start_ms < first->start_ms) first = &other->job;
  }
  return first;
}

std::string Slots(uint32_t slots) {
  return fmt::format("{} {}", slots, slots == 1 ? "pod" : "pods");
}

void AddPlace(const Entry& entry, const std::string& pool, Explanation* explanation) {
  const Queue& queue = *entry.in_line_of;
  const std::string strategy(StrategyOf(queue).name);
  const auto stand_in = [&](const auto& line) {
    explanation->in_line = line.size();
    for (const auto& [key, other] : line) {
      if (other == &entry || explanation->ahead.size() == kMostAhead) break;
      explanation->ahead.push_back(ToFact(static_cast<const Entry*>(other)->job, pool));
    }
  };
  explanation->position = PositionOf(entry);
  std::string of_whom;
  std::string turns;
  if (TakesTurns(entry)) {
    stand_in(entry.line_owner->line);
    of_whom = fmt::format(" of user {}", *entry.job.user);
    turns = " whose users take turns, and";
  } else {
    stand_in(queue.line);
  }
  explanation->why.push_back(
      fmt::format("it is number {} of {}{} in line of queue {},{} which goes by {}",
                  explanation->position,
                  explanation->in_line,
                  of_whom,
                  queue.name,
                  turns,
                  strategy));
  if (!IsElastic(entry.job)) return;
  explanation->why.push_back(fmt::format("it is elastic: it starts with {}, and grows to {}",
                                         Slots(entry.job.min_slots),
                                         Slots(entry.job.slots)));
}

void AddRefusal(const Job& job, Explanation* explanation) {
  // What it was refused for comes first.
  auto& why = explanation->why;
  const bool tells = job.reason != reason::kQueued || job.message != "in line";
  if (!job.message.empty() && tells) {
    why.insert(why.begin(),
               fmt::format("{}: {}", job.reason.empty() ? "it says" : job.reason, job.message));
  } else if (job.reason == reason::kQueued && job.state == JobState::kPending) {
    why.emplace_back("it has not been tried since it came into line");
  } else if (job.state != JobState::kPending) {
    why.emplace_back(fmt::format("it is {}", model::Name(job.state)));
  }
  if (job.state != JobState::kPending || job.reason != reason::kReserved) return;
  explanation->expected_start_ms = job.start_ms;
  explanation->assumption =
      job.firm ? "firm: only a lost node, a job with a better right, a window or a command moves it"
               : "a forecast: if all that runs, and all that is promised before it, takes as long "
                 "as it said";
}

void AddSooner(const View& view, const Entry& entry, Explanation* explanation) {
  const Job& job = entry.job;
  const Queue& queue = *entry.in_line_of;
  auto& sooner = explanation->sooner;
  const bool stops = StrategyOf(queue).stops_at_first_blocked;
  const int64_t planned_ms = Planning(view).PlannedDuration(job);
  const events::v1::WindowConfigured* window = WindowAhead(view.state, job, planned_ms);
  const uint32_t needed = IsElastic(job) ? job.min_slots : job.slots;
  if (job.slots_now > 0 && job.slots_now < needed && window == nullptr) {
    sooner.push_back(fmt::format(
        "with {} instead of {} it would start now", Slots(job.slots_now), Slots(needed)));
  }
  if (job.slots_now >= needed && (!stops || explanation->position <= 1)) {
    // It has room, but for a window or for somebody's reservation.
    const Job* first = FirstPromised(entry, view.state.now_ms);
    if (window != nullptr && (first == nullptr || window->start_ms() < first->start_ms)) {
      if (window->start_ms() > view.state.now_ms) {
        sooner.push_back(
            fmt::format("if it took at most {}, it could start now and be through before "
                        "window {} begins",
                        Lasting(window->start_ms() - view.state.now_ms),
                        window->window()));
      }
    } else if (first != nullptr) {
      sooner.push_back(
          fmt::format("if it took at most {}, it could start now and be through before "
                      "the next promised start",
                      Lasting(first->start_ms - view.state.now_ms)));
    }
  }
  if (stops && explanation->position > 1) {
    sooner.emplace_back(
        "nobody passes the first of this queue: with the strategy easy, conservative or hybrid it "
        "could, if it delays nobody");
  }
  if (!stops && planned_ms == 0) {
    sooner.emplace_back(
        "it does not say how long it runs, so it can pass nobody who is promised a start: say so "
        "with the annotation fluxqueue.io/duration");
  }
}

}  // namespace

Explanation Explain(const View& view, const std::string& pool, const Entry& entry) {
  Explanation explanation;
  const bool in_line = entry.in_line_of != nullptr;
  if (in_line) {
    AddPlace(entry, pool, &explanation);
    explanation.factors = PlaceFactorsOf(view, entry);
  }
  AddRefusal(entry.job, &explanation);
  if (in_line) AddSooner(view, entry, &explanation);
  return explanation;
}

size_t PositionOf(const Entry& entry) {
  if (entry.in_line_of == nullptr) return 0;
  return TakesTurns(entry) ? entry.line_owner->line.Position(entry.line_key)
                           : entry.in_line_of->line.Position(entry.line_key);
}

}  // namespace fluxqueue::queue_core
