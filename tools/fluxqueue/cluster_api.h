// The queue behind the API server of a cluster (visibility.fluxqueue.io), asked with the person's
// own credentials: what he may, RBAC says, and the audit log has his name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/job_store/job_store.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

struct ApiFilter {
  std::string space{};  // empty: all
  std::string queue{};
  bool ended = false;
};

class ClusterApi {
 public:
  // Nothing: the command is not about a cluster, or its API server does not serve the group: the
  // command line reaches the system otherwise then. An error where the group is away: the other
  // way would act as somebody else.
  static absl::StatusOr<std::unique_ptr<ClusterApi>> Reach(const Context& context);

  // At most kMostJobs. `*more`: there are others. Where he may not list all namespaces, those of
  // his own one, and `*space` names it.
  absl::StatusOr<std::vector<job_store::Job>> Jobs(const ApiFilter& filter,
                                                   bool* more,
                                                   std::string* space) const;
  // `wanted`: NAMESPACE/NAME, NAME in the kubeconfig's namespace, or the id of a claim.
  absl::StatusOr<queue::v1::GetJobResponse> Job(const std::string& wanted) const;
  absl::StatusOr<queue::v1::ExplainResponse> Explain(const queue::v1::Job& job) const;
  // `command`: "cancel", "hold", "priority", "move".
  absl::Status Command(const queue::v1::Job& job,
                       const std::string& command,
                       const nlohmann::json& spec) const;

  static constexpr size_t kMostJobs = 10'000;

 private:
  explicit ClusterApi(ClusterAccess access) : access_(std::move(access)) {}

  absl::StatusOr<nlohmann::json> Get(const std::string& path) const;
  absl::StatusOr<queue::v1::GetJobResponse> JobAt(const std::string& path) const;
  absl::StatusOr<nlohmann::json> Ask(std::vector<std::string> arguments,
                                     const std::string& input) const;
  absl::StatusOr<std::vector<job_store::Job>> List(const std::string& path,
                                                   const ApiFilter& filter,
                                                   bool* more) const;
  std::string OwnNamespace() const;

  const ClusterAccess access_;
};

// As the tables would have it.
job_store::Job FromMessage(const queue::v1::Job& job);

}  // namespace fluxqueue::cli
