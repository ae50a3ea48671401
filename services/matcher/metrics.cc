#include "services/matcher/metrics.h"

namespace fluxqueue::matcher {
namespace {

using events::v1::Outcome;

metrics::Counter OutcomeCounter(metrics::Registry& registry, const char* outcome) {
  return registry.MakeCounter(
      "fluxqueue_matcher_outcomes_total", "Answers to candidates.", {{"outcome", outcome}});
}

metrics::Counter ShadowCounter(metrics::Registry& registry, const char* result) {
  return registry.MakeCounter(
      "fluxqueue_matcher_shadow_answers_total",
      "What the shadow engine would have answered: equal, another outcome, other nodes, or it was "
      "not asked.",
      {{"result", result}});
}

}  // namespace

MatcherMetrics::MatcherMetrics(metrics::Registry& registry)
    : cycle_seconds_(registry.MakeLatency("fluxqueue_matcher_cycle_seconds",
                                          "Time to match all candidates of a cycle.")),
      candidates_(registry.MakeHistogram("fluxqueue_matcher_cycle_outcomes",
                                         "Candidates answered in a cycle.",
                                         {1, 4, 16, 64, 256, 1024, 4096})),
      outcomes_{OutcomeCounter(registry, "allocated"),
                OutcomeCounter(registry, "reserved"),
                OutcomeCounter(registry, "busy"),
                OutcomeCounter(registry, "unsatisfiable"),
                OutcomeCounter(registry, "invalid")},
      nodes_(registry.MakeGauges("fluxqueue_matcher_nodes",
                                 "Nodes in the graph, and those of them that can be given out.")),
      jobs_(registry.MakeGauges("fluxqueue_matcher_jobs",
                                "Jobs whose jobspec is kept, and allocations that are held.")),
      engine_(registry.MakeGauges("fluxqueue_matcher_engine", "1 for the engine of the pool.")),
      rows_(registry.MakeCounter("fluxqueue_matcher_rows_total", "Rows written.")),
      restarts_(registry.MakeCounter("fluxqueue_matcher_fluxion_restarts_total",
                                     "Times that Fluxion's library was started again.")),
      shadow_{ShadowCounter(registry, "equal"),
              ShadowCounter(registry, "outcome"),
              ShadowCounter(registry, "placement"),
              ShadowCounter(registry, "skipped")} {}

void MatcherMetrics::CycleAnswered(const events::v1::CycleAnswered& answer,
                                   std::chrono::duration<double> latency) {
  cycle_seconds_.Observe(latency);
  candidates_.Observe(answer.outcomes_size());
  for (const Outcome& outcome : answer.outcomes()) {
    const auto index = static_cast<size_t>(outcome.kind() - Outcome::KIND_ALLOCATED);
    if (index < outcomes_.size()) outcomes_[index].Add();
  }
}

void MatcherMetrics::Inventory(const std::string& pool, const matcher_core::MatcherCore& core) {
  nodes_.With({{"pool", pool}, {"state", "known"}}).Set(core.engine().nodes());
  nodes_.With({{"pool", pool}, {"state", "up"}}).Set(core.engine().nodes_up());
  for (const char* kind : {"native", "fluxion", "shadow"}) {
    engine_.With({{"pool", pool}, {"kind", kind}}).Set(core.engine_kind().name == kind ? 1 : 0);
  }
  jobs_.With({{"pool", pool}, {"state", "known"}}).Set(static_cast<double>(core.jobs()));
  jobs_.With({{"pool", pool}, {"state", "allocated"}})
      .Set(static_cast<double>(core.engine().allocations()));
}

}  // namespace fluxqueue::matcher
