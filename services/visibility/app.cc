#include "services/visibility/app.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/http/certificate_metrics.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "services/visibility/adapters/api.h"
#include "services/visibility/metrics.h"

namespace fluxqueue::visibility {
namespace {

class VisibilityApp final : public lifecycle::App {
 public:
  VisibilityApp(const lifecycle::AppContext& context,
                const VisibilityConfig& config,
                kubernetes::ClusterConfig cluster)
      : metrics_(context.metrics),
        client_(std::move(cluster)),
        api_(config, client_, context.clock, metrics_),
        loop_(
            "aggregated API",
            [this](lifecycle::LoopContext& loop) { return api_.Run(loop); },
            [this] { return api_.Ready(); },
            context.failures) {
    http::ExportCertificates(
        context.metrics,
        "visibility",
        {{"api", config.certificate}, {"grpc", config.queue_files.certificate}});
    kubernetes::ExportCalls(context.metrics, "visibility", client_);
  }

  std::vector<lifecycle::Component*> Components() override { return {&loop_}; }

 private:
  VisibilityMetrics metrics_;
  kubernetes::Client client_;
  Api api_;
  lifecycle::LoopComponent loop_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const VisibilityConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  return std::make_unique<VisibilityApp>(context, config, std::move(cluster));
}

}  // namespace fluxqueue::visibility
