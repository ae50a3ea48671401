// How a command runs in the cluster: `kubectl exec` into the Deployment fluxqueue-cli of the chart,
// with the user's own credentials. It needs a kubeconfig and nothing else: no port is opened.
#pragma once

#include <string>
#include <vector>

#include "libs/base/clock.h"

#include "absl/status/status.h"

namespace fluxqueue::cli {

// Which cluster, and where in it; empty: as kubectl decides.
struct ClusterAccess {
  std::string kubeconfig{};
  std::string context{};
  std::string space = "fluxqueue-system";
};

// What is known here only, and told to the command there.
struct Here {
  bool colour = false;
  size_t width = 0;
  std::string file{};     // what the command writes; empty: none
  bool terminal = false;  // standard input and output are one, and no file is written
  std::chrono::seconds utc_offset{0};
};

// kubectl's arguments for `arguments`, those of the command here. Pure.
std::vector<std::string> KubectlArguments(const ClusterAccess& access,
                                          const std::vector<std::string>& arguments,
                                          const Here& here);

// What to do about an error of kubectl, by its words on standard error; empty: nothing is known.
// Pure.
std::string Advice(const std::string& said, const ClusterAccess& access);

// Runs the command there and ends the process with its exit status. Returns only when it could not
// be run: the status says what is missing.
absl::Status RunInCluster(const ClusterAccess& access,
                          const std::vector<std::string>& arguments,
                          Here here);

}  // namespace fluxqueue::cli
