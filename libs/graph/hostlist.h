// RFC 29 hostlists: "node[1-3,7],login" names node1, node2, node3, node7 and login; "n[08-10]"
// keeps the width. Several brackets in one name multiply.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace fluxqueue::graph {

// How much a hostlist names: a short text may name a great deal.
struct HostlistSize {
  size_t names = 0;
  size_t bytes = 0;  // that they have at most
};

// Adds what the text names to `size`, without writing it out. InvalidArgument as ExpandHostlist
// says, where `size` has the names so far.
absl::Status MeasureHostlist(std::string_view text, size_t limit, HostlistSize* size);

// Appends the names to `hosts`. InvalidArgument when the text does not parse, a name is longer than
// 255 bytes, or `hosts` would grow beyond `limit`; the two together bound time and memory.
absl::Status ExpandHostlist(std::string_view text, size_t limit, std::vector<std::string>* hosts);

// The hosts that hostlists name, for asking whether one is among them. Takes as much memory as the
// text, however much that names.
class HostSet {
 public:
  // InvalidArgument as ExpandHostlist says, where this set has the names so far.
  absl::Status Add(std::string_view text, size_t limit);
  // One host, whatever characters it has.
  void AddName(std::string name) { names_.push_back(std::move(name)); }
  // All is added: before the first question.
  void Finish();

  bool Contains(std::string_view name) const;
  // Names, each as often as it stands there.
  size_t size() const { return size_; }

 private:
  std::vector<std::string> names_;     // sorted
  std::vector<std::string> patterns_;  // elements with brackets, which are well-formed
  size_t size_ = 0;
};

// A short text that names these hosts, in the order of their names and numbers.
std::string FormatHostlist(const std::vector<std::string>& hosts);

}  // namespace fluxqueue::graph
