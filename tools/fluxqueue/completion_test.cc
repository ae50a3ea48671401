#include "tools/fluxqueue/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    app_.add_option("-o,--output")->type_name("table|json");
    app_.add_option("--config")->type_name("FILE");
    CLI::App* jobs = app_.add_subcommand("jobs", "List jobs");
    jobs->add_option("--queue")->type_name("QUEUE");
    jobs->add_flag("--all");
    CLI::App* move = app_.add_subcommand("move", "Move a job");
    move->add_option("JOB")->type_name("JOB");
    move->add_option("QUEUE")->type_name("QUEUE");
    app_.add_subcommand("joke", "Not shown")->group("");
  }

  std::vector<std::string> Words(const std::vector<std::string>& line) {
    std::vector<std::string> words;
    for (const Word& word : Complete(app_, line).words) words.push_back(word.text);
    return words;
  }

  CLI::App app_{"", "fluxqueue"};
};

TEST_F(CompletionTest, OffersSubcommandsOptionsAndTheirWords) {
  EXPECT_THAT(Words({""}), ElementsAre("jobs", "move"));
  EXPECT_THAT(Words({"jo"}), ElementsAre("jobs"));
  EXPECT_THAT(Words({"jobs", "--a"}), ElementsAre("--all"));
  EXPECT_THAT(Words({"jobs", "--o"}), ElementsAre("--output"));
  EXPECT_THAT(Words({"jobs", "-o", ""}), ElementsAre("table", "json"));
  EXPECT_THAT(Words({"--output=j"}), ElementsAre("--output=json"));
}

TEST_F(CompletionTest, KnowsWhereNamesAndFilesStand) {
  EXPECT_EQ(Complete(app_, {"jobs", "--queue", ""}).live, "QUEUE");
  EXPECT_EQ(Complete(app_, {"move", ""}).live, "JOB");
  EXPECT_EQ(Complete(app_, {"move", "--config", "f", "a", "b"}).live, "QUEUE");
  EXPECT_EQ(Complete(app_, {"move", "a", "b", ""}).live, "");
  EXPECT_TRUE(Complete(app_, {"--config", ""}).files);
}

TEST_F(CompletionTest, SpeaksAsKubectlListens) {
  EXPECT_EQ(CompletionText(Complete(app_, {"jo"})), "jobs\tList jobs\n:4\n");
  EXPECT_EQ(CompletionText(Complete(app_, {"--config", ""})), ":0\n");
}

}  // namespace
}  // namespace fluxqueue::cli
