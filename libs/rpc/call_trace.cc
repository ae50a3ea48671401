#include "libs/rpc/call_trace.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "libs/rpc/call_metrics.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::rpc::internal {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::ServerRpcInfo;

// Lives as long as its call.
class CallTrace final : public grpc::experimental::Interceptor {
 public:
  // `method`: "package.Service/Name".
  CallTrace(tracing::Tracer& tracer, std::string method)
      : tracer_(tracer), method_(std::move(method)) {}
  ~CallTrace() override {
    if (!parent_.has_value()) return;
    tracer_.Record({.trace_id = parent_->trace_id,
                    .span_id = span_id_,
                    .parent_id = parent_->span_id,
                    .name = "rpc " + method_.substr(method_.rfind('/') + 1),
                    .kind = tracing::SpanKind::kServer,
                    .begin = begin_,
                    .end = std::chrono::system_clock::now(),
                    .attributes = {{"rpc.system", "grpc"},
                                   {"rpc.method", method_},
                                   {"rpc.response.status_code", std::string(CodeName(code_))}}});
  }
  CallTrace(const CallTrace&) = delete;
  CallTrace& operator=(const CallTrace&) = delete;

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      auto* metadata = methods->GetRecvInitialMetadata();
      const auto found = metadata->find(tracing::kTraceparent);
      if (found != metadata->end()) Continue(&found->second);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      code_ = methods->GetSendStatus().error_code();
    }
    methods->Proceed();
  }

 private:
  void Continue(grpc::string_ref* traceparent) {
    parent_ = tracing::ParseTraceparent({traceparent->data(), traceparent->size()});
    if (!parent_.has_value()) return;
    // Each call is one of its own, also of the same method.
    span_id_ = tracing::SpanId(
        parent_->span_id, 0, fmt::format("{}/{}", method_, begin_.time_since_epoch().count()));
    own_ = tracing::Format({parent_->trace_id, span_id_});
    *traceparent = own_;
  }

  tracing::Tracer& tracer_;
  const std::string method_;
  const tracing::Time begin_ = std::chrono::system_clock::now();
  grpc::StatusCode code_ = grpc::StatusCode::CANCELLED;
  std::optional<tracing::Context> parent_;  // unset: none came
  std::string span_id_;
  std::string own_;
};

}  // namespace

grpc::experimental::Interceptor* CallTraceFactory::CreateServerInterceptor(ServerRpcInfo* info) {
  return new CallTrace(tracer_, info->method() + 1);
}

}  // namespace fluxqueue::rpc::internal
