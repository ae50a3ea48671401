#include "libs/base/mailbox.h"

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

TEST(MailboxTest, TheLastOfAKeyTakesThePlaceOfTheOthers) {
  Mailbox<std::string> mailbox;
  mailbox.Post("a", "a1");
  mailbox.Post("b", "b1");
  mailbox.Post("call");
  mailbox.Post("a", "a2");
  mailbox.Post("call");
  EXPECT_EQ(mailbox.size(), 4);
  EXPECT_THAT(mailbox.Take(), ElementsAre("b1", "call", "a2", "call"));
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
