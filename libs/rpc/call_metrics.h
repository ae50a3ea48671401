// Counts the calls of a server:
//
//   fluxqueue_grpc_calls_total{method, code}    calls that have ended; method:
//   "package.Service/Name" fluxqueue_grpc_call_seconds{method}         unary calls, from the
//   headers to the status
//
// Private to this library. Calls of methods that the server does not have are not counted.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/support/server_interceptor.h>

#include "libs/metrics/metrics.h"

namespace fluxqueue::rpc::internal {

// "NOT_FOUND"; "UNKNOWN" for what is no code.
std::string_view CodeName(grpc::StatusCode code);

// Thread-safe. Outlives the server's calls.
class CallMetrics {
 public:
  // One method; its counters are made as its codes first occur.
  class Method {
   public:
    Method(CallMetrics& owner, std::string name);
    void Ended(grpc::StatusCode code, std::chrono::steady_clock::time_point begun, bool unary);

   private:
    static constexpr size_t kCodes = 17;

    metrics::Counter& CounterOf(size_t code);

    CallMetrics& owner_;
    const std::string name_;
    metrics::Latency latency_;
    std::array<std::atomic<metrics::Counter*>, kCodes> counters_{};
    std::mutex mutex_;
    std::vector<std::unique_ptr<metrics::Counter>> made_;  // guarded by mutex_
  };

  // `services`: full names.
  CallMetrics(metrics::Registry& registry, const std::vector<std::string>& services);

  // By gRPC's path, "/package.Service/Name"; null for one that is not known.
  Method* Find(std::string_view path);

 private:
  metrics::CounterFamily calls_;
  metrics::LatencyFamily seconds_;
  std::map<std::string, Method, std::less<>> by_path_;
};

// What gRPC asks for each call.
class CallMetricsFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallMetricsFactory(CallMetrics& metrics) : metrics_(metrics) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  CallMetrics& metrics_;
};

}  // namespace fluxqueue::rpc::internal
