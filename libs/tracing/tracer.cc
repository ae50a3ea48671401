#include "libs/tracing/tracer.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::tracing {
namespace {

constexpr Millis kTimeout{5'000};
constexpr const char* kMetric = "fluxqueue_trace_spans_total";
constexpr const char* kMetricHelp =
    "Spans sent to the collector, and dropped because it did not take them in time.";

nlohmann::json Attribute(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

std::string UnixNano(Time time) {
  const auto nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return std::to_string(nanos);
}

nlohmann::json ToJson(const Span& span) {
  nlohmann::json json = {{"traceId", span.trace_id},
                         {"spanId", span.span_id},
                         {"name", span.name},
                         {"kind", span.kind},
                         {"startTimeUnixNano", UnixNano(span.begin)},
                         {"endTimeUnixNano", UnixNano(span.end)},
                         {"attributes", nlohmann::json::array()}};
  if (!span.parent_id.empty()) json["parentSpanId"] = span.parent_id;
  for (const auto& [key, value] : span.attributes) {
    json["attributes"].push_back(Attribute(key, value));
  }
  if (span.link.has_value()) {
    json["links"].push_back({{"traceId", span.link->trace_id}, {"spanId", span.link->span_id}});
  }
  return json;
}

}  // namespace

std::string ToOtlpJson(const std::vector<Span>& spans,
                       const std::string& service,
                       const std::string& instance) {
  nlohmann::json all = nlohmann::json::array();
  for (const Span& span : spans) all.push_back(ToJson(span));
  const nlohmann::json resource = {{"attributes",
                                    {Attribute("service.namespace", "fluxqueue"),
                                     Attribute("service.name", service),
                                     Attribute("service.instance.id", instance)}}};
  const nlohmann::json scope = {{"scope", {{"name", "fluxqueue"}}}, {"spans", std::move(all)}};
  const nlohmann::json request = {
      {"resourceSpans",
       nlohmann::json::array(
           {{{"resource", resource}, {"scopeSpans", nlohmann::json::array({scope})}}})}};
  return request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Tracer::Tracer(TracerOptions options, metrics::Registry& registry)
    : options_(std::move(options)),
      sent_(registry.MakeCounter(kMetric, kMetricHelp, {{"result", "sent"}})),
      dropped_(registry.MakeCounter(kMetric, kMetricHelp, {{"result", "dropped"}})) {
  if (on()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

Tracer::~Tracer() = default;

void Tracer::JobSpan(std::string_view job_id,
                     uint32_t attempt,
                     std::string_view name,
                     Time begin,
                     Time end,
                     std::vector<std::pair<std::string, std::string>> attributes,
                     std::optional<Context> link) {
  if (!on()) return;
  std::string trace = TraceId(job_id);
  if (trace.empty()) return;
  const std::string root = SpanId(job_id, 0, kJobSpan);
  const bool is_root = name == kJobSpan;
  attributes.emplace_back("fluxqueue.job", job_id);
  if (!is_root) attributes.emplace_back("fluxqueue.attempt", std::to_string(attempt));
  Record({.trace_id = std::move(trace),
          .span_id = is_root ? root : SpanId(job_id, attempt, name),
          .parent_id = is_root ? "" : root,
          .name = std::string(name),
          .begin = std::min(begin, end),
          .end = end,
          .attributes = std::move(attributes),
          .link = std::move(link)});
}

void Tracer::Record(Span span) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < options_.most_waiting) {
    waiting_.push_back(std::move(span));
  } else {
    dropped_.Add();
  }
}

void Tracer::Run(const std::stop_token& stop) {
  http::Client client({.base_url = options_.endpoint, .connect_timeout = kTimeout});
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, stop, options_.interval, [&stop] { return stop.stop_requested(); });
    const std::vector<Span> spans = std::exchange(waiting_, {});
    lock.unlock();
    if (!spans.empty()) Send(client, spans);
    if (stop.stop_requested()) return;
    lock.lock();
  }
}

void Tracer::Send(http::Client& client, const std::vector<Span>& spans) {
  const absl::StatusOr<http::Response> response =
      client.Do({.method = "POST",
                 .target = "/v1/traces",
                 .content_type = "application/json",
                 .body = ToOtlpJson(spans, options_.service, options_.instance),
                 .timeout = kTimeout});
  const bool taken = response.ok() && response->status == 200;
  (taken ? sent_ : dropped_).Add(static_cast<double>(spans.size()));
  if (taken) return;
  LogDebug(
      "spans not taken",
      {{"endpoint", options_.endpoint},
       {"error",
        response.ok() ? "HTTP " + std::to_string(response->status) : Message(response.status())}});
}

}  // namespace fluxqueue::tracing
