#include "libs/graph/json_fields.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>
#include <openssl/sha.h>

namespace fluxqueue::graph {

using nlohmann::json;

absl::Status CheckObject(const json& value,
                         const std::string& path,
                         std::span<const std::string_view> known) {
  if (!value.is_object()) {
    return InvalidArgument(
        "{}: must be an object, is {}", path.empty() ? "jobspec" : path, value.type_name());
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return InvalidArgument("{}{}{}: this key is not supported here; known are {}",
                             path,
                             path.empty() ? "" : ".",
                             key,
                             fmt::join(known, ", "));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const json*> Member(const json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return InvalidArgument("{}{}{}: is missing", path, path.empty() ? "" : ".", key);
  }
  return &*found;
}

absl::StatusOr<std::string> Text(const json& object, const char* key, const std::string& path) {
  ASSIGN_OR_RETURN(const json* value, Member(object, key, path));
  if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
    return InvalidArgument(
        "{}.{}: must be a string that is not empty, is {}", path, key, value->dump());
  }
  return value->get<std::string>();
}

absl::StatusOr<int64_t> Integer(
    const json& object, const char* key, const std::string& path, int64_t least, int64_t most) {
  ASSIGN_OR_RETURN(const json* value, Member(object, key, path));
  if (!value->is_number_integer()) {
    return InvalidArgument("{}.{}: must be an integer, is {}", path, key, value->dump());
  }
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
  if (too_large || value->get<int64_t>() < least) {
    return InvalidArgument(
        "{}.{}: must be from {} to {}, is {}", path, key, least, most, value->dump());
  }
  return value->get<int64_t>();
}

absl::StatusOr<const json*> Array(const json& object, const char* key, const std::string& path) {
  ASSIGN_OR_RETURN(const json* array, Member(object, key, path));
  if (array->is_array()) return array;
  return InvalidArgument("{}.{}: must be an array, is {}", path, key, array->type_name());
}

std::string Digested(std::string signature) {
  constexpr size_t kMostBytes = 1024;
  if (signature.size() <= kMostBytes) return signature;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(signature.data()), signature.size(), digest.data());
  return fmt::format("sha256:{:02x}", fmt::join(digest, ""));
}

}  // namespace fluxqueue::graph
