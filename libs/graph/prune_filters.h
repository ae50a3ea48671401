// Which types are summed up at which vertices of a resource graph: "ALL:core,ALL:gpu,node:memory".
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "libs/graph/resource_graph.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

class PruneFilters {
 public:
  // InvalidArgument when an item is not "anchor:type". Empty text: none.
  static absl::StatusOr<PruneFilters> Parse(std::string_view text, ResourceGraph* graph);

  // Summed up somewhere.
  bool Tracks(TypeId type) const { return type < tracked_.size() && tracked_[type]; }
  // What is summed up at vertices of this type, in the order that `first` knows ("the last one").
  std::vector<TypeId> At(TypeId anchor, const NameTable& names) const;
  // Adds a type at one anchor, unless it is summed up everywhere.
  void Add(TypeId anchor, TypeId type);

 private:
  void Track(TypeId type);

  std::vector<bool> tracked_;  // by type
  std::set<TypeId> everywhere_;
  std::map<TypeId, std::set<TypeId>> at_;
};

}  // namespace fluxqueue::graph
