#include "libs/base/mailbox.h"

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MailboxTest, TheLastOfAKeyTakesThePlaceOfTheOthersInLine) {
  Mailbox<std::string> mailbox;
  mailbox.Post("a", "a1");
  mailbox.Post("b", "b1");
  mailbox.Post("call");
  mailbox.Post("a", "a2");
  mailbox.Post("call");
  EXPECT_EQ(mailbox.size(), 4);
  EXPECT_THAT(mailbox.Take(), ElementsAre("a2", "b1", "call", "call"));
  EXPECT_THAT(mailbox.Take(), IsEmpty());
  mailbox.Post("a", "a3");
  EXPECT_THAT(mailbox.Take(), ElementsAre("a3"));
}

TEST(MailboxTest, WakesOnlyWhoHasTakenAll) {
  int woken = 0;
  Mailbox<int> mailbox;
  mailbox.SetWake([&] { ++woken; });
  mailbox.Post(1);
  mailbox.Post(2);
  mailbox.Post("k", 3);
  EXPECT_EQ(woken, 1);
  mailbox.Clear();
  mailbox.Post("k", 4);
  EXPECT_EQ(woken, 2);
}

TEST(MailboxTest, SomeAreTakenAndTheRestKeepsItsKeys) {
  Mailbox<std::string> mailbox;
  mailbox.Post("a", "a1");
  mailbox.Post("b", "b1");
  mailbox.Post("c", "c1");
  EXPECT_THAT(mailbox.Take(1), ElementsAre("a1"));
  mailbox.Post("b", "b2");
  mailbox.Post("a", "a2");
  mailbox.PostIfNone("c", "older");
  mailbox.PostIfNone("d", "d1");
  mailbox.Withdraw("b");
  mailbox.Withdraw("nobody");
  EXPECT_THAT(mailbox.Take(), ElementsAre("c1", "a2", "d1"));
}

TEST(MailboxTest, WhoWaitsForRoomLeavesNoMoreThanTheLimit) {
  constexpr size_t kMost = 10;
  Mailbox<int> mailbox(kMost);
  std::jthread poster([&mailbox](const std::stop_token& stop) {
    for (int i = 0; mailbox.WaitForRoom(stop); ++i) mailbox.Post(std::to_string(i), i, 1);
  });
  int next = 0;
  while (next < 1000) {
    ASSERT_LE(mailbox.size(), kMost);
    for (const int item : mailbox.Take(3)) ASSERT_EQ(item, next++);
  }
  // Of one key there is always room, once there is any.
  poster.request_stop();
  poster.join();
  mailbox.Clear();
  const std::stop_source going;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(mailbox.WaitForRoom(going.get_token()));
    mailbox.Post("k", i, kMost - 1);
  }
  EXPECT_THAT(mailbox.Take(), ElementsAre(99));
}

TEST(MailboxTest, WhoCannotWaitIsToldThatItIsFull) {
  Mailbox<int> mailbox(2);
  EXPECT_TRUE(mailbox.TryPost(1, 1));
  EXPECT_TRUE(mailbox.TryPost(2, 1));
  EXPECT_EQ(mailbox.times_full(), 0);
  EXPECT_FALSE(mailbox.TryPost(3, 1));
  EXPECT_EQ(mailbox.times_full(), 1);
  EXPECT_EQ(mailbox.bytes(), 2);
  EXPECT_THAT(mailbox.Take(1), ElementsAre(1));
  EXPECT_TRUE(mailbox.TryPost(4, 1));
  EXPECT_THAT(mailbox.Take(), ElementsAre(2, 4));
}

TEST(MailboxTest, WithdrawingMakesRoom) {
  Mailbox<int> mailbox("test", 1);
  mailbox.Post("k", 1, 1);
  std::jthread other([&mailbox] { mailbox.Withdraw("k"); });
  EXPECT_TRUE(mailbox.WaitForRoom({}));
  EXPECT_TRUE(mailbox.empty());
}

TEST(MailboxTest, OneIsWaitedFor) {
  Mailbox<int> mailbox;
  std::stop_source source;
  std::jthread other([&mailbox] { mailbox.Post(7); });
  EXPECT_EQ(mailbox.TakeOne(source.get_token()), 7);
  mailbox.Post(8);
  source.request_stop();
  EXPECT_EQ(mailbox.TakeOne(source.get_token()), std::nullopt);
  EXPECT_EQ(mailbox.size(), 1);
}

TEST(MailboxTest, ManyTakersGetOneEach) {
  constexpr int kItems = 20'000;
  Mailbox<int> mailbox;
  std::stop_source source;
  std::atomic<int> taken = 0;
  std::vector<std::jthread> takers;
  for (int i = 0; i < 8; ++i) {
    takers.emplace_back([&] {
      while (mailbox.TakeOne(source.get_token()).has_value()) ++taken;
    });
  }
  for (int i = 0; i < kItems; ++i) mailbox.Post(i);
  while (!mailbox.empty()) std::this_thread::yield();
  // None of them has taken an empty mailbox for the end.
  for (int i = 0; i < 8; ++i) mailbox.Post(i);
  while (taken < kItems + 8) std::this_thread::yield();
  source.request_stop();
}

// However many changes, and whenever somebody takes some: the last state of each thing is what was
// said of it last.
RC_GTEST_PROP(MailboxTest, WhoTakesKnowsTheLastOfEach, ()) {
  Mailbox<std::pair<std::string, int>> mailbox;
  std::map<std::string, int> said, known;
  const auto take = [&] {
    for (const auto& [key, value] : mailbox.Take()) known[key] = value;
  };
  const int steps = *rc::gen::inRange(0, 100);
  for (int step = 0; step < steps; ++step) {
    if (*rc::gen::inRange(0, 10) == 0) take();
    const std::string key = std::to_string(*rc::gen::inRange(0, 5));
    said[key] = step;
    mailbox.Post(key, {key, step});
    RC_ASSERT(mailbox.size() <= 5u);
  }
  take();
  RC_ASSERT(known == said);
}

TEST(MailboxTest, ManyThreads) {
  Mailbox<int> mailbox;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10'000; ++i) mailbox.Post(std::to_string(i % 100), thread);
      for (int i = 0; i < 100; ++i) mailbox.Post(thread);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mailbox.Take().size(), 500);
}

}  // namespace
}  // namespace fluxqueue
