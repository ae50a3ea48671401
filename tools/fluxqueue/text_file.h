// Texts that a command writes to files.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace fluxqueue::cli {

// In place of what the file had. "-": to standard output. InvalidArgument: it cannot be written.
absl::Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace fluxqueue::cli
