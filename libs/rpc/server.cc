#include "libs/rpc/server.h"

#include <chrono>
#include <condition_variable>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/rpc/call_metrics.h"
#include "libs/rpc/call_trace.h"
#include "libs/rpc/caller.h"
#include "libs/rpc/gate.h"
#include "libs/rpc/tls.h"

namespace fluxqueue::rpc {
namespace {

constexpr Millis kHealthInterval{250};
// Room for what is forwarded of a user, encoded, each with its key and what HTTP/2 counts for it.
constexpr int kMostMetadata = 3 * (kMostGroupBytes + 2 * kMostUserBytes + kMostExtraBytes) +
                              (kMostGroups + kMostExtras) * 64 + (16 << 10);

std::vector<std::string> NamesOf(const std::vector<ServedService>& services) {
  std::vector<std::string> names;
  names.reserve(services.size());
  for (const ServedService& served : services) names.push_back(served.name);
  return names;
}

std::vector<std::string> WithTokens(const std::vector<ServedService>& services) {
  std::vector<std::string> names;
  for (const ServedService& served : services) {
    if (served.tokens) names.push_back(served.name);
  }
  return names;
}

void LogOfGrpc(gpr_log_func_args* args) {
  if (args->severity == GPR_LOG_SEVERITY_ERROR) LogWarning("gRPC", {{"message", args->message}});
}

// Globals of gRPC, to be set before the first server is made.
void EnablePlugins() {
  static const bool done = [] {
    gpr_set_log_function(&LogOfGrpc);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  static_cast<void>(done);
}

void SetLimits(const ServerConfig& config, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(config.max_request));
  builder->SetMaxSendMessageSize(static_cast<int>(config.max_message));
  grpc::ResourceQuota quota("fluxqueue");
  quota.Resize(static_cast<size_t>(config.max_memory));
  quota.SetMaxThreads(config.max_threads);
  builder->SetResourceQuota(quota);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, config.max_calls);
  if (config.callers.wanted()) {
    builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadata);
  }
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              static_cast<int>(config.keepalive.count()));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              static_cast<int>(config.min_ping_interval.count()));
  // Else a port in use would be shared with whoever has it.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// gRPC's form of an address wants brackets around IPv6.
std::string AddressOf(const ServerConfig& config) {
  const bool v6 = config.address.find(':') != std::string::npos;
  return fmt::format("{}:{}", v6 ? "[" + config.address + "]" : config.address, config.port);
}

}  // namespace

Server::Server(ServerConfig config,
               std::vector<ServedService> services,
               Readiness ready,
               metrics::Registry& metrics,
               tracing::Tracer& tracer)
    : config_(std::move(config)),
      services_(std::move(services)),
      ready_(std::move(ready)),
      tracer_(tracer) {
  if (!config_.enabled()) return;
  calls_ = std::make_unique<internal::CallMetrics>(metrics, NamesOf(services_));
  refusals_ = metrics.MakeCounters(
      "fluxqueue_grpc_refusals_total", "gRPC calls that did not show who makes them.", {"code"});
}

Server::~Server() {
  Stop();
}

absl::Status Server::Start() {
  if (!config_.enabled()) return absl::OkStatus();
  EnablePlugins();
  const bool callers = config_.callers.wanted();
  ASSIGN_OR_RETURN(const auto credentials, internal::MakeCredentials(config_.tls, callers));
  if (callers) {
    credentials->SetAuthMetadataProcessor(
        internal::MakeGate(config_.callers, WithTokens(services_), *refusals_));
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(AddressOf(config_), credentials, &port);
  SetLimits(config_, &builder);
  for (const ServedService& served : services_) builder.RegisterService(served.service);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  creators.push_back(std::make_unique<internal::CallMetricsFactory>(*calls_));
  if (tracer_.on()) creators.push_back(std::make_unique<internal::CallTraceFactory>(tracer_));
  builder.experimental().SetInterceptorCreators(std::move(creators));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    server_.reset();
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "listen on {}: not an address of this machine, or the port is in use or may "
                      "not be opened; configure another (grpc.address, grpc.port)",
                      AddressOf(config_));
  }
  port_ = port;
  SayHealth(false);
  health_thread_ = std::jthread([this](const std::stop_token& stop) { WatchHealth(stop); });
  LogInfo("serving gRPC",
          {{"address", fmt::format("{}:{}", config_.address, port_)},
           {"tls",
            config_.tls.certificate.empty() ? "no"
            : config_.tls.client_ca.empty() ? "yes"
            : callers                       ? "callers are asked for"
                                            : "mutual"}});
  return absl::OkStatus();
}

void Server::Stop() {
  if (server_ == nullptr) return;
  health_thread_ = {};
  SayHealth(true);
  for (const ServedService& served : services_) {
    if (served.drain) served.drain();
  }
  server_->Shutdown(std::chrono::system_clock::now() + config_.drain);
  server_->Wait();
  server_.reset();
  port_ = 0;
}

absl::Status Server::Ready() const {
  return absl::OkStatus();
}

void Server::WatchHealth(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    wake.wait_for(lock, stop, kHealthInterval, [] { return false; });
    if (!stop.stop_requested()) SayHealth(false);
  }
}

void Server::SayHealth(bool stopping) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  const bool ready = !stopping && ready_().ok();
  health->SetServingStatus("", ready);
  for (const ServedService& served : services_) {
    health->SetServingStatus(served.name, served.ready ? !stopping && served.ready().ok() : ready);
  }
}

}  // namespace fluxqueue::rpc
