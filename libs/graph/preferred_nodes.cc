#include "libs/graph/preferred_nodes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// Of jobspecs, whose tiers are kept.
constexpr size_t kMostKnown = 128;

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

int64_t WorthBesides(const NodeSpec& node, const NodeWorths& worths) {
  const auto& all = worths.by_ordinal;
  const auto found =
      std::lower_bound(all.begin(), all.end(), node.ordinal, [](const auto& one, uint64_t ordinal) {
        return one.first < ordinal;
      });
  return found != all.end() && found->first == node.ordinal ? found->second : 0;
}

Constraint AnyOf(const PreferenceTiers::Nodes& nodes) {
  std::vector<int64_t> ranks;
  ranks.reserve(nodes.size());
  for (const Node* node : nodes) ranks.push_back(static_cast<int64_t>(node->spec.ordinal));
  std::sort(ranks.begin(), ranks.end());
  std::vector<IdRange> ranges;
  for (const int64_t rank : ranks) {
    if (!ranges.empty() && ranges.back().second + 1 == rank) {
      ranges.back().second = rank;
    } else {
      ranges.emplace_back(rank, rank);
    }
  }
  return Constraint::IsAnyRank(std::move(ranges));
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
    const NodeSpec& spec = node->spec;
    if (!jobspec.constraint.Matches(spec)) continue;
    if (FirstUntolerated(spec.taints, jobspec.tolerations, /*lasting=*/true) != nullptr) continue;
    const NodeWorths* besides = jobspec.preferences.worths.get();
    const int64_t worth =
        WorthOf(spec, jobspec) + (besides == nullptr ? 0 : WorthBesides(spec, *besides));
    by_worth[worth].push_back(node);
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

PreferenceTiers::PreferenceTiers(const std::string& of, std::vector<Nodes> tiers) {
  Fnv hash;
  for (Nodes& nodes : tiers) {
    hash.Add(nodes.size());
    for (const Node* node : nodes) hash.Add(node->spec.ordinal);
    tiers_.push_back({std::move(nodes), {}, {}});
  }
  name_ = fmt::format("{:016x} of {}", hash.value(), of);
}

Jobspec PreferenceTiers::OnTier(size_t tier, const Jobspec& jobspec) {
  std::optional<Constraint>& nodes = tiers_[tier].alone;
  if (!nodes.has_value()) nodes = AnyOf(tiers_[tier].nodes);
  return Narrowed(jobspec, *nodes, fmt::format(" on tier {} of {}", tier, name_));
}

Jobspec PreferenceTiers::OnFirst(size_t count, const Jobspec& jobspec) {
  if (count == 1) return OnTier(0, jobspec);
  std::optional<Constraint>& nodes = tiers_[count - 1].or_better;
  if (!nodes.has_value()) {
    Nodes all;
    for (size_t tier = 0; tier < count; ++tier) {
      all.insert(all.end(), tiers_[tier].nodes.begin(), tiers_[tier].nodes.end());
    }
    nodes = AnyOf(all);
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

void PreferredNodes::ForgetOldest() {
  known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

PreferenceTiers* PreferredNodes::TiersOf(const Jobspec& jobspec, const NodeTable& table) {
  if (version_ != table.version()) Renew(table);
  const Preferences& preferences = jobspec.preferences;
  const bool any = !preferences.terms.empty() || preferences.worths != nullptr;
  if (!any && !any_soft_taint_) return nullptr;
  const std::string of =
      fmt::format("{} preferring {}", jobspec.constraint_signature, preferences.signature);
  auto known = known_.find(of);
  if (known == known_.end()) {
    if (known_.size() >= kMostKnown) ForgetOldest();
    known = known_.emplace(of, Known{PreferenceTiers(of, FindTiers(jobspec, table))}).first;
  }
  known->second.used = ++calls_;
  PreferenceTiers& tiers = known->second.tiers;
  return tiers.size() == 0 ? nullptr : &tiers;
}

}  // namespace fluxqueue::graph
