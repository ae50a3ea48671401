#include "libs/rpc/gate.h"

#include <algorithm>
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
  Gate(ServerConfig::Callers callers,
       const std::vector<std::string>& with_tokens,
       metrics::CounterFamily refusals)
      : callers_(std::move(callers)), refusals_(refusals) {
    for (const std::string& service : with_tokens) with_tokens_.push_back("/" + service + "/");
  }

  // What it does takes microseconds.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* connection,
                       OutputMetadata* /*consumed*/,
                       OutputMetadata* /*response*/) override {
    const auto found = metadata.find(":path");
    const grpc::string_ref path = found == metadata.end() ? grpc::string_ref() : found->second;
    if (path.starts_with({kHealth.data(), kHealth.size()})) return grpc::Status::OK;
    const absl::Status status = Judge(*connection, metadata, path);
    if (status.ok()) return grpc::Status::OK;
    const grpc::Status answer = ToGrpcStatus(status);
    refusals_.With({{"code", std::string(CodeName(answer.error_code()))}}).Add();
    return answer;
  }

 private:
  absl::Status Judge(const grpc::AuthContext& connection,
                     const InputMetadata& metadata,
                     grpc::string_ref path) const {
    ASSIGN_OR_RETURN(const Shown shown, ReadCaller(connection, metadata, callers_));
    const bool tokens =
        std::any_of(with_tokens_.begin(), with_tokens_.end(), [path](const std::string& service) {
          return path.starts_with(service);
        });
    if (!shown.token.empty()) return tokens ? absl::OkStatus() : NoTokensHere();
    return shown.caller.user.empty() ? NobodyCalls(tokens) : absl::OkStatus();
  }

  const ServerConfig::Callers callers_;
  std::vector<std::string> with_tokens_;  // "/fluxqueue.queue.v1.Queue/"
  metrics::CounterFamily refusals_;
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeGate(const ServerConfig::Callers& callers,
                                                      const std::vector<std::string>& with_tokens,
                                                      metrics::CounterFamily refusals) {
  return std::make_shared<Gate>(callers, with_tokens, refusals);
}

}  // namespace fluxqueue::rpc::internal
