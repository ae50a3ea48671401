#include "libs/graph/preferred_nodes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue::graph {
namespace {

// Of jobspecs, whose tiers are kept.
constexpr size_t kMostKnown = 16;

bool IsSoft(const Taint& taint) {
  return taint.effect == "PreferNoSchedule";
}

int64_t WorthOf(const NodeSpec& node, const Jobspec& jobspec) {
  int64_t worth = 0;
  for (const Preference& term : jobspec.preferences.terms) {
    if (term.nodes.Matches(node)) worth += term.weight;
  }
  const bool repels = std::any_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    const auto tolerates = [&taint](const Toleration& one) { return one.Tolerates(taint); };
    const auto& all = jobspec.tolerations;
    const auto& soft = jobspec.preferences.tolerations;
    return IsSoft(taint) && std::none_of(all.begin(), all.end(), tolerates) &&
           std::none_of(soft.begin(), soft.end(), tolerates);
  });
  return repels ? worth - kSoftTaint : worth;
}

Jobspec Narrowed(const Jobspec& jobspec, const Constraint& nodes, const std::string& name) {
  Jobspec narrowed = jobspec;
  narrowed.constraint = Constraint::And({jobspec.constraint, nodes});
  narrowed.constraint_signature += name;
  narrowed.shape += name;
  return narrowed;
}

std::vector<PreferenceTiers::Nodes> FindTiers(const Jobspec& jobspec, const NodeTable& table) {
  std::map<int64_t, PreferenceTiers::Nodes, std::greater<>> by_worth;
  for (const auto& [ordinal, node] : table.nodes()) {
    if (!jobspec.constraint.Matches(node->spec)) continue;
    by_worth[WorthOf(node->spec, jobspec)].push_back(node);
  }
  std::vector<PreferenceTiers::Nodes> tiers;
  if (by_worth.size() < 2) return tiers;
  for (auto& [worth, nodes] : by_worth) {
    if (tiers.size() < PreferenceTiers::kMost) {
      tiers.push_back(std::move(nodes));
    } else {
      tiers.back().insert(tiers.back().end(), nodes.begin(), nodes.end());
    }
  }
  return tiers;
}

}  // namespace

PreferenceTiers::PreferenceTiers(std::string name, std::vector<Nodes> tiers)
    : name_(std::move(name)) {
  for (Nodes& nodes : tiers) tiers_.push_back({std::move(nodes), {}, {}});
}

Jobspec PreferenceTiers::OnTier(size_t tier, const Jobspec& jobspec) {
  std::optional<Constraint>& nodes = tiers_[tier].alone;
  if (!nodes.has_value()) {
    std::vector<std::string> names;
    for (const Node* node : tiers_[tier].nodes) names.push_back(node->spec.name);
    nodes = Constraint::IsAnyHost(std::move(names));
  }
  return Narrowed(jobspec, *nodes, fmt::format(" on tier {} of {}", tier, name_));
}

Jobspec PreferenceTiers::OnFirst(size_t count, const Jobspec& jobspec) {
  if (count == 1) return OnTier(0, jobspec);
  std::optional<Constraint>& nodes = tiers_[count - 1].or_better;
  if (!nodes.has_value()) {
    std::vector<std::string> names;
    for (size_t tier = 0; tier < count; ++tier) {
      for (const Node* node : tiers_[tier].nodes) names.push_back(node->spec.name);
    }
    nodes = Constraint::IsAnyHost(std::move(names));
  }
  return Narrowed(jobspec, *nodes, fmt::format(" on {} tiers of {}", count, name_));
}

void PreferredNodes::Renew(const NodeTable& table) {
  known_.clear();
  version_ = table.version();
  any_soft_taint_ = std::any_of(table.nodes().begin(), table.nodes().end(), [](const auto& entry) {
    const std::vector<Taint>& taints = entry.second->spec.taints;
    return std::any_of(taints.begin(), taints.end(), IsSoft);
  });
}

PreferenceTiers* PreferredNodes::TiersOf(const Jobspec& jobspec, const NodeTable& table) {
  if (version_ != table.version()) Renew(table);
  if (jobspec.preferences.terms.empty() && !any_soft_taint_) return nullptr;
  const std::string name = fmt::format("{} preferring {} as of {}",
                                       jobspec.constraint_signature,
                                       jobspec.preferences.signature,
                                       version_);
  auto known = known_.find(name);
  if (known == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear();
    known = known_.emplace(name, PreferenceTiers(name, FindTiers(jobspec, table))).first;
  }
  return known->second.size() == 0 ? nullptr : &known->second;
}

}  // namespace fluxqueue::graph
