// Fields of a small JSON tree that has to have a form. Errors are InvalidArgument, and name the
// path, the value and what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

// An object with no key beyond the known ones. `path` is empty for the whole text.
absl::Status CheckObject(const nlohmann::json& value,
                         const std::string& path,
                         std::span<const std::string_view> known);

absl::StatusOr<const nlohmann::json*> Member(const nlohmann::json& object,
                                             const char* key,
                                             const std::string& path);
// Not empty.
absl::StatusOr<std::string> Text(const nlohmann::json& object,
                                 const char* key,
                                 const std::string& path);
absl::StatusOr<int64_t> Integer(const nlohmann::json& object,
                                const char* key,
                                const std::string& path,
                                int64_t least,
                                int64_t most);
absl::StatusOr<const nlohmann::json*> Array(const nlohmann::json& object,
                                            const char* key,
                                            const std::string& path);

// The items of object[key], where it is there.
template <typename Item, typename Parse>
absl::StatusOr<std::vector<Item>> ParseItems(const nlohmann::json& object,
                                             const char* key,
                                             const std::string& path,
                                             const Parse& parse) {
  std::vector<Item> items;
  if (!object.contains(key)) return items;
  ASSIGN_OR_RETURN(const nlohmann::json* array, Array(object, key, path));
  for (size_t i = 0; i < array->size(); ++i) {
    ASSIGN_OR_RETURN(Item item, parse((*array)[i], fmt::format("{}.{}[{}]", path, key, i)));
    items.push_back(std::move(item));
  }
  return items;
}

// Of a signature of any length: what is kept by it, in caches too, stays small.
std::string Digested(std::string signature);

}  // namespace fluxqueue::graph
