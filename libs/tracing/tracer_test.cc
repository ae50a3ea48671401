// Against a real HTTP server, as a collector would be.
#include "libs/tracing/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/tracing/testing_collector.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::tracing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kJob = "0a1b2c3d-0000-4000-8000-00000000000f";
constexpr Time kBegin{std::chrono::seconds(1'700'000'000)};

// OTLP/HTTP, JSON: ids are hex and not base64, 64-bit numbers are strings, names in camel case.
TEST(TracerTest, SendsOtlpAsJson) {
  Collector collector;
  metrics::Registry registry;
  Tracer tracer({.endpoint = collector.endpoint(), .service = "binder", .instance = "binder-0"},
                registry);
  const Context other{std::string(32, 'a'), std::string(16, 'b')};
  tracer.JobSpan(kJob, 2, "bind", kBegin, kBegin + 1500ms, {{"node", "n\"1"}}, other);
  const http::Request request = collector.Await();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/traces");
  EXPECT_EQ(http::FindHeader(request.headers, "content-type"), "application/json");
  const std::string root = SpanId(kJob, 0, kJobSpan);
  const auto text = [](const std::string& key, const std::string& value) {
    return nlohmann::json{{"key", key}, {"value", {{"stringValue", value}}}};
  };
  const auto list = [](auto... items) { return nlohmann::json::array({items...}); };
  const nlohmann::json span = {
      {"traceId", "0a1b2c3d00004000800000000000000f"},
      {"spanId", SpanId(kJob, 2, "bind")},
      {"parentSpanId", root},
      {"name", "bind"},
      {"kind", 1},
      {"startTimeUnixNano", "1700000000000000000"},
      {"endTimeUnixNano", "1700000001500000000"},
      {"attributes",
       list(text("node", "n\"1"), text("fluxqueue.job", kJob), text("fluxqueue.attempt", "2"))},
      {"links", list(nlohmann::json{{"traceId", other.trace_id}, {"spanId", other.span_id}})}};
  const nlohmann::json resource = {{"attributes",
                                    list(text("service.namespace", "fluxqueue"),
                                         text("service.name", "binder"),
                                         text("service.instance.id", "binder-0"))}};
  const nlohmann::json scope = {{"scope", {{"name", "fluxqueue"}}}, {"spans", list(span)}};
  const nlohmann::json wanted = {
      {"resourceSpans", list(nlohmann::json{{"resource", resource}, {"scopeSpans", list(scope)}})}};
  EXPECT_EQ(nlohmann::json::parse(request.body), wanted) << request.body;
}

TEST(TracerTest, SendsWhatWaitsBeforeItEnds) {
  Collector collector;
  metrics::Registry registry;
  {
    Tracer tracer({.endpoint = collector.endpoint(), .interval = 1h}, registry);
    tracer.JobSpan(kJob, 0, kJobSpan, kBegin, kBegin + 1s);
    tracer.JobSpan("no-uuid", 0, kJobSpan, kBegin, kBegin + 1s);
  }
  EXPECT_THAT(registry.Text(), HasSubstr("fluxqueue_trace_spans_total{result=\"sent\"} 1\n"));
  EXPECT_THAT(collector.Await().body, ::testing::Not(HasSubstr("parentSpanId")));
}

TEST(TracerTest, CountsWhatItDrops) {
  Collector refuses(503);
  metrics::Registry registry;
  {
    Tracer tracer({.endpoint = refuses.endpoint(), .most_waiting = 2, .interval = 1h}, registry);
    for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
      tracer.JobSpan(kJob, attempt, "bind", kBegin, kBegin + 1s);
    }
    EXPECT_THAT(registry.Text(), HasSubstr("{result=\"dropped\"} 1\n"));
  }
  EXPECT_THAT(registry.Text(), HasSubstr("{result=\"dropped\"} 3\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("{result=\"sent\"} 0\n"));
}

TEST(TracerTest, IsOffWithoutAnEndpoint) {
  metrics::Registry registry;
  {
    Tracer tracer({}, registry);
    EXPECT_FALSE(tracer.on());
    tracer.JobSpan(kJob, 1, "bind", kBegin, kBegin + 1s);
  }
  EXPECT_THAT(registry.Text(), HasSubstr("{result=\"dropped\"} 0\n"));
}

}  // namespace
}  // namespace fluxqueue::tracing
