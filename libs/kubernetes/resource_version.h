// etcd's revision, as an object says it. Kubernetes promises that versions of one resource can be
// compared as numbers; within one history of the store (watch.h).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace fluxqueue::kubernetes {

// Nothing: it is no number, and cannot be compared.
inline std::optional<uint64_t> VersionNumber(std::string_view text) {
  uint64_t version = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, version);
  if (error != std::errc() || last != end) return std::nullopt;
  return version;
}

}  // namespace fluxqueue::kubernetes
