#include "services/graph/rpc/client_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using ::testing::HasSubstr;

TEST(ClientCallsTest, EachClientHasItsOwnPlaces) {
  ClientCalls calls({.client_calls = 2});
  const auto first = calls.Enter("ann");
  auto second = calls.Enter("ann");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status third = calls.Enter("ann").status();
  EXPECT_TRUE(absl::IsResourceExhausted(third)) << third;
  EXPECT_THAT(Message(third), HasSubstr("2 calls of ann"));
  EXPECT_TRUE(calls.Enter("bob").ok());
  const std::shared_ptr<ClientCalls::Place> copy = *second;
  *second = nullptr;
  EXPECT_FALSE(calls.Enter("ann").ok());
}

// Who may make accounts in a namespace has any number of them.
TEST(ClientCallsTest, TheAccountsOfANamespaceAreOneClient) {
  ClientCalls calls({.client_calls = 2, .client_bytes = 100, .bytes = 150});
  const auto first = calls.Enter("system:serviceaccount:lab:a");
  const auto second = calls.Enter("system:serviceaccount:lab:b");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE((*first)->Hold(60).ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*second)->Hold(60)));
  EXPECT_TRUE(absl::IsResourceExhausted(calls.Enter("system:serviceaccount:lab:c").status()));
  EXPECT_TRUE(calls.Enter("system:serviceaccount:other:a").ok());
}

TEST(ClientCallsTest, APlaceIsGivenBackWithItsLastCopy) {
  ClientCalls calls({.client_calls = 1});
  auto place = calls.Enter("ann");
  ASSERT_TRUE(place.ok());
  std::shared_ptr<ClientCalls::Place> copy = *place;
  *place = nullptr;
  EXPECT_FALSE(calls.Enter("ann").ok());
  copy = nullptr;
  EXPECT_TRUE(calls.Enter("ann").ok());
}

TEST(ClientCallsTest, WhatCallsHoldIsBounded) {
  ClientCalls calls({.client_calls = 9, .client_bytes = 100, .bytes = 150});
  const auto first = *calls.Enter("ann");
  auto second = *calls.Enter("ann");
  EXPECT_TRUE(first->Hold(60).ok());
  EXPECT_TRUE(second->Hold(40).ok());
  absl::Status status = second->Hold(41);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the calls of ann would hold 101 bytes"));
  EXPECT_THAT(Message(status), HasSubstr("100 are allowed"));
  // Refused, it holds what it held.
  const auto other = *calls.Enter("bob");
  EXPECT_TRUE(other->Hold(50).ok());
  status = other->Hold(51);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the calls of all clients would hold 151 bytes"));
  EXPECT_TRUE(first->Hold(20).ok());
  EXPECT_TRUE(other->Hold(90).ok());
  second = nullptr;
  EXPECT_TRUE(first->Hold(60).ok());
}

}  // namespace
}  // namespace fluxqueue::graph_service
