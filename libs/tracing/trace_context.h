// Whose trace a span belongs to, without anybody handing it on.
//
// A job is a trace. Its trace id is the job's id (a UUID has as many bits), and the id of a span
// follows from job, attempt and name. So each service makes its spans alone, the same spans again
// when a message is handled again, and all of a job form one tree below the span "job".
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fluxqueue::tracing {

inline constexpr std::string_view kJobSpan = "job";

// 32 hex digits; empty: the id is no UUID, and the job has no trace.
std::string TraceId(std::string_view job_id);
// 16 hex digits.
std::string SpanId(std::string_view job_id, uint32_t attempt, std::string_view name);

// W3C's "00-<trace>-<span>-01" of the span "job"; empty as above.
std::string Traceparent(std::string_view job_id);

// What a traceparent names: 32 and 16 hex digits.
struct Context {
  std::string trace_id;
  std::string span_id;

  friend bool operator==(const Context&, const Context&) = default;
};
// Unset: it is none, or names nothing.
std::optional<Context> ParseTraceparent(std::string_view text);

}  // namespace fluxqueue::tracing
