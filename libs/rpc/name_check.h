// Names in requests, checked before anything is asked about them. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace fluxqueue::rpc {

// InvalidArgument, which names the field: it is not plain (base/text.h), or has more than `most`
// bytes. An empty name passes.
absl::Status CheckName(std::string_view field, std::string_view name, size_t most);

}  // namespace fluxqueue::rpc
