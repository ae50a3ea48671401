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
  "requestheader-group-headers": "[\"X-Remote-Group\", \"X-Forwarded-Group\"]",
  "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
  "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]"}})";

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

// Scopes of a token can take rights away: what is lost of them would give rights.
TEST(FrontProxy, HandsOnAllThatIsSaidOfTheCaller) {
  const auto caller = CallerOf(Proxy(),
                               {{"X-Remote-User", "ann"},
                                {"X-Remote-Uid", "7"},
                                {"x-remote-extra-Scopes", "view"},
                                {"X-Remote-Extra-Scopes", "list"},
                                {"X-Remote-Extra-Acme.com%2fProject", "one"},
                                {"X-Remote-Extra-50%", "kept"},
                                {"X-Remote-Extra", "no key"},
                                {"X-Other", "no"}});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->uid, "7");
  EXPECT_EQ(caller->extra,
            (std::map<std::string, std::vector<std::string>>{
                {"scopes", {"view", "list"}}, {"acme.com/project", {"one"}}, {"50%", {"kept"}}}));
}

TEST(FrontProxy, WhatIsSaidTwiceIsNotBelieved) {
  const auto code = [](const http::Headers& headers) {
    return CallerOf(Proxy(), headers).status().code();
  };
  EXPECT_EQ(code({{"X-Remote-User", "ann"}, {"x-remote-user", "system:admin"}}),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code({{"X-Remote-User", ""}, {"X-Remote-User", "ann"}}),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code({{"X-Remote-User", "ann"}, {"X-Remote-Uid", "1"}, {"X-Remote-Uid", "2"}}),
            absl::StatusCode::kUnauthenticated);
  // The proxy takes away what its client says under its own name only.
  EXPECT_EQ(code({{"X-Remote-User", "ann"},
                  {"X-Remote-Group", "staff"},
                  {"X-Forwarded-Group", "system:masters"}}),
            absl::StatusCode::kUnauthenticated);
}

TEST(FrontProxy, WhatIsSaidIsBounded) {
  const auto code = [](const std::string& header, const std::string& value, size_t times = 1) {
    http::Headers headers = {{"X-Remote-User", "ann"}};
    headers.resize(1 + times, {header, value});
    return CallerOf(Proxy(), headers).status().code();
  };
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code("X-Remote-Extra-A", "x", rpc::kMostExtras), absl::StatusCode::kOk);
  EXPECT_EQ(code("X-Remote-Extra-A", "x", rpc::kMostExtras + 1), refused);
  EXPECT_EQ(code("X-Remote-Extra-A", std::string(rpc::kMostExtraBytes, 'x')), refused);
  EXPECT_EQ(code("X-Remote-Extra-A", "a\tb"), refused);
  EXPECT_EQ(code("X-Remote-Extra-%00", "x"), refused);
  EXPECT_EQ(code("X-Remote-Uid", std::string(600, 'x')), refused);
  EXPECT_EQ(code("X-Remote-Uid", "\xff"), refused);
  EXPECT_EQ(code("X-Remote-Group", "a\tb"), refused);
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
