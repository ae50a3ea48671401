#include "libs/base/failure_point.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace fluxqueue {
namespace {

// In a process of its own: what is named there is read once.
void Pass(const char* named, int times) {
  if (named != nullptr) setenv("FLUXQUEUE_DIE_AT", named, 1);
  for (int i = 0; i < times; ++i) FailurePoint("commit.after");
  _exit(0);
}

TEST(FailurePointTest, EndsTheProcessWhereItIsNamed) {
  EXPECT_EXIT(Pass("commit.after", 1), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(Pass("commit.before", 9), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("commit", 9), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass(nullptr, 9), ::testing::ExitedWithCode(0), "");
}

TEST(FailurePointTest, AtTheTimeThatIsNamed) {
  EXPECT_EXIT(Pass("commit.after:3", 2), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Pass("commit.after:3", 3), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace fluxqueue
