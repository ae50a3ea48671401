#include "libs/rpc/server_config.h"

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::rpc {
namespace {

using namespace std::chrono_literals;

config::Section Describe(ServerConfig::Tls* tls) {
  return config::Section()
      .Path("certificate", &tls->certificate)
      .Path("key", &tls->key)
      .Path("client_ca", &tls->client_ca)
      .Rule([tls]() -> absl::Status {
        if (tls->certificate.empty() != tls->key.empty()) {
          return InvalidArgument("certificate and key go together, and only one of them is there");
        }
        if (!tls->client_ca.empty() && tls->certificate.empty()) {
          return InvalidArgument("client_ca needs certificate and key, too");
        }
        return absl::OkStatus();
      });
}

config::Section Describe(ServerConfig::Callers* callers) {
  return config::Section()
      .Text("queue", &callers->queue)
      .Text("graph", &callers->graph)
      .Text("visibility", &callers->visibility)
      .List("clients", &callers->clients)
      .Rule([callers]() -> absl::Status {
        const bool others =
            !callers->graph.empty() || !callers->visibility.empty() || !callers->clients.empty();
        if (!others || callers->wanted()) return absl::OkStatus();
        return InvalidArgument("queue has to be there, too");
      });
}

}  // namespace

std::string ServerConfig::Address() const {
  if (port <= 0) return "";
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("{}:{}", v6 ? "[" + address + "]" : address, port);
}

config::Section Describe(ServerConfig* config) {
  return config::Section()
      .Text("address", &config->address)
      .Int("port", &config->port, 0, 65535)
      .Nested("tls", Describe(&config->tls))
      .Nested("callers", Describe(&config->callers))
      .Size("max_message", &config->max_message, 64 << 10, int64_t{1} << 30)
      .Size("max_request", &config->max_request, 64 << 10, int64_t{1} << 30)
      .Size("max_memory", &config->max_memory, 1 << 20, int64_t{1} << 40)
      .Int("max_threads", &config->max_threads, 4, 100'000)
      .Int("max_calls", &config->max_calls, 1, 1'000'000)
      .Duration("keepalive", &config->keepalive, 1s, 24h)
      .Duration("min_ping_interval", &config->min_ping_interval, 0ms, 1h)
      .Duration("drain", &config->drain, 0ms, 15s)
      .Rule([config]() -> absl::Status {
        if (config->max_request > config->max_memory) {
          return InvalidArgument("max_request ({} bytes) is above max_memory ({} bytes)",
                                 config->max_request,
                                 config->max_memory);
        }
        if (!config->callers.wanted() || !config->tls.client_ca.empty()) return absl::OkStatus();
        return InvalidArgument("callers needs tls.client_ca: what has signed their certificates");
      });
}

}  // namespace fluxqueue::rpc
