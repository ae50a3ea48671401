// How to reach an API server: from a kubeconfig file, or from the service account of the pod we run
// in.
#pragma once

#include <functional>
#include <string>

#include "libs/base/clock.h"
#include "libs/http/client.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

struct ClusterConfig {
  std::string server{};  // "https://127.0.0.1:6443"
  http::ClientTls tls{};
  // One of both, or none. A file is read again when it changes (it is looked at every ten seconds).
  std::string token{};
  std::string token_file{};
  Millis request_timeout{10'000};
};

// The current context of the file; certificates as data or as files (relative to the kubeconfig).
// InvalidArgument names the file and the key; users with an `exec` or `auth-provider` plugin are
// refused.
absl::StatusOr<ClusterConfig> ReadKubeconfig(const std::string& path);

// Environment and /var/run/secrets/kubernetes.io/serviceaccount. FailedPrecondition outside a pod.
absl::StatusOr<ClusterConfig> InClusterConfig();

// ReadKubeconfig if `kubeconfig` is not empty, else InClusterConfig: what the services'
// configuration means.
absl::StatusOr<ClusterConfig> LoadClusterConfig(const std::string& kubeconfig);

}  // namespace fluxqueue::kubernetes
