#include "tests/simulation/cluster_processes.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "services/admission/adapters/watch_shard.h"
#include "services/binder/adapters/call_workers.h"
#include "services/binder/adapters/cluster_calls.h"
#include "services/binder/adapters/jobs_handler.h"
#include "services/binder/adapters/pod_feed.h"
#include "services/cleanup/adapters/sweeper.h"
#include "services/cleanup/adapters/watch_shard.h"
#include "tests/simulation/pool_standins.h"

namespace fluxqueue::simulation {
namespace {

constexpr int kWorkers = 3;
constexpr Millis kNodeLostGrace{4'000};

// Nothing is decided by them, so all runs may share them.
struct Metrics {
  metrics::Registry registry;
  binder::BinderMetrics binder{registry};
  cleanup::CleanupMetrics cleanup{registry};
  admission::AdmissionMetrics admission{registry};
  tracing::Tracer tracer{{}, registry};
};

Metrics& OfAll() {
  static Metrics metrics;
  return metrics;
}

binder::PlanOptions BinderOptions() {
  binder::PlanOptions options;
  options.start_timeout = Millis(60'000);
  options.kill_wait = Millis(20'000);
  return options;
}

class BinderProcess final : public Process {
 public:
  BinderProcess(ClusterWorld& world, Owner& owner)
      : clock_(world.scheduler()),
        lacking_(world),
        cluster_(world.cluster().For(owner)),
        quarantine_(clock_, {"Pod"}),
        calls_(*cluster_, proofs_, clock_, kNodeLostGrace),
        workers_(kWorkers, cluster_->threads(), calls_, inbox_, OfAll().binder, clock_),
        pods_(*cluster_, inbox_, OfAll().binder),
        pod_teller_(*cluster_),
        handler_(world, "binder", std::make_shared<binder::JobsHandler>(HandlerDeps())),
        loop_({OptionsOf(world, owner, "binder"), "jobs"}, handler_, clock_, &lacking_) {
    inbox_.SetWake([this] { loop_.Wake(); });
  }

  absl::Status Run() override {
    RETURN_IF_ERROR(workers_.Start());
    RETURN_IF_ERROR(pods_.Start());
    return loop_.Run(stop_.get_token());
  }
  absl::Status Ready() const override { return loop_.Ready(); }
  const delivery::Stats& stats() const override { return loop_.stats(); }

 private:
  binder::JobsHandler::Deps HandlerDeps() {
    return {
        .plan = BinderOptions(),
        .proofs = [this](const binder::PodFacts& pod) { return proofs_.Holds(pod); },
        .inbox = inbox_,
        .quarantine = quarantine_,
        .tell = [](const delivery::QuarantineRow&) {},
        .pods_in_view = [this] { return pods_.Ready().ok(); },
        .pods = pod_teller_,
        .lack = [](const std::vector<events::v1::JobFact>&) {},
        .submit = [this](std::vector<binder::Call> calls) { workers_.Submit(std::move(calls)); },
        .metrics = OfAll().binder,
        .clock = clock_,
        .tracer = OfAll().tracer};
  }

  SimClock clock_;
  Lacking lacking_;
  std::stop_source stop_;
  const std::unique_ptr<kubernetes::Cluster> cluster_;
  const binder::SlotProofs proofs_{std::string(binder::SlotProofs::kLeastKeyBytes, 'k')};
  binder::Inbox inbox_{"cluster", binder::kMostInboxBytes};
  delivery::Quarantine quarantine_;
  binder::ClusterCalls calls_;
  binder::CallWorkers workers_;
  binder::PodFeed pods_;
  binder::PodTeller pod_teller_;
  Watched handler_;
  delivery::PartitionLoop loop_;
};

class CleanupProcess final : public Process {
 public:
  CleanupProcess(ClusterWorld& world, Owner& owner)
      : world_(world),
        clock_(world.scheduler()),
        lacking_(world),
        options_(OptionsOf(world, owner, "cleanup")),
        cluster_(world.cluster().For(owner)),
        quarantine_(clock_, {"Job", "Pod"}),
        shard_(kConfig,
               *cluster_,
               options_.stores->Open(options_.postgres),
               OfAll().cleanup,
               clock_,
               OfAll().tracer,
               quarantine_,
               [this] { loop_.Wake(); }),
        loop_({.loop = options_, .shard = "watch", .quarantine = &quarantine_},
              shard_,
              clock_,
              &lacking_),
        sweeper_(shard_,
                 *cluster_,
                 options_.stores->Open(options_.postgres),
                 OfAll().cleanup,
                 clock_,
                 kConfig.sweep_interval,
                 [this] { return loop_.Held(); }) {}

  absl::Status Run() override {
    if (!world_.lacks(Without::kSweep)) {
      sweep_ = cluster_->threads().Start(
          [this](const std::stop_token& stop) { sweeper_.Run(stop).IgnoreError(); });
    }
    return loop_.Run(stop_.get_token());
  }
  absl::Status Ready() const override { return loop_.Ready(); }
  const delivery::Stats& stats() const override { return loop_.stats(); }

 private:
  static constexpr cleanup::CleanupConfig kConfig{.node_lost_grace = kNodeLostGrace,
                                                  .sweep_interval = Millis(10'000)};

  ClusterWorld& world_;
  SimClock clock_;
  Lacking lacking_;
  std::stop_source stop_;
  const delivery::LoopOptions options_;
  const std::unique_ptr<kubernetes::Cluster> cluster_;
  delivery::Quarantine quarantine_;
  cleanup::WatchShard shard_;
  delivery::ShardLoop loop_;
  cleanup::Sweeper sweeper_;
  std::unique_ptr<Thread> sweep_;
};

class AdmissionProcess final : public Process {
 public:
  AdmissionProcess(ClusterWorld& world, Owner& owner)
      : clock_(world.scheduler()),
        lacking_(world),
        cluster_(world.cluster().For(owner)),
        facts_(*cluster_, OfAll().admission, [this] { loop_.Wake(); }),
        feed_(*cluster_, OfAll().admission, [this] { loop_.Wake(); }),
        errands_(*cluster_, feed_, clock_, owner.name),
        quarantine_(clock_, {"Job", "Pod"}),
        shard_({.pool = ConfigOfPool(), .pool_partitions = kPartitions},
               {facts_,
                feed_,
                errands_,
                clock_,
                OfAll().admission,
                OfAll().tracer,
                quarantine_,
                [this]() -> delivery::ShardLoop& { return loop_; }}),
        loop_({.loop = OptionsOf(world, owner, "admission"),
               .shard = "watch",
               .quarantine = &quarantine_},
              shard_,
              clock_,
              &lacking_) {}

  absl::Status Run() override {
    RETURN_IF_ERROR(facts_.Start());
    errand_thread_ = cluster_->threads().Start(
        [this](const std::stop_token& stop) { errands_.Run(stop).IgnoreError(); });
    return loop_.Run(stop_.get_token());
  }
  absl::Status Ready() const override { return loop_.Ready(); }
  const delivery::Stats& stats() const override { return loop_.stats(); }

 private:
  SimClock clock_;
  Lacking lacking_;
  std::stop_source stop_;
  const std::unique_ptr<kubernetes::Cluster> cluster_;
  admission::FactsCache facts_;
  admission::WorkloadFeed feed_;
  admission::ErrandRunner errands_;
  delivery::Quarantine quarantine_;
  admission::WatchShard shard_;
  delivery::ShardLoop loop_;
  std::unique_ptr<Thread> errand_thread_;
};

}  // namespace

std::unique_ptr<Process> MakeBinder(ClusterWorld& world, Owner& owner) {
  return std::make_unique<BinderProcess>(world, owner);
}

std::unique_ptr<Process> MakeCleanup(ClusterWorld& world, Owner& owner) {
  return std::make_unique<CleanupProcess>(world, owner);
}

std::unique_ptr<Process> MakeAdmission(ClusterWorld& world, Owner& owner) {
  return std::make_unique<AdmissionProcess>(world, owner);
}

}  // namespace fluxqueue::simulation
