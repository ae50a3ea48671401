// Which nodes are closed on the graph to the candidate that is being tried: those of the windows
// that it does not name (windows.h); and to one without an end those that are kept for a job that
// no time can be named for (keeping.h); those where rules between pods do not let it be
// (pod_book.h); and what the candidate at hand does not take besides.
//
// Belongs to one cycle. The engine is only told when that is another set of nodes than before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/closure.h"
#include "libs/graph/engine.h"
#include "libs/matcher_core/pod_book.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

class ClosedNodes {
 public:
  // `now_s`: the cycle's. All outlive it.
  ClosedNodes(const View& view,
              int64_t now_s,
              const Reservations& reservations,
              graph::Engine* engine)
      : view_(view),
        now_s_(now_s),
        reservations_(reservations),
        engine_(*engine),
        pods_(view, now_s) {}

  // `besides`: nodes that it does not take either.
  void CloseTo(const events::v1::Candidate& candidate, std::vector<std::string> besides = {});

  // Before anything is tried: what runs is looked at as it is.
  void Prepare(const events::v1::Candidate& candidate);
  // Nodes that are beside that one to pods of the jobspec that are to be beside each other; none:
  // they need not be.
  std::vector<std::string> DomainBeside(const graph::Jobspec& jobspec, const std::string& node) {
    return pods_.DomainBeside(jobspec.pods, node);
  }
  // The job holds other slots than before.
  void Changed(const std::string& job_id) { pods_.Changed(job_id); }
  // The same, with what its pods prefer of others as things are.
  graph::Jobspec Preferring(const events::v1::Candidate& candidate, graph::Jobspec jobspec);
  // Those of CloseTo's that rules between pods have closed.
  std::span<const graph::Closure> by_rules() const {
    if (by_rules_ == nullptr) return {};
    return by_rules_->all;
  }
  // How many nodes are so now.
  uint32_t ClosedByRules() const { return by_rules_ == nullptr ? 0 : by_rules_->nodes_now; }
  // What is refused to the one at hand is refused to all to whom the same nodes are closed and that
  // ask for the same.
  std::string RefusedAs(const graph::Jobspec& jobspec,
                        const events::v1::Candidate& candidate) const;

  // From now on these nodes take no job without an end, for the sake of that job. Once in a cycle.
  void KeepFor(const std::string& job_id, std::vector<std::string> nodes);
  // Empty: no nodes are kept.
  const std::string& kept_for() const { return kept_for_; }
  size_t kept() const { return kept_.size(); }

 private:
  // Its jobspec; null: it has none, or no pods of the pool have rules.
  const graph::Jobspec* UnderRules(const events::v1::Candidate& candidate) const;

  const View& view_;
  const int64_t now_s_;
  const Reservations& reservations_;
  graph::Engine& engine_;
  PodBook pods_;
  std::string kept_for_;
  std::vector<std::string> kept_;
  // What the engine was told, if it was.
  bool told_ = false;
  std::vector<std::string> open_windows_;
  std::vector<std::string> besides_;
  std::shared_ptr<const PodBook::Closures> by_rules_;
};

}  // namespace fluxqueue::matcher_core
