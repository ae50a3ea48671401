#include "libs/rpc/gate.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/call_metrics.h"
#include "libs/rpc/caller.h"
#include "libs/rpc/grpc_status.h"

namespace fluxqueue::rpc::internal {
namespace {

constexpr std::string_view kHealth = "/grpc.health.v1.Health/";

class Gate final : public grpc::AuthMetadataProcessor {
 public:
  Gate(ServerConfig::Callers callers, metrics::CounterFamily refusals)
      : callers_(std::move(callers)), refusals_(refusals) {}

  // What it does takes microseconds.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* connection,
                       OutputMetadata* /*consumed*/,
                       OutputMetadata* /*response*/) override {
    const auto path = metadata.find(":path");
    if (path != metadata.end() && path->second.starts_with({kHealth.data(), kHealth.size()})) {
      return grpc::Status::OK;
    }
    const absl::Status status = Judge(*connection, metadata);
    if (status.ok()) return grpc::Status::OK;
    const grpc::Status answer = ToGrpcStatus(status);
    refusals_.With({{"code", std::string(CodeName(answer.error_code()))}}).Add();
    return answer;
  }

 private:
  absl::Status Judge(const grpc::AuthContext& connection, const InputMetadata& metadata) const {
    ASSIGN_OR_RETURN(const Caller caller, ReadCaller(connection, metadata, callers_));
    return caller.user.empty() ? NobodyCalls() : absl::OkStatus();
  }

  const ServerConfig::Callers callers_;
  metrics::CounterFamily refusals_;
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeGate(const ServerConfig::Callers& callers,
                                                      metrics::CounterFamily refusals) {
  return std::make_shared<Gate>(callers, refusals);
}

}  // namespace fluxqueue::rpc::internal
