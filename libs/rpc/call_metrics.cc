#include "libs/rpc/call_metrics.h"

#include <google/protobuf/descriptor.h>

#include "libs/base/check.h"

namespace fluxqueue::rpc::internal {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::ServerRpcInfo;

constexpr std::array<std::string_view, 17> kCodeNames = {"OK",
                                                         "CANCELLED",
                                                         "UNKNOWN",
                                                         "INVALID_ARGUMENT",
                                                         "DEADLINE_EXCEEDED",
                                                         "NOT_FOUND",
                                                         "ALREADY_EXISTS",
                                                         "PERMISSION_DENIED",
                                                         "RESOURCE_EXHAUSTED",
                                                         "FAILED_PRECONDITION",
                                                         "ABORTED",
                                                         "OUT_OF_RANGE",
                                                         "UNIMPLEMENTED",
                                                         "INTERNAL",
                                                         "UNAVAILABLE",
                                                         "DATA_LOSS",
                                                         "UNAUTHENTICATED"};

size_t IndexOf(grpc::StatusCode code) {
  const auto number = static_cast<size_t>(code);
  return number < kCodeNames.size() ? number : static_cast<size_t>(grpc::StatusCode::UNKNOWN);
}

// Lives as long as its call. A call that goes without a status was cancelled.
class CallWatch final : public grpc::experimental::Interceptor {
 public:
  CallWatch(CallMetrics::Method* method, bool unary) : method_(method), unary_(unary) {}
  ~CallWatch() override { method_->Ended(code_, begun_, unary_); }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      code_ = methods->GetSendStatus().error_code();
    }
    methods->Proceed();
  }

 private:
  CallMetrics::Method* method_;
  const bool unary_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  grpc::StatusCode code_ = grpc::StatusCode::CANCELLED;
};

// For methods that are not counted.
class NoWatch final : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    methods->Proceed();
  }
};

}  // namespace

std::string_view CodeName(grpc::StatusCode code) {
  return kCodeNames[IndexOf(code)];
}

CallMetrics::Method::Method(CallMetrics& owner, std::string name)
    : owner_(owner), name_(std::move(name)), latency_(owner_.seconds_.With({{"method", name_}})) {}

metrics::Counter& CallMetrics::Method::CounterOf(size_t code) {
  if (metrics::Counter* counter = counters_[code].load(std::memory_order_acquire)) return *counter;
  const std::lock_guard lock(mutex_);
  if (metrics::Counter* counter = counters_[code].load(std::memory_order_acquire)) return *counter;
  made_.push_back(std::make_unique<metrics::Counter>(
      owner_.calls_.With({{"method", name_}, {"code", std::string(kCodeNames[code])}})));
  counters_[code].store(made_.back().get(), std::memory_order_release);
  return *made_.back();
}

void CallMetrics::Method::Ended(grpc::StatusCode code,
                                std::chrono::steady_clock::time_point begun,
                                bool unary) {
  CounterOf(IndexOf(code)).Add();
  if (unary) latency_.Observe(std::chrono::steady_clock::now() - begun);
}

CallMetrics::CallMetrics(metrics::Registry& registry, const std::vector<std::string>& services)
    : calls_(registry.MakeCounters(
          "fluxqueue_grpc_calls_total", "gRPC calls that have ended.", {"method", "code"})),
      seconds_(registry.MakeLatencies("fluxqueue_grpc_call_seconds",
                                      "Unary gRPC calls, from the headers to the status.",
                                      {"method"})) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const std::string& name : services) {
    const auto* service = pool->FindServiceByName(name);
    CHECK(service != nullptr, "no service {}", name);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string method = name + "/" + service->method(i)->name();
      by_path_.try_emplace("/" + method, *this, method);
    }
  }
}

CallMetrics::Method* CallMetrics::Find(std::string_view path) {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : &found->second;
}

grpc::experimental::Interceptor* CallMetricsFactory::CreateServerInterceptor(ServerRpcInfo* info) {
  CallMetrics::Method* method = metrics_.Find(info->method());
  if (method == nullptr) return new NoWatch;
  return new CallWatch(method, info->type() == ServerRpcInfo::Type::UNARY);
}

}  // namespace fluxqueue::rpc::internal
