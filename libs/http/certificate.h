// What a certificate in a PEM file says.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"

namespace fluxqueue::http {

// When the first certificate of the file is over. InvalidArgument names a file that has none.
absl::StatusOr<std::chrono::system_clock::time_point> CertificateEnd(const std::string& file);

}  // namespace fluxqueue::http
