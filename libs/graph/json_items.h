// Long lists in a JSON text, read one item at a time: never more of them than one item is a tree.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

// Where the long lists are: {"graph": {"nodes": […], "edges": […]}} has `graph` and `nodes`,
// `edges`.
struct JsonItemLists {
  std::string_view parent;
  std::vector<std::string_view> lists;
};

// What becomes of the item `index` of `list`; an error ends the reading.
using ReadJsonItem =
    std::function<absl::Status(std::string_view list, size_t index, const nlohmann::json& item)>;

// Hands out the items in the order of the text. Returns what is around them, with the lists empty
// and without all that `where` does not name. REQUIRES: CheckJson(text) is OK.
// InvalidArgument also when one item has more than a million values.
absl::StatusOr<nlohmann::json> ReadJsonItems(std::string_view text,
                                             const JsonItemLists& where,
                                             const ReadJsonItem& read);

}  // namespace fluxqueue::graph
