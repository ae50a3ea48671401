#include "services/queue/adapters/rpc/unary_call.h"

#include <algorithm>
#include <utility>

#include "libs/base/text.h"
#include "libs/rpc/caller.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::queue {
namespace {

// Of a call that names no deadline, and the longest of any.
constexpr std::chrono::seconds kDefaultDeadline{30};
constexpr std::chrono::minutes kLongestDeadline{15};

constexpr size_t kMostOfTraceparent = 253;

std::chrono::steady_clock::time_point DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto now = std::chrono::steady_clock::now();
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return now + kDefaultDeadline;
  const auto left = deadline - std::chrono::system_clock::now();
  return left > kLongestDeadline ? now + kLongestDeadline
                                 : now + std::chrono::duration_cast<std::chrono::nanoseconds>(left);
}

}  // namespace

Caller ReadCall(const grpc::CallbackServerContext& context,
                const rpc::ServerConfig::Callers& callers) {
  const auto& metadata = context.client_metadata();
  rpc::Shown shown = rpc::ShownBy(context, callers);
  const bool handed_on = metadata.contains(kHandedOn);
  Caller caller{.who = std::move(shown.caller),
                .token = std::move(shown.token),
                .deadline = DeadlineOf(context),
                .handed_on = handed_on,
                .judged = handed_on && shown.by_queue};
  const auto traced = metadata.find(tracing::kTraceparent);
  if (traced != metadata.end()) {
    caller.traceparent = Clean({traced->second.data(), traced->second.size()}, kMostOfTraceparent);
  }
  return caller;
}

void HandOnAs(const Caller& caller, grpc::ClientContext* context) {
  rpc::Forward(caller.who, context);
  context->AddMetadata(kHandedOn, "1");
  if (!caller.traceparent.empty()) {
    context->AddMetadata(tracing::kTraceparent, caller.traceparent);
  }
}

std::shared_ptr<UnaryCall> UnaryCall::Make(const grpc::CallbackServerContext& context,
                                           const rpc::ServerConfig::Callers& callers) {
  std::shared_ptr<UnaryCall> call(new UnaryCall(ReadCall(context, callers)));
  call->self_ = call;
  return call;
}

void UnaryCall::End(const std::function<grpc::Status()>& fill) {
  grpc::Status status;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return;
    status = fill();
  }
  Finish(std::move(status));
}

void UnaryCall::OnCancel() {
  End([] { return grpc::Status::CANCELLED; });
}

void UnaryCall::OnDone() {
  const std::shared_ptr<UnaryCall> last = std::move(self_);
}

}  // namespace fluxqueue::queue
