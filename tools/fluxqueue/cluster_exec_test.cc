#include "tools/fluxqueue/cluster_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClusterExecTest, PassesOnTheCommandAndWhatIsKnownHereOnly) {
  const ClusterAccess access{.kubeconfig = "/k", .context = "prod", .space = "queue"};
  EXPECT_THAT(
      KubectlArguments(
          access,
          {"--kubeconfig",
           "/k",
           "jobs",
           "--context=prod",
           "--system-namespace",
           "queue",
           "-n",
           "team a"},
          {.colour = true, .width = 132, .terminal = true, .utc_offset = std::chrono::hours(2)}),
      ElementsAre("kubectl",
                  "--kubeconfig=/k",
                  "--context=prod",
                  "--namespace=queue",
                  "exec",
                  "--stdin",
                  "--tty",
                  "deploy/fluxqueue-cli",
                  "--",
                  "fluxqueue",
                  "--colour=always",
                  "--width=132",
                  "--utc-offset=7200",
                  "jobs",
                  "-n",
                  "team a"));
}

TEST(ClusterExecTest, AFileIsWrittenHere) {
  EXPECT_THAT(
      KubectlArguments({}, {"events", "dump", "gpu", "log.gz"}, {.width = 80, .file = "log.gz"}),
      ElementsAre("kubectl",
                  "--namespace=fluxqueue-system",
                  "exec",
                  "deploy/fluxqueue-cli",
                  "--",
                  "fluxqueue",
                  "--colour=never",
                  "--width=80",
                  "--utc-offset=0",
                  "events",
                  "dump",
                  "gpu",
                  "-"));
}

TEST(ClusterExecTest, AFileWithoutANameIsWrittenHereToo) {
  EXPECT_EQ(KubectlArguments({}, {"support-bundle"}, {.file = "bundle.tar.gz"}).back(), "-");
  EXPECT_EQ(KubectlArguments({}, {"replay", "--save=log"}, {.file = "log"}).back(), "--save=-");
}

TEST(ClusterExecTest, SaysWhatIsMissing) {
  const ClusterAccess access{.space = "queue"};
  EXPECT_THAT(
      Advice("Error from server (NotFound): deployments.apps \"fluxqueue-cli\" not found", access),
      HasSubstr("no Deployment fluxqueue-cli in the namespace queue: install Fluxqueue with helm"));
  EXPECT_THAT(Advice("Error from server (Forbidden): pods is forbidden", access),
              HasSubstr("--namespace queue --role fluxqueue-operator"));
  EXPECT_THAT(Advice("The connection to the server localhost:8080 was refused", access), "");
  EXPECT_THAT(Advice("fluxqueue: there is no job x", access), "");
}

}  // namespace
}  // namespace fluxqueue::cli
