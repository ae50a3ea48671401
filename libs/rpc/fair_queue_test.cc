#include "libs/rpc/fair_queue.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::rpc {
namespace {

using ::testing::ElementsAre;

// Takes until none may begin; the clients in that order.
std::vector<std::string> TakeAll(FairQueue* queue) {
  std::vector<std::string> order;
  while (auto taken = queue->Take()) {
    taken->task();
    order.push_back(taken->client);
  }
  return order;
}

TEST(FairQueueTest, ClientsAreServedInTurn) {
  FairQueue queue(100);
  for (int i = 0; i < 4; ++i) queue.Push("ann", [] {});
  queue.Push("bob", [] {});
  queue.Push("cid", [] {});
  queue.Push("bob", [] {});
  EXPECT_EQ(queue.size(), 7U);
  EXPECT_THAT(TakeAll(&queue), ElementsAre("ann", "bob", "cid", "ann", "bob", "ann", "ann"));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(FairQueueTest, TasksOfAClientKeepTheirOrder) {
  FairQueue queue(100);
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) queue.Push("ann", [&order, i] { order.push_back(i); });
  TakeAll(&queue);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(FairQueueTest, WhoComesLateWaitsForOneOfEach) {
  FairQueue queue(100);
  for (int i = 0; i < 256; ++i) queue.Push("ann", [] {});
  EXPECT_EQ(queue.Take()->client, "ann");
  queue.Push("bob", [] {});
  EXPECT_EQ(queue.Take()->client, "ann");
  EXPECT_EQ(queue.Take()->client, "bob");
}

TEST(FairQueueTest, AClientHasSoManyUnderWay) {
  FairQueue queue(2);
  for (int i = 0; i < 4; ++i) queue.Push("ann", [] {});
  EXPECT_THAT(TakeAll(&queue), ElementsAre("ann", "ann"));
  queue.Push("bob", [] {});
  EXPECT_THAT(TakeAll(&queue), ElementsAre("bob"));
  queue.Ended("bob");
  queue.Ended("ann");
  EXPECT_THAT(TakeAll(&queue), ElementsAre("ann"));
  EXPECT_EQ(queue.size(), 1U);
}

TEST(FairQueueTest, TasksOfNobodyHaveNoBound) {
  FairQueue queue(1);
  for (int i = 0; i < 3; ++i) queue.Push("", [] {});
  EXPECT_THAT(TakeAll(&queue), ElementsAre("", "", ""));
}

}  // namespace
}  // namespace fluxqueue::rpc
