#include "libs/tracing/trace_context.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace fluxqueue::tracing {
namespace {

constexpr size_t kUuidLength = 36;
constexpr size_t kTraceLength = 32;
constexpr size_t kTraceparentLength = 55;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string TraceId(std::string_view job_id) {
  std::string trace;
  if (job_id.size() == kUuidLength) {
    std::copy_if(job_id.begin(), job_id.end(), std::back_inserter(trace), IsHexDigit);
  }
  return trace.size() == kTraceLength ? trace : "";
}

std::string SpanId(std::string_view job_id, uint32_t attempt, std::string_view name) {
  // All zeros would be no span.
  return fmt::format("{:016x}", Fnv1a(fmt::format("{}/{}/{}", job_id, attempt, name)) | 1);
}

std::string Format(const Context& context) {
  return fmt::format("00-{}-{}-01", context.trace_id, context.span_id);
}

std::string Traceparent(std::string_view job_id) {
  const std::string trace = TraceId(job_id);
  if (trace.empty()) return "";
  return Format({trace, SpanId(job_id, 0, kJobSpan)});
}

std::optional<Context> ParseTraceparent(std::string_view text) {
  // Later versions may have more behind it.
  const bool long_enough = text.size() == kTraceparentLength ||
                           (text.size() > kTraceparentLength && text[kTraceparentLength] == '-');
  if (!long_enough || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  Context context{std::string(text.substr(3, 32)), std::string(text.substr(36, 16))};
  for (const std::string& id : {context.trace_id, context.span_id}) {
    const bool hex = std::all_of(id.begin(), id.end(), IsHexDigit);
    if (!hex || id.find_first_not_of('0') == std::string::npos) return std::nullopt;
  }
  constexpr std::string_view kSampled = "13579bdf";  // the flags' last bit
  if (kSampled.find(text[54]) == std::string_view::npos) return std::nullopt;
  return context;
}

}  // namespace fluxqueue::tracing
