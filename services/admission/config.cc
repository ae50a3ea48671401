#include "services/admission/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/ranges.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/graph/levels.h"
#include "libs/model/rules.h"

namespace fluxqueue::admission {
namespace {

using namespace std::chrono_literals;

config::Section Describe(AdmissionConfig::Webhook* webhook) {
  return config::Section()
      .Text("address", &webhook->address)
      .Int("port", &webhook->port, 0, 65535)
      .Path("certificate", &webhook->certificate, config::Presence::kRequired)
      .Path("key", &webhook->key, config::Presence::kRequired)
      .Int("threads", &webhook->threads, 1, 64)
      .Size("max_body", &webhook->max_body, 64 << 10, 64 << 20)
      .Size("max_bodies", &webhook->max_bodies, 64 << 10, int64_t{1} << 30)
      .Int("max_connections", &webhook->max_connections, 8, 10'000)
      .Int("max_requests_per_source", &webhook->max_requests_per_source, 32, 10'000)
      .Duration("request_timeout", &webhook->request_timeout, 1s, 1min)
      .Duration("drain", &webhook->drain, 0s, 10s)
      .Path("client_authority", &webhook->client_authority)
      .List("client_names", &webhook->client_names)
      .Rule([webhook]() -> absl::Status {
        if (webhook->max_body <= webhook->max_bodies) return absl::OkStatus();
        return InvalidArgument(
            "max_bodies {} is less than max_body {}", webhook->max_bodies, webhook->max_body);
      })
      .Rule([webhook]() -> absl::Status {
        if (webhook->client_names.empty() || !webhook->client_authority.empty()) {
          return absl::OkStatus();
        }
        return InvalidArgument("client_names: allowed together with client_authority only");
      });
}

// The engine's policies; a shadow is asked by one that both have.
absl::Status CheckPolicy(const AdmissionConfig::Pool& pool) {
  const std::map<std::string, std::vector<std::string>> policies = {
      {"native", {"first", "lonode", "hinode", "packed"}},
      {"fluxion", {"first", "high", "hinode", "locality", "lonode", "low", "variation"}},
      {"shadow", {"first", "lonode", "hinode"}}};
  const std::vector<std::string>& allowed = policies.at(pool.engine);
  if (std::find(allowed.begin(), allowed.end(), pool.policy) != allowed.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "policy \"{}\": the engine {} has {}", pool.policy, pool.engine, fmt::join(allowed, ", "));
}

using Billing = std::map<std::string, int64_t>;

// Of each resource the weight in thousandths, from "resource=weight".
absl::Status ParseBilling(const std::vector<std::string>& list, Billing* weights) {
  constexpr double kMost = 1000;
  for (const std::string& item : list) {
    const size_t equals = item.find('=');
    const std::string resource = item.substr(0, equals);
    double weight = -1;
    const char* last = item.data() + item.size();
    const bool read =
        equals != item.npos && std::from_chars(item.data() + equals + 1, last, weight).ptr == last;
    const bool good = read && !resource.empty() && weight >= 0 && weight <= kMost;
    if (!good) {
      return InvalidArgument(
          "billing \"{}\": allowed are a resource and its weight from 0 to {}, such as "
          "\"memory=0.5\"",
          item,
          kMost);
    }
    if (!weights->emplace(resource, std::llround(weight * 1000)).second) {
      return InvalidArgument("billing \"{}\": {} stands twice; allowed: once", item, resource);
    }
  }
  return absl::OkStatus();
}

config::Section Describe(AdmissionConfig::Pool* pool) {
  return config::Section()
      .Choice("engine", &pool->engine, {"native", "fluxion", "shadow"})
      .Choice("shadow_of", &pool->shadow_of, {"fluxion", "native"})
      .Int("cpu_granule", &pool->cpu_granule, 1, 1'000'000)
      .Size("memory_granule", &pool->memory_granule, 1 << 20, int64_t{1} << 50)
      .Text("policy", &pool->policy)
      .List("levels", &pool->levels)
      .List("billing", &pool->billing)
      .Duration("answer_deadline", &pool->answer_deadline, 100ms, 10min)
      .Duration("retry_min", &pool->retry_min, 10ms, 1h)
      .Duration("retry_max", &pool->retry_max, 10ms, 24h)
      .Int("max_attempts", &pool->max_attempts, 0, 1'000'000)
      .Rule([pool]() { return CheckPolicy(*pool); })
      .Rule([pool]() { return graph::ParseLevels(pool->levels).status(); })
      .Rule([pool]() {
        Billing weights;
        return ParseBilling(pool->billing, &weights);
      })
      .Rule([pool]() -> absl::Status {
        if (pool->retry_min <= pool->retry_max) return absl::OkStatus();
        return InvalidArgument("retry_min {} is more than retry_max {}",
                               config::FormatDuration(pool->retry_min),
                               config::FormatDuration(pool->retry_max));
      });
}

}  // namespace

config::Section Describe(AdmissionConfig* config) {
  return config::Section()
      .Nested("webhook", Describe(&config->webhook))
      .Nested("pool", Describe(&config->pool))
      .Int("hold_pods", &config->hold_pods, 0, 1'000'000)
      .Text("groups", &config->groups)
      .Rule([config]() -> absl::Status {
        if (config->groups.empty()) return absl::OkStatus();
        auto table = kubernetes::GroupTable::With(config->groups);
        if (!table.ok()) return Annotate(table.status(), "groups");
        config->group_table = *std::move(table);
        return absl::OkStatus();
      })
      .Size("max_jobspec", &config->max_jobspec, 1 << 10, 1 << 20)
      .Duration("sweep_interval", &config->sweep_interval, 1s, 24h);
}

http::ServerOptions MakeServerOptions(const AdmissionConfig& config) {
  http::ServerOptions options;
  options.address = config.webhook.address;
  options.port = config.webhook.port;
  options.threads = config.webhook.threads;
  options.max_body_bytes = static_cast<size_t>(config.webhook.max_body);
  options.max_bodies_bytes = static_cast<size_t>(config.webhook.max_bodies);
  options.max_connections = static_cast<size_t>(config.webhook.max_connections);
  options.max_requests_per_source = static_cast<size_t>(config.webhook.max_requests_per_source);
  options.request_timeout = config.webhook.request_timeout;
  options.drain = config.webhook.drain;
  options.tls = http::ServerTls{.certificate_file = config.webhook.certificate,
                                .key_file = config.webhook.key,
                                .client_authority_file = config.webhook.client_authority,
                                .client_names = config.webhook.client_names,
                                .open_paths = {"/readyz"}};
  return options;
}

WebhookOptions MakeWebhookOptions(const AdmissionConfig& config) {
  WebhookOptions options{.hold_pods = config.hold_pods,
                         .max_jobspec_bytes = static_cast<size_t>(config.max_jobspec)};
  if (config.group_table) options.groups = &*config.group_table;
  return options;
}

events::v1::PoolConfigured MakePoolConfigured(const AdmissionConfig& config) {
  const AdmissionConfig::Pool& pool = config.pool;
  events::v1::PoolConfigured out;
  out.set_engine(pool.engine);
  if (pool.engine == "shadow") out.set_shadow_of(pool.shadow_of);
  if (pool.engine != "native") {
    out.set_cpu_granule_milli(pool.cpu_granule);
    out.set_memory_granule_bytes(pool.memory_granule);
  }
  out.set_policy(pool.policy);
  for (const std::string& level : pool.levels) out.add_levels(level);
  Billing weights;
  const absl::Status read = ParseBilling(pool.billing, &weights);
  CHECK(read.ok(), "{}", Message(read));  // as it was checked when it was read
  for (const auto& [resource, weight] : weights) {
    auto* billing = out.add_billing();
    billing->set_resource(resource);
    billing->set_weight_milli(weight);
  }
  out.set_answer_deadline_ms(pool.answer_deadline.count());
  out.set_retry_min_ms(pool.retry_min.count());
  out.set_retry_max_ms(pool.retry_max.count());
  out.set_max_attempts(pool.max_attempts);
  out.set_rules(model::kLatestRules);
  return out;
}

}  // namespace fluxqueue::admission
