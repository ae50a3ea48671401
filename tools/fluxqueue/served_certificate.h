// The certificate that a TLS server shows, and whether an authority has signed it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

struct ServedCertificate {
  int64_t not_after_ms = 0;
  std::string problem{};  // why it is not to be believed; empty: it is
};

// `authority`: PEM. Unavailable: nobody answers there.
absl::StatusOr<ServedCertificate> ReadServedCertificate(const std::string& host,
                                                        const std::string& port,
                                                        const std::string& authority);

}  // namespace fluxqueue::cli
