// The program kube-filters: kube-scheduler's own filters, and the API server's own defaults
// (tools/cluster/kubernetes/filters).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes_test {

// An answer for each world (its main.go has the form).
absl::StatusOr<std::vector<nlohmann::json>> AskKubeScheduler(
    const std::vector<nlohmann::json>& worlds);

// The fields of the API's types: {"PodSpec": ["affinity", …], …}
absl::StatusOr<nlohmann::json> ApiFields();

}  // namespace fluxqueue::kubernetes_test
