// The binder's side of the delivery loop over fluxqueue.jobs: a BindPlanner, its rows, and the
// calls that a commit lets out.
//
// Repeats: a batch that was rolled back is folded and planned again, and the answers that it had
// taken are taken again. What the planner has to say goes into the pools' logs under the lock of
// the job's partition. Dead letters: facts that no version of the binder can act on. Confined to
// the loop's thread; the watch and the workers reach it through the inbox.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/handler.h"
#include "libs/tracing/tracer.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/domain/bind_planner.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class JobsHandler final : public delivery::PartitionHandler {
 public:
  struct Deps {
    PlanOptions plan;
    ProofCheck proofs;
    Inbox& inbox;
    // The pods are in view (pod_feed.h).
    std::function<bool()> pods_in_view;
    // Takes the calls that a commit lets out; must not block.
    std::function<void(std::vector<Call>)> submit;
    BinderMetrics& metrics;
    const Clock& clock;
    tracing::Tracer& tracer;
  };
  explicit JobsHandler(Deps deps) : deps_(std::move(deps)), planner_(deps_.plan, deps_.proofs) {}

  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override { planner_.Drop(partition); }
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override { return planner_.HasWork() || !deps_.inbox.empty(); }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  bool HasRows() const override;
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  Millis Now() const;
  void TakeNews(Millis now);
  void Trace(const Saying& saying) const;

  Deps deps_;
  BindPlanner planner_;
  // admission.pools; a pool's partition never changes.
  std::map<std::string, int> pools_;
  std::set<std::string> pools_wanted_;  // by facts of this batch, and not known yet
  bool pods_listed_ = false;
  bool in_view_ = false;
  // The batch under way.
  std::vector<Saying> sayings_;
};

}  // namespace fluxqueue::binder
