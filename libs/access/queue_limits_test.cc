#include "libs/access/queue_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::access {
namespace {

using ::testing::HasSubstr;

class QueueLimitsTest : public ::testing::Test {
 protected:
  QueueLimitsTest() {
    queue_.meta.name = "club";
    above_.meta.name = "account";
  }
  std::string Problem() { return LimitProblem(asked_, {&queue_, &above_}).value_or(""); }

  kubernetes::FluxQueue queue_;
  kubernetes::FluxQueue above_;
  AskedJob asked_{.user = "ann", .space = "lab"};
};

TEST_F(QueueLimitsTest, DurationsAreTheQueuesOwn) {
  above_.max_duration_ms = 1000;
  asked_.duration_ms = 60'000;
  EXPECT_EQ(Problem(), "");
  queue_.max_duration_ms = 59'000;
  EXPECT_THAT(Problem(), HasSubstr("60s is more than FluxQueue 'club' allows; allowed: up to 59s"));
  asked_.duration_ms = 0;
  EXPECT_THAT(Problem(), HasSubstr("unlimited is more"));
  asked_.duration_ms.reset();
  EXPECT_EQ(Problem(), "");
  queue_.undeclared_duration = "refuse";
  EXPECT_THAT(Problem(), HasSubstr("say how long it may run, up to 59s"));
}

TEST_F(QueueLimitsTest, ClassesComeFromAbove) {
  above_.qos = {{.name = "long", .max_priority = 7, .members = {.users = {"ann"}}}};
  asked_.qos = "long";
  EXPECT_EQ(Problem(), "");
  asked_.priority = 8;
  EXPECT_THAT(Problem(), HasSubstr("8 is more than class 'long' of QOS allows"));
  asked_.user = "eve";
  EXPECT_THAT(Problem(), HasSubstr("is for its members"));
  asked_.qos = "none";
  EXPECT_THAT(Problem(), HasSubstr("no such class of QOS; allowed: long"));
}

TEST_F(QueueLimitsTest, AQuotaCountsWhatIsNotThereYet) {
  queue_.namespace_quota = {.jobs = 2, .jobspec_bytes = 100};
  const auto problem = [this](int64_t bytes, const JobUse& before, const JobUse& used) {
    return QuotaProblem("lab", bytes, before, used, queue_).value_or("");
  };
  EXPECT_EQ(problem(50, {}, {1, 50}), "");
  EXPECT_THAT(problem(50, {}, {2, 50}), HasSubstr("has 2 jobs in FluxQueue 'club'"));
  EXPECT_THAT(problem(51, {}, {1, 50}), HasSubstr("would have 101 bytes"));
  EXPECT_EQ(problem(50, {1, 50}, {2, 100}), "");
  EXPECT_THAT(problem(51, {1, 50}, {2, 100}), HasSubstr("would have 101 bytes"));
}

}  // namespace
}  // namespace fluxqueue::access
