// Spans of jobs, sent to an OpenTelemetry collector by OTLP over HTTP, as JSON.
//
//   tracer.JobSpan(job_id, attempt, "bind", allocated, clock.Now());
//
// Off without an endpoint: nothing is kept then. Never in the way: what does not fit into the
// queue, or is not taken by the collector, is dropped and counted. A span that is made twice, as a
// batch was handled twice, has the same id both times. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "libs/http/client.h"
#include "libs/metrics/metrics.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::tracing {

using Time = std::chrono::system_clock::time_point;

enum class SpanKind { kInternal = 1, kServer = 2 };  // OTLP's numbers

struct Span {
  std::string trace_id;
  std::string span_id;
  std::string parent_id;  // empty: the root
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  Time begin;
  Time end;
  std::vector<std::pair<std::string, std::string>> attributes{};
  std::optional<Context> link{};  // to a span of another trace
};

// The body of an ExportTraceServiceRequest, in OTLP's JSON: ids are hex, 64-bit numbers strings.
std::string ToOtlpJson(const std::vector<Span>& spans,
                       const std::string& service,
                       const std::string& instance);

struct TracerOptions {
  std::string endpoint{};  // "http://127.0.0.1:4318"; /v1/traces is added. Empty: off
  std::string service{};   // "queue"
  std::string instance{};
  size_t most_waiting = 4096;  // spans
  std::chrono::milliseconds interval{1'000};
};

class Tracer {
 public:
  Tracer(TracerOptions options, metrics::Registry& registry);
  // Sends what waits, once.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  bool on() const { return !options_.endpoint.empty(); }

  // A span of the job below its span "job"; that one itself, by this name. Nothing for a job
  // without a trace (trace_context.h).
  void JobSpan(std::string_view job_id,
               uint32_t attempt,
               std::string_view name,
               Time begin,
               Time end,
               std::vector<std::pair<std::string, std::string>> attributes = {},
               std::optional<Context> link = {});
  void Record(Span span);

 private:
  void Run(const std::stop_token& stop);
  void Send(http::Client& client, const std::vector<Span>& spans);

  const TracerOptions options_;
  metrics::Counter sent_;
  metrics::Counter dropped_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Span> waiting_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace fluxqueue::tracing
