// Traces on disk.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace fluxqueue::load {

// The whole text of a file, unpacked if it is gzip. InvalidArgument names the file: it cannot be
// read, is damaged, or is above 1 GiB.
absl::StatusOr<std::string> ReadTraceFile(const std::string& path);

}  // namespace fluxqueue::load
