#include "services/queue/adapters/rpc/unary_call.h"

#include <algorithm>
#include <utility>

#include "libs/base/text.h"
#include "libs/rpc/grpc_status.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::queue {
namespace {

// Of a call that names no deadline, and the longest of any.
constexpr std::chrono::seconds kDefaultDeadline{30};
constexpr std::chrono::minutes kLongestDeadline{15};

constexpr size_t kMostOfName = 253;

// Metadata and certificates may hold any bytes; a name goes into events.
std::string Text(const grpc::string_ref& text) {
  return Clean({text.data(), text.size()}, kMostOfName);
}

std::chrono::steady_clock::time_point DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto now = std::chrono::steady_clock::now();
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return now + kDefaultDeadline;
  const auto left = deadline - std::chrono::system_clock::now();
  return left > kLongestDeadline ? now + kLongestDeadline
                                 : now + std::chrono::duration_cast<std::chrono::nanoseconds>(left);
}

// The name in its certificate, or where it comes from.
std::string NameOf(const grpc::CallbackServerContext& context) {
  const auto auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    const auto names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
    if (!names.empty()) return Text(names.front());
  }
  const std::string peer = context.peer();  // "ipv4:127.0.0.1:40566"
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace

Caller CallerOf(const grpc::CallbackServerContext& context) {
  Caller caller{.name = NameOf(context), .deadline = DeadlineOf(context)};
  const auto asked = context.client_metadata().find(kForwardedFor);
  if (asked != context.client_metadata().end()) {
    caller.name = Text(asked->second);
    caller.forwarded = true;
  }
  const auto traced = context.client_metadata().find(tracing::kTraceparent);
  if (traced != context.client_metadata().end()) caller.traceparent = Text(traced->second);
  return caller;
}

void Forward(const Caller& caller, grpc::ClientContext* context) {
  context->AddMetadata(kForwardedFor, rpc::MetadataText(caller.name));
  if (!caller.traceparent.empty()) {
    context->AddMetadata(tracing::kTraceparent, caller.traceparent);
  }
}

std::shared_ptr<UnaryCall> UnaryCall::Make(const grpc::CallbackServerContext& context) {
  std::shared_ptr<UnaryCall> call(new UnaryCall(CallerOf(context)));
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
