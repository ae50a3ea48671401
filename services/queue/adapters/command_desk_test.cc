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

}  // namespace
}  // namespace fluxqueue::queue
