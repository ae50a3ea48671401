#include "libs/base/processors.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace fluxqueue {
namespace {

class ProcessorUseTest : public ::testing::Test {
 protected:
  ~ProcessorUseTest() override { std::filesystem::remove(path_); }

  void Says(const std::string& line) const {
    std::ofstream(path_) << line << "\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 7\n";
  }

  const std::string path_ = ::testing::TempDir() + "/fluxqueue_processors";
};

TEST_F(ProcessorUseTest, IsTheShareThatWasNotIdleSinceTheLastCall) {
  ProcessorUse use(path_);
  Says("cpu  100 0 0 300 0 0 0 0 50 50");
  EXPECT_DOUBLE_EQ(use.Busy(), 0.25);
  Says("cpu  100 10 20 330 10 5 5 20 50 50");
  EXPECT_DOUBLE_EQ(use.Busy(), 0.6) << "who waits for the disk leaves the processor";
  EXPECT_DOUBLE_EQ(use.Busy(), 0.6) << "no time has gone by";
  Says("cpu  100 10 20 320 10 5 5 50 50 50");
  EXPECT_DOUBLE_EQ(use.Busy(), 0.6) << "idle time was counted back";
}

TEST_F(ProcessorUseTest, WhereTheKernelDoesNotSayNothingIsBusy) {
  EXPECT_EQ(ProcessorUse(path_).Busy(), 0);
  Says("cpus 100 0 0 300 0 0 0 0");
  EXPECT_EQ(ProcessorUse(path_).Busy(), 0);
  Says("cpu  100 0");
  EXPECT_EQ(ProcessorUse(path_).Busy(), 0);
}

TEST_F(ProcessorUseTest, OfThisMachine) {
  ProcessorUse use;
  const double busy = use.Busy();
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, 1);
}

}  // namespace
}  // namespace fluxqueue
