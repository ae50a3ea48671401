// A first pass over a JSON text that comes from outside, before it becomes a tree: syntax, depth,
// keys that stand twice, characters that no text may hold, and how much there is of what may be
// much. It takes memory for what is open at a time only; so the tree's size is bounded by the
// text's and by these limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fluxqueue::graph {

struct JsonLimits {
  struct List {
    std::string_view path;  // "graph.nodes"
    size_t items = 0;
  };

  int depth = 0;
  size_t values = SIZE_MAX;  // keys, and all that is no key
  std::vector<List> lists = {};
  // Strings and keys hold no control characters, as they are or escaped.
  bool is_plain = false;
  // Of the strings under these keys: how many bytes each may have.
  std::vector<std::string_view> name_keys = {};
  size_t name_bytes = SIZE_MAX;
};

// InvalidArgument says what is wrong and where: the byte, or the path of the value.
absl::Status CheckJson(std::string_view text, const JsonLimits& limits);

}  // namespace fluxqueue::graph
