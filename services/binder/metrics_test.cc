#include "services/binder/metrics.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fluxqueue::binder {
namespace {

using ::testing::HasSubstr;

TEST(BinderMetrics, EveryKindOfCallIsCounted) {
  metrics::Registry registry;
  BinderMetrics metrics(registry);
  for (const Call::Kind kind : {Call::Kind::kBind, Call::Kind::kReadJob}) {
    CallResult result;
    result.call.kind = kind;
    metrics.CallMade(result, std::chrono::seconds(1));
    const std::string line =
        fmt::format("fluxqueue_bind_calls_total{{call=\"{}\",outcome=\"done\"}} 1\n", Name(kind));
    EXPECT_THAT(registry.Text(), HasSubstr(line));
  }
}

}  // namespace
}  // namespace fluxqueue::binder
