#include "services/admission/app.h"

#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/delivery/shard_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/http/certificate_metrics.h"
#include "libs/kafka/topics.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/metrics/mailbox_metrics.h"
#include "services/admission/adapters/errand_runner.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/adapters/usage_reader.h"
#include "services/admission/adapters/watch_shard.h"
#include "services/admission/adapters/webhook_server.h"
#include "services/admission/adapters/workload_feed.h"
#include "services/admission/metrics.h"

#include "admission_migrations.h"

namespace fluxqueue::admission {
namespace {

constexpr const char* kService = "admission";

class AdmissionApp final : public lifecycle::App {
 public:
  AdmissionApp(const lifecycle::AppContext& context,
               const AdmissionConfig& config,
               kubernetes::ClusterConfig cluster)
      : metrics_(context.metrics),
        loop_options_(delivery::MakeLoopOptions(context.config, kService)),
        client_(std::move(cluster)),
        facts_(client_, metrics_, [this] { loop_.Wake(); }),
        webhook_(MakeServerOptions(config),
                 MakeWebhookOptions(config),
                 facts_,
                 client_,
                 context.clock,
                 metrics_,
                 context.tracer),
        feed_(client_, metrics_, [this] { loop_.Wake(); }),
        errands_(client_, feed_, context.clock, context.config.instance),
        quarantine_(context.clock, {"Job", "Pod"}),
        shard_({.pool = MakePoolConfigured(config),
                .pool_partitions = kafka::kPoolPartitions,
                .max_jobspec_bytes = MakeWebhookOptions(config).max_jobspec_bytes,
                .max_batch = loop_options_.max_batch,
                .sweep_interval = config.sweep_interval},
               {facts_,
                feed_,
                errands_,
                context.clock,
                metrics_,
                context.tracer,
                quarantine_,
                [this]() -> delivery::ShardLoop& { return loop_; }}),
        loop_({.loop = loop_options_,
               .shard = "watch",
               .migrations = {&migrations::admission()},
               .quarantine = &quarantine_},
              shard_,
              context.clock),
        usage_(loop_options_.postgres, facts_),
        usage_thread_(
            "usage",
            [this](lifecycle::LoopContext& loop) { return usage_.Run(loop); },
            nullptr,
            context.failures),
        errand_thread_(
            "errands",
            [this](lifecycle::LoopContext& loop) { return errands_.Run(loop.stop_token()); },
            nullptr,
            context.failures),
        watch_thread_(
            "watch loop",
            [this](lifecycle::LoopContext& loop) { return RunLoop(loop.stop_token()); },
            [this] { return LoopReady(); },
            context.failures,
            [this] { return loop_.Alive(); }) {
    http::ExportCertificates(context.metrics, kService, {{"webhook", config.webhook.certificate}});
    delivery::ExportStats(context.metrics, kService, loop_.stats());
    delivery::ExportQuarantine(context.metrics, kService, quarantine_);
    kubernetes::ExportCalls(context.metrics, kService, client_);
    metrics::ExportMailboxes(context.metrics,
                             kService,
                             {metrics::Watch("workloads", feed_.mailbox()),
                              metrics::Watch("errands", errands_.mailbox()),
                              metrics::Watch("second looks", webhook_.looks().mailbox())});
  }

  std::vector<lifecycle::Component*> Components() override {
    return {&facts_, &webhook_, &usage_thread_, &errand_thread_, &watch_thread_};
  }

 private:
  absl::Status RunLoop(const std::stop_token& stop) {
    const absl::Status status = loop_.Run(stop);
    feed_.Close();
    return status;
  }

  absl::Status LoopReady() const {
    RETURN_IF_ERROR(loop_.Ready());
    return feed_.Health();
  }

  AdmissionMetrics metrics_;
  const delivery::LoopOptions loop_options_;
  kubernetes::Client client_;
  FactsCache facts_;
  WebhookServer webhook_;
  WorkloadFeed feed_;
  ErrandRunner errands_;
  delivery::Quarantine quarantine_;
  WatchShard shard_;
  delivery::ShardLoop loop_;
  UsageReader usage_;
  lifecycle::LoopComponent usage_thread_;
  lifecycle::LoopComponent errand_thread_;
  lifecycle::LoopComponent watch_thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const AdmissionConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  return std::make_unique<AdmissionApp>(context, config, std::move(cluster));
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, kService, {&migrations::admission()}, std::move(stop));
}

}  // namespace fluxqueue::admission
