#include "services/matcher/metrics.h"

#include "libs/model/host_ports.h"
#include "services/matcher/domain/free_room.h"

namespace fluxqueue::matcher {
namespace {

using events::v1::Outcome;

constexpr std::array<const char*, 3> kEngines = {"native", "fluxion", "shadow"};

metrics::Counter ShadowCounter(metrics::Registry& registry, const char* result) {
  return registry.MakeCounter(
      "fluxqueue_shadow_answers_total",
      "What the shadow engine would have answered: equal, another outcome, other nodes, or it was "
      "not asked.",
      {{"result", result}});
}

const char* Name(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::KIND_ALLOCATED:
      return "allocated";
    case Outcome::KIND_RESERVED:
      return "reserved";
    case Outcome::KIND_UNSATISFIABLE:
      return "unsatisfiable";
    case Outcome::KIND_INVALID:
      return "invalid";
    default:
      return "busy";
  }
}

}  // namespace

MatcherMetrics::MatcherMetrics(metrics::Registry& registry)
    : cycle_seconds_(registry.MakeLatency("fluxqueue_cycle_seconds",
                                          "Time to match all candidates of a cycle.")),
      candidates_(registry.MakeHistogram("fluxqueue_cycle_candidates",
                                         "Candidates answered in a cycle.",
                                         {1, 4, 16, 64, 256, 1024, 4096})),
      match_seconds_(registry.MakeLatencies(
          "fluxqueue_match_seconds",
          "Time to match one candidate of a cycle.",
          {"engine", "outcome"},
          {1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 0.025, 0.1, 1})),
      nodes_(registry.MakeGauges("fluxqueue_nodes",
                                 "Nodes in the graph, and those of them that can be given out.",
                                 {"pool", "state"})),
      jobspecs_(registry.MakeGauges("fluxqueue_jobspecs", "Jobspecs that are kept.", {"pool"})),
      allocations_(
          registry.MakeGauges("fluxqueue_allocations", "Allocations that are held.", {"pool"})),
      resources_(registry.MakeGauges(
          "fluxqueue_pool_resources",
          "Cores, bytes or units of a resource: allocatable on all nodes, allocated by us, used by "
          "others, free on nodes that can be given out.",
          {"pool", "resource", "state"})),
      fragmentation_(registry.MakeGauges(
          "fluxqueue_fragmentation_ratio",
          "Of what is free of a resource, the part on nodes that jobs hold something of: no job "
          "that wants whole nodes can have it.",
          {"pool", "resource"})),
      engine_(registry.MakeGauges(
          "fluxqueue_engine", "1 for the engine of the pool.", {"pool", "engine"})),
      restarts_(registry.MakeCounter("fluxqueue_fluxion_restarts_total",
                                     "Times that Fluxion's library was started again.")),
      shadow_{ShadowCounter(registry, "equal"),
              ShadowCounter(registry, "outcome"),
              ShadowCounter(registry, "placement"),
              ShadowCounter(registry, "skipped")} {}

void MatcherMetrics::CycleAnswered(const events::v1::CycleAnswered& answer,
                                   std::chrono::duration<double> latency) {
  cycle_seconds_.Observe(latency);
  candidates_.Observe(answer.outcomes_size());
}

void MatcherMetrics::Tried(const std::string& engine,
                           const Outcome& outcome,
                           std::chrono::duration<double> latency) {
  auto known = matches_.find({engine, outcome.kind()});
  if (known == matches_.end()) {
    const metrics::Labels labels = {{"engine", engine}, {"outcome", Name(outcome.kind())}};
    known = matches_.emplace(std::pair(engine, outcome.kind()), match_seconds_.With(labels)).first;
  }
  known->second.Observe(latency);
}

void MatcherMetrics::Inventory(const std::string& pool, const matcher_core::MatcherCore& core) {
  nodes_.With({{"pool", pool}, {"state", "known"}}).Set(core.engine().nodes());
  nodes_.With({{"pool", pool}, {"state", "up"}}).Set(core.engine().nodes_up());
  for (const char* kind : kEngines) {
    engine_.With({{"pool", pool}, {"engine", kind}}).Set(core.engine_kind().name == kind ? 1 : 0);
  }
  jobspecs_.With({{"pool", pool}}).Set(static_cast<double>(core.jobs()));
  allocations_.With({{"pool", pool}}).Set(static_cast<double>(core.engine().allocations()));
}

void MatcherMetrics::Dropped(const std::string& pool) {
  for (const char* state : {"known", "up"}) nodes_.With({{"pool", pool}, {"state", state}}).Set(0);
  for (const char* kind : kEngines) engine_.With({{"pool", pool}, {"engine", kind}}).Set(0);
  jobspecs_.With({{"pool", pool}}).Set(0);
  allocations_.With({{"pool", pool}}).Set(0);
  for (const std::string& resource : resources_shown_[pool]) {
    for (const char* state : {"allocatable", "allocated", "foreign", "free"}) {
      resources_.With({{"pool", pool}, {"resource", resource}, {"state", state}}).Set(0);
    }
    fragmentation_.With({{"pool", pool}, {"resource", resource}}).Set(0);
  }
}

void MatcherMetrics::Resources(const std::string& pool, const graph::Engine& engine) {
  // Each node has one of each port: that says nothing, and ports come and go.
  for (const graph::ResourceUsage& usage : engine.Usage()) {
    if (model::IsHostPort(usage.resource)) continue;
    resources_shown_[pool].insert(usage.resource);
    const double unit = usage.resource == "cpu" ? 1e-3 : 1;
    const auto set = [&](const char* state, int64_t amount) {
      resources_.With({{"pool", pool}, {"resource", usage.resource}, {"state", state}})
          .Set(static_cast<double>(amount) * unit);
    };
    set("allocatable", usage.total);
    set("allocated", usage.held);
    set("foreign", usage.foreign);
    set("free", usage.free);
  }
  for (const auto& [resource, ratio] : FragmentationOf(engine.UsageByNode())) {
    if (model::IsHostPort(resource)) continue;
    fragmentation_.With({{"pool", pool}, {"resource", resource}}).Set(ratio);
  }
}

}  // namespace fluxqueue::matcher
