#include "services/visibility/adapters/front_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::visibility {
namespace {

using ::testing::ElementsAre;

constexpr char kConfigMap[] = R"({"data": {
  "requestheader-client-ca-file": "PEM",
  "requestheader-allowed-names": "[\"front-proxy-client\"]",
  "requestheader-username-headers": "[\"X-Remote-User\"]",
  "requestheader-group-headers": "[\"X-Remote-Group\"]"}})";

FrontProxy Proxy() {
  return *ReadFrontProxy(kConfigMap);
}

TEST(FrontProxy, IsWhatTheApiServerSays) {
  const FrontProxy proxy = Proxy();
  EXPECT_EQ(proxy.authority, "PEM");
  EXPECT_THAT(proxy.names, ElementsAre("front-proxy-client"));
}

TEST(FrontProxy, IsWaitedForWhereThereIsNone) {
  EXPECT_EQ(ReadFrontProxy(R"({"data": {"client-ca-file": "PEM"}})").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReadFrontProxy("{}").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReadFrontProxy(R"({"data": {"requestheader-allowed-names": "a, b"}})").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FrontProxy, NamesTheCallerWithHisGroups) {
  const auto caller = CallerOf(
      Proxy(), {{"x-remote-user", "ann"}, {"X-Remote-Group", "a"}, {"X-Remote-Group", "b"}});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(*caller, (rpc::Caller{.user = "ann", .groups = {"a", "b"}}));
}

TEST(FrontProxy, NobodyIsRefused) {
  EXPECT_EQ(CallerOf(Proxy(), {{"X-Remote-Group", "system:masters"}}).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CallerOf(Proxy(), {{"X-Remote-User", ""}}).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CallerOf(Proxy(), {{"X-Remote-User", std::string(600, 'a')}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fluxqueue::visibility
