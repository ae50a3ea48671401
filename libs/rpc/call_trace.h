// A span for each call that comes with a `traceparent`, below the one that it names. The handler
// finds the call's own span in that metadata, so that what it hands on lies below in turn.
//
// Private to this library.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "libs/tracing/tracer.h"

namespace fluxqueue::rpc::internal {

class CallTraceFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `tracer` outlives the server's calls.
  explicit CallTraceFactory(tracing::Tracer& tracer) : tracer_(tracer) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  tracing::Tracer& tracer_;
};

}  // namespace fluxqueue::rpc::internal
