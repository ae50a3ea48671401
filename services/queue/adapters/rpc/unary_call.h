// A unary call that is answered later, from any thread, and once: whatever comes after the answer,
// or after the client has gone or its deadline is over, is dropped.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/grpcpp.h>

#include "services/queue/adapters/rpc/command_api.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

// Metadata of a call that another replica hands on: for whom it asks.
inline constexpr char kForwardedFor[] = "fluxqueue-forwarded-for";

Caller CallerOf(const grpc::CallbackServerContext& context);
// To another replica, on its behalf.
void Forward(const Caller& caller, grpc::ClientContext* context);

// Thread-safe.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Lives until gRPC is done with it and nobody holds it.
  static std::shared_ptr<UnaryCall> Make(const grpc::CallbackServerContext& context);

  // `fill` fills the response and gives the status; it is not called when the call is over.
  void End(const std::function<grpc::Status()>& fill);
  const Caller& caller() const { return caller_; }

 private:
  explicit UnaryCall(Caller caller) : caller_(std::move(caller)) {}
  void OnCancel() override;
  void OnDone() override;

  const Caller caller_;
  std::mutex mutex_;
  bool over_ = false;                // guarded by mutex_
  std::shared_ptr<UnaryCall> self_;  // until OnDone
};

}  // namespace fluxqueue::queue
