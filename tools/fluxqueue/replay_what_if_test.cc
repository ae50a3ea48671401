#include "tools/fluxqueue/replay_what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using ::testing::HasSubstr;

TEST(ReplayWhatIfTest, ReadsWhatIsToBeOtherwise) {
  const auto change = ParseWhatIf({"strategy=easy", "policy=packed", "nodes=+10"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->strategy, "easy");
  EXPECT_EQ(change->policy, "packed");
  EXPECT_EQ(change->more_nodes, 10U);
  EXPECT_FALSE(ParseWhatIf({"nodes=+1"})->strategy.has_value());
}

TEST(ReplayWhatIfTest, Errors) {
  const auto error = [](const std::string& change) {
    return Message(ParseWhatIf({change}).status());
  };
  EXPECT_THAT(error("strategy=none"), HasSubstr("strategy \"none\" does not exist; allowed: "));
  EXPECT_THAT(error("nodes=10"), HasSubstr("nodes=10: allowed: +1 to +100000"));
  EXPECT_THAT(error("nodes=+"), HasSubstr("allowed: +1"));
  EXPECT_THAT(error("depth=3"), HasSubstr("allowed: strategy=NAME, policy=NAME, nodes=+N"));
  EXPECT_THAT(error("strategy"), HasSubstr("--what-if strategy: allowed: strategy=NAME"));
}

}  // namespace
}  // namespace fluxqueue::cli
