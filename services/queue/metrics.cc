#include "services/queue/metrics.h"

#include <chrono>

#include <fmt/format.h>

#include "services/queue/adapters/command_desk.h"

namespace fluxqueue::queue {

QueueMetrics::QueueMetrics(metrics::Registry& registry)
    : jobs_(registry.MakeGauges("fluxqueue_queue_jobs", "Jobs that have not ended.")),
      facts_(registry.MakeCounters("fluxqueue_queue_facts_total",
                                   "Facts published on fluxqueue.jobs, by the state they tell.")),
      wait_seconds_(registry.MakeLatency("fluxqueue_queue_wait_seconds",
                                         "From a workload's creation to its allocation.")),
      stale_(registry.MakeCounter("fluxqueue_queue_stale_facts_total",
                                  "Facts that came too late and were dropped.")),
      unwanted_(registry.MakeCounter("fluxqueue_queue_unwanted_allocations_total",
                                     "Allocations released because no longer wanted.")),
      rows_(registry.MakeCounter("fluxqueue_queue_rows_total", "Rows written.")),
      flux_jobs_written_(registry.MakeCounter("fluxqueue_queue_fluxjob_writes_total",
                                              "Writes of FluxJob objects.",
                                              {{"result", "ok"}})),
      flux_jobs_failed_(registry.MakeCounter("fluxqueue_queue_fluxjob_writes_total",
                                             "Writes of FluxJob objects.",
                                             {{"result", "failed"}})),
      kubernetes_events_(registry.MakeCounter("fluxqueue_queue_kubernetes_events_total",
                                              "Events written on users' objects.")),
      commands_(registry.MakeCounters("fluxqueue_queue_commands_total",
                                      "Commands by gRPC, by what became of them.")) {}

void QueueMetrics::Jobs(const std::string& pool,
                        const std::map<std::pair<std::string, model::JobState>, size_t>& counts) {
  for (auto& [key, gauge] : job_gauges_) {
    if (key.starts_with(pool + "/")) gauge.Set(0);
  }
  for (const auto& [group, count] : counts) {
    const std::string state(model::Name(group.second));
    const std::string key = fmt::format("{}/{}/{}", pool, group.first, state);
    auto it = job_gauges_.find(key);
    if (it == job_gauges_.end()) {
      it = job_gauges_
               .emplace(key, jobs_.With({{"pool", pool}, {"queue", group.first}, {"state", state}}))
               .first;
    }
    it->second.Set(static_cast<double>(count));
  }
}

void QueueMetrics::Fact(const events::v1::JobFact& fact) {
  const auto state = static_cast<model::JobState>(fact.state());
  const std::string name(model::Name(state));
  auto it = fact_counters_.find(name);
  if (it == fact_counters_.end()) {
    it = fact_counters_.emplace(name, facts_.With({{"state", name}})).first;
  }
  it->second.Add();
  if (state == model::JobState::kAllocated) {
    wait_seconds_.Observe(std::chrono::milliseconds(fact.time_ms() - fact.created_ms()));
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
