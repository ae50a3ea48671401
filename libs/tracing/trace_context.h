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
// The header, or metadata, that hands a context on.
inline constexpr const char* kTraceparent = "traceparent";

// 32 hex digits; empty: the id is no UUID, and the job has no trace.
std::string TraceId(std::string_view job_id);
// 16 hex digits.
std::string SpanId(std::string_view job_id, uint32_t attempt, std::string_view name);

// What a traceparent names: 32 and 16 hex digits.
struct Context {
  std::string trace_id;
  std::string span_id;

  friend bool operator==(const Context&, const Context&) = default;
};
// W3C's "00-<trace>-<span>-01".
std::string Format(const Context& context);
// Of the job's span "job"; empty: as its trace id.
std::string Traceparent(std::string_view job_id);
// Unset: it is none, names nothing, or says that nobody records the trace (not "sampled").
std::optional<Context> ParseTraceparent(std::string_view text);

}  // namespace fluxqueue::tracing
