#include "libs/graph/matching_nodes.h"

namespace fluxqueue::graph {
namespace {

uint8_t FlagsOf(const NodeSpec& node, const Jobspec& jobspec) {
  if (!jobspec.constraint.Matches(node)) return 0;
  if (FirstUntolerated(node, jobspec.tolerations, /*lasting=*/true) != nullptr) return 0;
  if (FirstUntolerated(node, jobspec.tolerations, /*lasting=*/false) != nullptr) {
    return MatchingNodes::kEver;
  }
  return MatchingNodes::kEver | MatchingNodes::kNow;
}

}  // namespace

const MatchingNodes& MatchingCache::Get(const Jobspec& jobspec) {
  if (version_ != table_.version()) {
    entries_.clear();
    version_ = table_.version();
  }
  const auto known = entries_.find(jobspec.constraint_signature);
  if (known != entries_.end()) return known->second;
  // Many different constraints (each job its own node): forget all rather than keep account of use.
  if (entries_.size() >= kMaxEntries) entries_.clear();
  MatchingNodes& matching = entries_[jobspec.constraint_signature];
  const std::vector<Node*>& positions = table_.positions();
  matching.flags.resize(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] == nullptr) continue;
    const uint8_t flags = FlagsOf(positions[i]->spec, jobspec);
    matching.flags[i] = flags;
    if ((flags & MatchingNodes::kEver) != 0) matching.ever.push_back(i);
    if ((flags & MatchingNodes::kNow) != 0) matching.now.push_back(i);
  }
  return matching;
}

}  // namespace fluxqueue::graph
