#include "services/queue/metrics.h"

#include <utility>
#include <vector>

#include "libs/model/slip.h"
#include "services/queue/adapters/command_desk.h"

namespace fluxqueue::queue {
namespace {

// From a binding at once to a week in line.
std::vector<double> WaitBounds() {
  return {0.01, 0.06, 0.15, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};
}

std::string StateName(model::JobState state) {
  return std::string(model::Name(state));
}

}  // namespace

QueueMetrics::QueueMetrics(metrics::Registry& registry)
    : jobs_(registry.MakeGauges(
          "fluxqueue_jobs", "Jobs that have not ended.", {"pool", "queue", "state"})),
      waiting_(registry.MakeGauges("fluxqueue_jobs_waiting",
                                   "Jobs that wait, by the reason that they are told.",
                                   {"pool", "queue", "reason"})),
      oldest_(registry.MakeGauges("fluxqueue_oldest_job_timestamp_seconds",
                                  "Since when the oldest job of a state waits, or has been as it "
                                  "is; seconds since the Unix epoch, 0: there is none.",
                                  {"pool", "queue", "state"})),
      allocated_(registry.MakeGauges("fluxqueue_queue_allocated",
                                     "What a queue and those below it hold: cores, bytes, gpus.",
                                     {"pool", "queue", "resource"})),
      share_(registry.MakeGauges("fluxqueue_queue_share_ratio",
                                 "The dominant share of the pool that a queue holds and has used "
                                 "before, the longer ago the less.",
                                 {"pool", "queue"})),
      weight_(registry.MakeGauges(
          "fluxqueue_queue_weight", "The weight of a queue.", {"pool", "queue"})),
      budget_(registry.MakeGauges("fluxqueue_queue_budget_used_ratio",
                                  "What a queue and those below it have used of a budget in the "
                                  "period that is now; 1: all of it.",
                                  {"pool", "queue", "resource", "period"})),
      facts_(registry.MakeCounters("fluxqueue_job_facts_total",
                                   "Facts published on fluxqueue.jobs, by the state they tell.",
                                   {"state"})),
      wait_seconds_(registry.MakeLatencies("fluxqueue_wait_seconds",
                                           "From a job's submission to its first allocation.",
                                           {"queue"},
                                           WaitBounds())),
      stage_seconds_(registry.MakeLatencies("fluxqueue_stage_seconds",
                                            "From a job's allocation until its pods are bound, and "
                                            "from then on until the first one runs.",
                                            {"stage"},
                                            WaitBounds())),
      slip_seconds_(registry.MakeLatencies("fluxqueue_reservation_slip_seconds",
                                           "How much later than it was told a job starts, or is "
                                           "told to, and why.",
                                           {"queue", "cause"},
                                           WaitBounds())),
      stale_(registry.MakeCounter("fluxqueue_stale_facts_total",
                                  "Facts that came too late and were dropped.")),
      unwanted_(registry.MakeCounter("fluxqueue_unwanted_allocations_total",
                                     "Allocations released because no longer wanted.")),
      flux_jobs_written_(registry.MakeCounter(
          "fluxqueue_fluxjob_writes_total", "Writes of FluxJob objects.", {{"result", "ok"}})),
      flux_jobs_failed_(registry.MakeCounter(
          "fluxqueue_fluxjob_writes_total", "Writes of FluxJob objects.", {{"result", "failed"}})),
      flux_jobs_left_out_(registry.MakeCounter(
          "fluxqueue_fluxjobs_left_out_total",
          "Jobs that ended and got no FluxJob: more ended than could be written.")),
      kubernetes_events_(registry.MakeCounter("fluxqueue_kubernetes_events_total",
                                              "Events written on users' objects.")),
      commands_(registry.MakeCounters("fluxqueue_commands_total",
                                      "Commands by gRPC, by what became of them.",
                                      {"command", "outcome"})) {
  // From 0, so that the first one is seen to happen.
  for (const char* stage : {"bind", "start"}) stage_seconds_.With({{"stage", stage}});
}

void QueueMetrics::Jobs(const std::string& pool,
                        const std::map<std::pair<std::string, model::JobState>, size_t>& counts) {
  Values values;
  for (const auto& [group, count] : counts) {
    values[{{"pool", pool}, {"queue", group.first}, {"state", StateName(group.second)}}] =
        static_cast<double>(count);
  }
  Replace(jobs_, std::move(values), &shown_[pool].jobs);
}

void QueueMetrics::Figures(const std::string& pool,
                           const std::map<std::string, queue_core::QueueFigures>& figures) {
  Shown now;
  for (const auto& [queue, of] : figures) {
    const metrics::Labels labels = {{"pool", pool}, {"queue", queue}};
    const auto with = [&labels](const char* name, std::string value) {
      metrics::Labels more = labels;
      more.emplace(name, std::move(value));
      return more;
    };
    for (const auto& [reason, jobs] : of.waiting) {
      now.waiting[with("reason", reason)] = static_cast<double>(jobs);
    }
    for (const auto& [state, since_ms] : of.oldest_ms) {
      now.oldest[with("state", StateName(state))] = static_cast<double>(since_ms) / 1e3;
    }
    for (size_t i = 0; i < scheduling::kShared; ++i) {
      const double unit = i == scheduling::kMemory ? 1 : 1e-3;
      now.allocated[with("resource", std::string(scheduling::SharedName(i)))] =
          static_cast<double>(of.held[i]) * unit;
    }
    // From 0, so that the first one of a queue is seen to happen.
    wait_seconds_.With({{"queue", queue}});
    for (const std::string_view cause : model::kCauseNames) {
      slip_seconds_.With({{"queue", queue}, {"cause", std::string(cause)}});
    }
    for (const auto& use : of.budgets) {
      metrics::Labels budget = with("resource", use.budget.resource);
      budget.emplace("period", std::string(scheduling::PeriodName(use.budget.period)));
      // Of a budget of nothing everything is used.
      now.budget[budget] =
          use.budget.hours == 0 ? 1 : use.used_hours / static_cast<double>(use.budget.hours);
    }
    now.share[labels] = of.share;
    now.weight[labels] = of.weight;
  }
  Shown& shown = shown_[pool];
  Replace(waiting_, std::move(now.waiting), &shown.waiting);
  Replace(oldest_, std::move(now.oldest), &shown.oldest);
  Replace(allocated_, std::move(now.allocated), &shown.allocated);
  Replace(share_, std::move(now.share), &shown.share);
  Replace(weight_, std::move(now.weight), &shown.weight);
  Replace(budget_, std::move(now.budget), &shown.budget);
}

void QueueMetrics::Dropped(const std::string& pool) {
  Jobs(pool, {});
  Figures(pool, {});
}

void QueueMetrics::Replace(metrics::GaugeFamily& family, Values now, Values* shown) {
  for (const auto& [labels, value] : *shown) {
    if (!now.contains(labels)) family.With(labels).Set(0);
  }
  for (const auto& [labels, value] : now) family.With(labels).Set(value);
  *shown = std::move(now);
}

void QueueMetrics::Fact(const events::v1::JobFact& fact) {
  const std::string name = StateName(static_cast<model::JobState>(fact.state()));
  auto it = fact_counters_.find(name);
  if (it == fact_counters_.end()) {
    it = fact_counters_.emplace(name, facts_.With({{"state", name}})).first;
  }
  it->second.Add();
}

void QueueMetrics::Timed(const queue_core::Timing& timing) {
  using Kind = queue_core::Timing::Kind;
  switch (timing.kind) {
    case Kind::kWait:
      return wait_seconds_.With({{"queue", timing.queue}}).Observe(timing.took);
    case Kind::kBind:
      return stage_seconds_.With({{"stage", "bind"}}).Observe(timing.took);
    case Kind::kStart:
      return stage_seconds_.With({{"stage", "start"}}).Observe(timing.took);
    case Kind::kSlip:
      return slip_seconds_
          .With({{"queue", timing.queue}, {"cause", std::string(model::CauseName(timing.cause))}})
          .Observe(timing.took);
  }
}

void QueueMetrics::Command(const events::v1::CommandAccepted& command, const ErrandResult& result) {
  const auto* field =
      events::v1::CommandAccepted::descriptor()->FindFieldByNumber(command.command_case());
  commands_.With({{"command", field->name()}, {"outcome", Name(result.outcome)}}).Add();
}

void QueueMetrics::Stale(uint64_t stale, uint64_t unwanted) {
  if (stale != 0) stale_.Add(static_cast<double>(stale));
  if (unwanted != 0) unwanted_.Add(static_cast<double>(unwanted));
}

}  // namespace fluxqueue::queue
