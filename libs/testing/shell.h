// Commands, for tests that drive the project's own scripts and programs. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fluxqueue::testing {

// 'it'\''s': one word for a shell, whatever the text.
std::string ShellQuote(std::string_view text);
std::string ShellCommand(const std::vector<std::string>& words);

// kubectl as it was built with the control plane, with this kubeconfig.
std::string KubectlCommand(const std::string& kubeconfig,
                           const std::vector<std::string>& arguments);

struct ShellResult {
  int exit_code = 0;
  std::string output;
};

// Runs `command` in a shell and waits for its end. Unavailable when there is no shell.
absl::StatusOr<ShellResult> RunAny(const std::string& command);

// The standard output, or Unavailable with all it said when it did not end with 0.
absl::StatusOr<std::string> Run(const std::string& command);

}  // namespace fluxqueue::testing
