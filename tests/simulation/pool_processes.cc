#include "tests/simulation/pool_processes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/matcher/adapters/pool_handler.h"
#include "services/queue/adapters/pool_handler.h"

namespace fluxqueue::simulation {
namespace {

// Nothing is decided by them, so all runs may share them.
struct Metrics {
  metrics::Registry registry;
  queue::QueueMetrics queue{registry};
  matcher::MatcherMetrics matcher{registry};
  tracing::Tracer tracer{{}, registry};
};

Metrics& OfAll() {
  static Metrics metrics;
  return metrics;
}

class NoObserver final : public queue::JobObserver {
 public:
  void Changed(std::vector<queue::JobSeen>) override {}
  void PoolsGained(const std::set<std::string>& /*pools*/) override {}
  void PoolsLost(const std::set<std::string>& /*pools*/) override {}
  std::vector<std::string> Waiting() override { return {}; }
  void Moved(const std::vector<std::pair<std::string, int64_t>>&) override {}
};

struct QueueParts {
  explicit QueueParts(const Clock& clock)
      : desk([] {}), handler(observer, feed, desk, OfAll().queue, clock, OfAll().tracer) {}
  NoObserver observer;
  queue::FactFeed feed;
  queue::CommandDesk desk;
  queue::PoolHandler handler;
};

}  // namespace

std::shared_ptr<delivery::PartitionHandler> MakeQueue(const Clock& clock) {
  const auto parts = std::make_shared<QueueParts>(clock);
  return {parts, &parts->handler};
}

std::shared_ptr<delivery::PartitionHandler> MakeMatcher(const Clock& clock) {
  return std::make_shared<matcher::PoolHandler>(
      fluxion::EngineOptions{}, OfAll().matcher, clock, OfAll().tracer);
}

}  // namespace fluxqueue::simulation
