// The binder's side of the delivery loop over fluxqueue.jobs: a BindPlanner, its rows, and the
// calls that a commit lets out.
//
// Repeats: a batch that was rolled back is folded and planned again, and the answers that it had
// taken are taken again. What the planner has to say goes into the pools' logs under the lock of
// the job's partition. Dead letters: facts that no version of the binder can act on, and pods that
// are left out (pod_intake.h), of which each replica that holds a partition tells. Confined to the
// loop's thread; the watch and the workers reach it through the inbox, which is emptied also while
// no partition is held: the newest state of each pod is then at hand when one is.
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
#include "libs/delivery/quarantine.h"
#include "libs/tracing/tracer.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/adapters/pod_intake.h"
#include "services/binder/adapters/pod_teller.h"
#include "services/binder/domain/bind_planner.h"
#include "services/binder/domain/waiting_pods.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class JobsHandler final : public delivery::PartitionHandler {
 public:
  struct Deps {
    PlanOptions plan;
    ProofCheck proofs;
    Inbox& inbox;
    delivery::Quarantine& quarantine;
    // Tells people of a pod that is left out; must not block.
    std::function<void(const delivery::QuarantineRow&)> tell;
    // The pods are in view (pod_feed.h).
    std::function<bool()> pods_in_view;
    // Has pods that wait say why.
    PodTeller& pods;
    // Takes the jobs that lack nothing but nodes, each time that they were looked at; must not
    // block.
    std::function<void(std::vector<events::v1::JobFact>)> lack;
    // Takes the calls that a commit lets out; must not block.
    std::function<void(std::vector<Call>)> submit;
    BinderMetrics& metrics;
    const Clock& clock;
    tracing::Tracer& tracer;
  };
  explicit JobsHandler(Deps deps)
      : deps_(std::move(deps)),
        planner_(deps_.plan, deps_.proofs),
        intake_(planner_, deps_.inbox, deps_.quarantine, deps_.clock) {}

  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override;
  absl::Status Idle() override;
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override;
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  bool HasRows() const override;
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  using LeftOut = std::vector<delivery::QuarantineRow>;

  Millis Now() const;
  // Since it was decided, by the clocks of Kafka and of this host.
  Millis AgeOf(const events::v1::JobFact& fact) const;
  absl::Status TakeNews(Millis now);
  bool SeesPods() const { return in_view_ && !held_.empty(); }
  bool IsCompareDue() const { return SeesPods() && Now() >= compare_at_; }
  void CompareWaits(pqxx::transaction_base& tx);
  bool IsCatchUpDue() const { return !held_.empty() && Now() >= catch_up_at_; }
  // What was not heard of the jobs of its partitions is taken from the queue's table.
  void CatchUp(pqxx::transaction_base& tx);
  void TellPods(Millis now);
  // Of pods that are left out, what was not told yet.
  void SayLeftOut(delivery::Outbox& outbox);
  void Trace(const Saying& saying) const;

  Deps deps_;
  BindPlanner planner_;
  PodIntake intake_;
  std::set<int> held_;  // partitions
  // admission.pools; a pool's partition never changes.
  std::map<std::string, int> pools_;
  std::set<std::string> pools_wanted_;  // by facts of this batch, and not known yet
  bool in_view_ = false;
  WaitingPods waiting_;
  Millis compare_at_{0};
  Millis catch_up_at_{0};
  std::string catch_up_after_;  // the job id behind which the next page begins
  // The batch under way.
  std::vector<Saying> sayings_;
  std::optional<LeftOut> left_out_;                 // said in it
  std::optional<std::vector<LackingJob>> lacking_;  // read in it
};

}  // namespace fluxqueue::binder
