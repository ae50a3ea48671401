#include "tools/fluxqueue/kubectl.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

// A program of that name on a PATH of its own.
class KubectlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/fluxqueue-kubectl-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    before_ = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
    setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    setenv("PATH", before_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    std::filesystem::remove_all(folder_);
  }
  void Install(const std::string& script) const {
    std::ofstream(folder_ + "/kubectl") << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ + "/kubectl", std::filesystem::perms::owner_all);
  }

  std::string folder_;
  std::string before_;
};

TEST_F(KubectlTest, GivesAllThatItSays) {
  Install("cat; echo \"$2\"; echo trouble >&2; exit 3\n");
  // More than a pipe holds.
  const std::string input(200'000, 'x');
  const auto answer = RunKubectl({"get", "--raw"}, input);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 3);
  EXPECT_EQ(answer->output, input + "--raw\n");
  EXPECT_EQ(answer->error, "trouble\n");
}

TEST_F(KubectlTest, SaysThatThereIsNone) {
  setenv("PATH", folder_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(RunKubectl({"version"}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ErrorOfKubectl, HasTheApiServersReason) {
  const absl::Status refused =
      ErrorOfKubectl("Error from server (Forbidden): jobs is forbidden: User \"ann\" …\n");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(refused), "jobs is forbidden: User \"ann\" …");
  EXPECT_EQ(ErrorOfKubectl("Error from server (NotFound): there is no job a").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorOfKubectl("Error from server (ServiceUnavailable): away").code(),
            absl::StatusCode::kUnavailable);
}

TEST(ErrorOfKubectl, PassesOnWhatIsNotTheApiServers) {
  EXPECT_EQ(Message(ErrorOfKubectl("error: stat /nowhere: no such file\n")),
            "error: stat /nowhere: no such file");
  EXPECT_EQ(ErrorOfKubectl("").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace fluxqueue::cli
