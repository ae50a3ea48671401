// Finds what Fluxqueue holds in a cluster and lets go of it, as release_plan.h says.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "libs/kubernetes/client.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/release_plan.h"

namespace fluxqueue::cli {

struct Released {
  Release release{};
  std::string error{};  // why it could not be done; empty: it is, or nothing was to be
};

struct ReleaseOptions {
  bool really = false;  // else nothing is written
  bool also_unknown = false;
  size_t at_once = 8;  // writes
  // Of the objects of one kind that are written to: how many are, and how many are to be.
  std::function<void(size_t, size_t)> progress = [](size_t, size_t) {};
};

// Jobs first, then pods, among them those that the Jobs have got by then. What changes meanwhile is
// judged again. An error: the cluster could not be read; what was done stays done.
absl::StatusOr<std::vector<Released>> ReleaseAll(kubernetes::Client& client,
                                                 const ReleaseOptions& options);

}  // namespace fluxqueue::cli
