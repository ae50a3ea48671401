// A real control plane for tests: etcd, kube-apiserver, controllers, scheduler and kwok, by
// tools/cluster/start, on free loopback ports in a folder of its own; gone with the object. Built
// once into the cache (minutes), then up in about 3 s.
//
// One thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::testing {

struct MiniClusterOptions {
  int nodes = 0;  // kwok nodes
  // More arguments for tools/cluster/start.
  std::vector<std::string> arguments{};
};

class MiniCluster {
 public:
  // Returns when the API server is ready. Unavailable: the end of the log of what failed.
  static absl::StatusOr<std::unique_ptr<MiniCluster>> Start(MiniClusterOptions options = {});

  ~MiniCluster();
  MiniCluster(const MiniCluster&) = delete;
  MiniCluster& operator=(const MiniCluster&) = delete;

  const std::string& folder() const { return folder_; }
  std::string kubeconfig() const { return folder_ + "/kubeconfig"; }

  // kubectl with the cluster's kubeconfig; `input` is its standard input ("-f -"). The output, or
  // Unavailable with the standard error.
  absl::StatusOr<std::string> Kubectl(const std::vector<std::string>& arguments,
                                      const std::string& input = "");

  // The API server alone: SIGKILL, and the start again of whatever has died. Etcd keeps what was
  // written. StartApiServer returns when it is ready.
  absl::Status KillApiServer();
  absl::Status StartApiServer();

 private:
  MiniCluster(std::string folder, std::string start_command)
      : folder_(std::move(folder)), start_command_(std::move(start_command)) {}

  const std::string folder_;
  const std::string start_command_;  // starts whatever of it does not run
};

}  // namespace fluxqueue::testing
