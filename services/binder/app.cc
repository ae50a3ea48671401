#include "services/binder/app.h"

#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/metrics/mailbox_metrics.h"
#include "services/binder/adapters/bypass_guard.h"
#include "services/binder/adapters/call_workers.h"
#include "services/binder/adapters/cluster_calls.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/adapters/jobs_handler.h"
#include "services/binder/adapters/left_out_teller.h"
#include "services/binder/adapters/pod_feed.h"
#include "services/binder/adapters/pod_teller.h"
#include "services/binder/adapters/provisioner.h"
#include "services/binder/adapters/slot_proofs.h"
#include "services/binder/metrics.h"

#include "binder_migrations.h"

namespace fluxqueue::binder {
namespace {

class BinderApp final : public lifecycle::App {
 public:
  BinderApp(const lifecycle::AppContext& context,
            const BinderConfig& config,
            kubernetes::ClusterConfig cluster,
            SlotProofs proofs)
      : metrics_(context.metrics),
        options_(delivery::MakeLoopOptions(context.config, "binder")),
        client_(std::move(cluster)),
        proofs_(std::move(proofs)),
        quarantine_(context.clock, {"Pod"}),
        calls_(client_, proofs_, context.clock, config.node_lost_grace),
        workers_(config.api_workers, client_.threads(), calls_, inbox_, metrics_, context.clock),
        pods_(client_, inbox_, metrics_),
        teller_(client_, context.clock, context.config.instance),
        pod_teller_(client_),
        provisioner_(client_, context.clock, config.provision),
        handler_({.plan = config.plan,
                  .proofs = [this](const PodFacts& pod) { return proofs_.Holds(pod); },
                  .inbox = inbox_,
                  .quarantine = quarantine_,
                  .tell = [this](const delivery::QuarantineRow& row) { teller_.Tell(row); },
                  .pods_in_view = [this] { return pods_.Ready().ok(); },
                  .pods = pod_teller_,
                  .lack =
                      [this](std::vector<events::v1::JobFact> jobs) {
                        provisioner_.Lack(std::move(jobs));
                      },
                  .submit = [this](std::vector<Call> calls) { workers_.Submit(std::move(calls)); },
                  .metrics = metrics_,
                  .clock = context.clock,
                  .tracer = context.tracer}),
        loop_({options_, options_.topics.jobs, {&migrations::binder()}}, handler_, context.clock),
        component_(
            "jobs loop",
            [this](lifecycle::LoopContext& loop) { return loop_.Run(loop.stop_token()); },
            [this] { return loop_.Ready(); },
            context.failures,
            [this] { return loop_.Alive(); }),
        teller_component_(
            "left out",
            [this](lifecycle::LoopContext& loop) { return teller_.Run(loop.stop_token()); },
            nullptr,
            context.failures),
        pod_teller_component_(
            "pods that wait",
            [this](lifecycle::LoopContext& loop) { return pod_teller_.Run(loop.stop_token()); },
            nullptr,
            context.failures),
        provisioner_component_(
            "lack nodes",
            [this](lifecycle::LoopContext& loop) { return provisioner_.Run(loop.stop_token()); },
            nullptr,
            context.failures),
        bypass_(client_,
                metrics_,
                context.clock,
                context.config.instance,
                [this](const delivery::QuarantineRow& row) { teller_.Tell(row); }),
        bypass_component_(
            "bypass guard",
            [this](lifecycle::LoopContext& loop) { return bypass_.Run(loop.stop_token()); },
            nullptr,
            context.failures) {
    inbox_.SetWake([this] { loop_.Wake(); });
    delivery::ExportStats(context.metrics, "binder", loop_.stats());
    delivery::ExportQuarantine(context.metrics, "binder", quarantine_);
    kubernetes::ExportCalls(context.metrics, "binder", client_);
    metrics::ExportMailboxes(context.metrics,
                             "binder",
                             {metrics::Watch("cluster", inbox_),
                              metrics::Watch("left out", teller_.mailbox()),
                              metrics::Watch("pods that wait", pod_teller_.mailbox()),
                              metrics::Watch("lack nodes", provisioner_.mailbox()),
                              metrics::Watch("bypass", bypass_.mailbox())});
  }

  std::vector<lifecycle::Component*> Components() override {
    return {&workers_,
            &pods_,
            &teller_component_,
            &pod_teller_component_,
            &provisioner_component_,
            &component_,
            &bypass_component_};
  }

 private:
  BinderMetrics metrics_;
  const delivery::LoopOptions options_;
  Inbox inbox_{"cluster", kMostInboxBytes};
  kubernetes::Client client_;
  const SlotProofs proofs_;
  delivery::Quarantine quarantine_;
  ClusterCalls calls_;
  CallWorkers workers_;
  PodFeed pods_;
  LeftOutTeller teller_;
  PodTeller pod_teller_;
  Provisioner provisioner_;
  JobsHandler handler_;
  delivery::PartitionLoop loop_;
  lifecycle::LoopComponent component_;
  lifecycle::LoopComponent teller_component_;
  lifecycle::LoopComponent pod_teller_component_;
  lifecycle::LoopComponent provisioner_component_;
  BypassGuard bypass_;
  lifecycle::LoopComponent bypass_component_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const BinderConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  ASSIGN_OR_RETURN(SlotProofs proofs, SlotProofs::Read(config.proof_key));
  return std::make_unique<BinderApp>(context, config, std::move(cluster), std::move(proofs));
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, "binder", {&migrations::binder()}, std::move(stop));
}

}  // namespace fluxqueue::binder
