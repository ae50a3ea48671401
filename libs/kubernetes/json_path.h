// What stands at a path (RFC 6901) of a JSON object.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace fluxqueue::kubernetes {

// Null: there is nothing, or null.
inline const nlohmann::json* At(const nlohmann::json& object, const std::string& path) {
  const nlohmann::json::json_pointer pointer(path);
  if (!object.contains(pointer)) return nullptr;
  const nlohmann::json& value = object[pointer];
  return value.is_null() ? nullptr : &value;
}

}  // namespace fluxqueue::kubernetes
