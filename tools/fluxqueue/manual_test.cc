#include "tools/fluxqueue/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ManualTest : public ::testing::Test {
 protected:
  ManualTest() {
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.footer("Where things are.");
    CLI::App* jobs = app_.add_subcommand("jobs", "List jobs");
    jobs->add_option("JOB")->type_name("JOB");
    jobs->add_option("--state", "Only in it")->type_name("STATE");
    jobs->footer("First those that wait.\n\nExamples:\n  fluxqueue jobs -o json | jq '.[]'\n  .x");
    app_.add_subcommand("letters", "Letters")->add_subcommand("drop", "Let it be");
    app_.add_subcommand("stay", "Not shown")->group("");
  }

  CLI::App app_{"Looks.", "fluxqueue"};
};

TEST_F(ManualTest, APageOfAllCommands) {
  EXPECT_THAT(ManualPage(app_),
              AllOf(HasSubstr(".TH FLUXQUEUE 1\n"),
                    HasSubstr(".SS jobs\n\\fBfluxqueue jobs\\fR [\\fIJOB\\fR] [\\fIoptions\\fR]\n"),
                    HasSubstr("\\fB\\-\\-state\\fR \\fISTATE\\fR\nOnly in it\n"),
                    HasSubstr(".SS letters drop\n"),
                    Not(HasSubstr("stay"))));
}

// troff takes dots and quotes at the beginning of a line for commands.
TEST_F(ManualTest, ExamplesStayAsTheyAre) {
  EXPECT_THAT(ManualPage(app_),
              HasSubstr(".nf\n  fluxqueue jobs \\-o json | jq \\(aq.[]\\(aq\n  .x\n.fi\n"));
}

TEST_F(ManualTest, AWordThatIsNoCommand) {
  EXPECT_EQ((*FindCommand(app_, {"letters", "drop"}))->get_name(), "drop");
  EXPECT_EQ(Message(FindCommand(app_, {"job"}).status()),
            "there is no command fluxqueue job; did you mean jobs?");
  EXPECT_EQ(Message(FindCommand(app_, {"letters", "xyz"}).status()),
            "there is no command fluxqueue letters xyz; fluxqueue letters --help lists them");
}

TEST_F(ManualTest, HelpSaysWhereTheOtherOptionsAre) {
  EXPECT_THAT(app_.get_subcommand("jobs")->help(),
              AllOf(HasSubstr("--state STATE"),
                    HasSubstr("Examples:"),
                    HasSubstr("Options of every command: fluxqueue --help")));
}

}  // namespace
}  // namespace fluxqueue::cli
