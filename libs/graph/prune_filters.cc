#include "libs/graph/prune_filters.h"

#include <algorithm>
#include <cstddef>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {

absl::StatusOr<PruneFilters> PruneFilters::Parse(std::string_view text, ResourceGraph* graph) {
  PruneFilters filters;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == item.size()) {
      return InvalidArgument(
          "prune filters: \"{}\" must be anchor:type, such as ALL:core or node:memory", item);
    }
    const TypeId type = graph->InternType(item.substr(colon + 1));
    if (item.substr(0, colon) == "ALL") {
      filters.Track(type);
      filters.everywhere_.insert(type);
      for (auto& [anchor, types] : filters.at_) types.erase(type);
    } else {
      filters.Add(graph->InternType(item.substr(0, colon)), type);
    }
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return filters;
}

std::vector<TypeId> PruneFilters::At(TypeId anchor, const NameTable& names) const {
  std::vector<TypeId> types;
  if (const auto found = at_.find(anchor); found != at_.end()) {
    types.assign(found->second.begin(), found->second.end());
  }
  const auto by_name = [&](TypeId a, TypeId b) { return names[a] < names[b]; };
  std::sort(types.begin(), types.end(), by_name);
  const auto own = static_cast<ptrdiff_t>(types.size());
  for (const TypeId type : everywhere_) {
    if (type != anchor) types.push_back(type);
  }
  std::sort(types.begin() + own, types.end(), by_name);
  return types;
}

void PruneFilters::Track(TypeId type) {
  if (tracked_.size() <= type) tracked_.resize(type + 1, false);
  tracked_[type] = true;
}

void PruneFilters::Add(TypeId anchor, TypeId type) {
  Track(type);
  if (!everywhere_.contains(type)) at_[anchor].insert(type);
}

}  // namespace fluxqueue::graph
