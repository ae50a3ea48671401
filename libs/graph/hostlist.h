// RFC 29 hostlists: "node[1-3,7],login" names node1, node2, node3, node7 and login; "n[08-10]"
// keeps the width. Several brackets in one name multiply.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fluxqueue::graph {

// Appends the names to `hosts`. InvalidArgument when the text does not parse, a name is longer than
// 255 bytes, or `hosts` would grow beyond `limit`; the two together bound time and memory.
absl::Status ExpandHostlist(std::string_view text, size_t limit, std::vector<std::string>* hosts);

// A short text that names these hosts, in the order of their names and numbers.
std::string FormatHostlist(const std::vector<std::string>& hosts);

}  // namespace fluxqueue::graph
