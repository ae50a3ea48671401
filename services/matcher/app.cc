#include "services/matcher/app.h"

#include <chrono>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/postgres/pruner.h"
#include "services/matcher/adapters/matcher_store.h"
#include "services/matcher/adapters/pool_handler.h"
#include "services/matcher/metrics.h"

#include "matcher_migrations.h"

namespace fluxqueue::matcher {
namespace {

// Of an allocation that was released: people want to see where a job ran.
constexpr Millis kReleasedKept = std::chrono::hours(24);

postgres::Pruner::Steps PruneSteps(pqxx::transaction_base& /*tx*/) {
  return {[](pqxx::transaction_base& tx) { return PruneReleased(tx, kReleasedKept); }};
}

class MatcherApp final : public lifecycle::App {
 public:
  MatcherApp(const lifecycle::AppContext& context, const MatcherConfig& config)
      : metrics_(context.metrics),
        options_(delivery::MakeLoopOptions(context.config, "matcher")),
        handler_(config.engines, metrics_, context.clock, context.tracer),
        loop_({options_, options_.topics.pool, {&migrations::matcher()}}, handler_, context.clock),
        pruner_(options_.postgres, context.clock, PruneSteps),
        pruning_(
            "pruning",
            [this](lifecycle::LoopContext& loop) {
              return pruner_.Run([&loop](Millis time) { return loop.SleepFor(time); });
            },
            nullptr,
            context.failures),
        component_(
            "pool loop",
            [this](lifecycle::LoopContext& loop) { return loop_.Run(loop.stop_token()); },
            [this] { return loop_.Ready(); },
            context.failures,
            [this] { return loop_.Alive(); }) {
    delivery::ExportStats(context.metrics, "matcher", loop_.stats());
  }

  std::vector<lifecycle::Component*> Components() override { return {&pruning_, &component_}; }

 private:
  MatcherMetrics metrics_;
  const delivery::LoopOptions options_;
  PoolHandler handler_;
  delivery::PartitionLoop loop_;
  postgres::Pruner pruner_;
  lifecycle::LoopComponent pruning_;
  lifecycle::LoopComponent component_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const MatcherConfig& config) {
  if (!config.engines.library.empty()) {
    RETURN_IF_ERROR(Annotate(fluxion::CheckLibrary(config.engines), "matcher.fluxion.library"));
  }
  return std::make_unique<MatcherApp>(context, config);
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, "matcher", {&migrations::matcher()}, std::move(stop));
}

}  // namespace fluxqueue::matcher
