#include "services/graph/rpc/client_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using ::testing::HasSubstr;

TEST(ClientCallsTest, EachClientHasItsOwnPlaces) {
  ClientCalls calls(2);
  const auto first = calls.Enter("ann");
  auto second = calls.Enter("ann");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status third = calls.Enter("ann").status();
  EXPECT_TRUE(absl::IsResourceExhausted(third)) << third;
  EXPECT_THAT(Message(third), HasSubstr("2 calls of ann"));
  EXPECT_TRUE(calls.Enter("bob").ok());
  const std::shared_ptr<void> copy = *second;
  *second = nullptr;
  EXPECT_FALSE(calls.Enter("ann").ok());
}

TEST(ClientCallsTest, APlaceIsGivenBackWithItsLastCopy) {
  ClientCalls calls(1);
  auto place = calls.Enter("ann");
  ASSERT_TRUE(place.ok());
  std::shared_ptr<void> copy = *place;
  *place = nullptr;
  EXPECT_FALSE(calls.Enter("ann").ok());
  copy = nullptr;
  EXPECT_TRUE(calls.Enter("ann").ok());
}

}  // namespace
}  // namespace fluxqueue::graph_service
