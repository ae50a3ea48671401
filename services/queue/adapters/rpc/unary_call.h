// A unary call that is answered later, from any thread, and once: whatever comes after the answer,
// or after the client has gone or its deadline is over, is dropped.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/grpcpp.h>

#include "libs/rpc/server_config.h"
#include "services/queue/adapters/rpc/command_api.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

// Metadata of a call that another replica of the queue hands on; it is not handed on again. Whoever
// else says it is told to call again where the pool is not held.
inline constexpr char kHandedOn[] = "fluxqueue-handed-on";

Caller ReadCall(const grpc::CallbackServerContext& context,
                const rpc::ServerConfig::Callers& callers);
// For a call to another replica, on its behalf.
void HandOnAs(const Caller& caller, grpc::ClientContext* context);

// Thread-safe.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Lives until gRPC is done with it and nobody holds it.
  static std::shared_ptr<UnaryCall> Make(const grpc::CallbackServerContext& context,
                                         const rpc::ServerConfig::Callers& callers);

  // `fill` fills the response and gives the status; it is not called when the call is over.
  void End(const std::function<grpc::Status()>& fill);
  const Caller& caller() const { return caller_; }
  // For whoever finds out whose the call is, before anybody else has it.
  Caller* mutable_caller() { return &caller_; }

 private:
  explicit UnaryCall(Caller caller) : caller_(std::move(caller)) {}
  void OnCancel() override;
  void OnDone() override;

  Caller caller_;
  std::mutex mutex_;
  bool over_ = false;                // guarded by mutex_
  std::shared_ptr<UnaryCall> self_;  // until OnDone
};

}  // namespace fluxqueue::queue
