// kubectl as a child, for what it says: with it come all the ways of authentication that a
// kubeconfig may name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

struct KubectlAnswer {
  int status = 0;
  std::string output{};
  std::string error{};
};

// `input` is its standard input. NotFound: there is no kubectl on the PATH. Blocks until it ends.
absl::StatusOr<KubectlAnswer> RunKubectl(const std::vector<std::string>& arguments,
                                         const std::string& input = "");

// What it says of an error of the API server, "Error from server (NotFound): …", as a status with
// the message behind it. Pure.
absl::Status ErrorOfKubectl(const std::string& error);

}  // namespace fluxqueue::cli
