#include "services/queue/adapters/command_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::queue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CommandDeskTest : public testing::Test {
 protected:
  void Put(const std::string& job_id) {
    Errand errand;
    errand.job_id = job_id;
    errand.done = [this, job_id](const ErrandResult& result) {
      answers_.push_back(job_id + " " + Name(result.outcome));
    };
    desk_.Put(std::move(errand));
  }
  std::vector<std::string> Ids(const std::vector<Errand>& errands) {
    std::vector<std::string> ids;
    for (const Errand& errand : errands) ids.push_back(errand.job_id);
    return ids;
  }

  int woken_ = 0;
  std::vector<std::string> answers_;
  CommandDesk desk_{[this] { ++woken_; }};
};

TEST_F(CommandDeskTest, AShutDeskAnswersItself) {
  Put("a");
  EXPECT_THAT(answers_, ElementsAre("a not_held"));
  EXPECT_TRUE(desk_.empty());
  EXPECT_EQ(woken_, 0);
  desk_.Open();
  Put("b");
  Put("c");
  EXPECT_EQ(woken_, 2);
  EXPECT_THAT(answers_, ElementsAre("a not_held"));
  desk_.Shut();
  EXPECT_THAT(answers_, ElementsAre("a not_held", "b not_held", "c not_held"));
  EXPECT_TRUE(desk_.empty());
}

TEST_F(CommandDeskTest, WhatIsReturnedComesFirst) {
  desk_.Open();
  for (const char* id : {"a", "b", "c"}) Put(id);
  std::vector<Errand> taken = desk_.Take(2);
  EXPECT_THAT(Ids(taken), ElementsAre("a", "b"));
  desk_.Return(std::move(taken));
  EXPECT_THAT(Ids(desk_.Take(9)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Ids(desk_.Take(9)), IsEmpty());
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(CommandDeskTest, AFullDeskTurnsAway) {
  desk_.Open();
  for (size_t i = 0; i < CommandDesk::kMost; ++i) Put("a");
  EXPECT_THAT(answers_, IsEmpty());
  Put("b");
  EXPECT_THAT(answers_, ElementsAre("b full"));
  std::vector<Errand> taken = desk_.Take(1);
  Put("c");
  EXPECT_THAT(answers_, ElementsAre("b full"));
  // What had room once has it again.
  desk_.Return(std::move(taken));
  Put("d");
  EXPECT_THAT(answers_, ElementsAre("b full", "d full"));
}

TEST_F(CommandDeskTest, LargeCommandsFillItSooner) {
  desk_.Open();
  const std::string text(CommandDesk::kMostBytes / 8, 'x');
  const auto put = [&] {
    Errand errand;
    errand.command.emplace().set_asked_by(text);
    errand.done = [this](const ErrandResult& result) { answers_.push_back(Name(result.outcome)); };
    desk_.Put(std::move(errand));
  };
  for (int i = 0; i < 8; ++i) put();
  EXPECT_THAT(answers_, IsEmpty());
  put();
  EXPECT_THAT(answers_, ElementsAre("full"));
  EXPECT_EQ(desk_.times_full(), 1);
  std::vector<Errand> taken = desk_.Take(8);
  EXPECT_EQ(taken.size(), 8);
  put();
  desk_.Return(std::move(taken));
  put();
  EXPECT_THAT(answers_, ElementsAre("full", "full"));
  desk_.Shut();
  desk_.Open();
  put();
  EXPECT_EQ(desk_.size(), 1);
}

}  // namespace
}  // namespace fluxqueue::queue
