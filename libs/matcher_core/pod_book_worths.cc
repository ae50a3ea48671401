// What nodes are worth to pods that prefer some beside them, or not.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/graph/fnv.h"
#include "libs/matcher_core/pod_book.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

constexpr int64_t kMostWorth = 100;
// Kept of those that prefer something, each with a number for each node.
constexpr size_t kMostWorths = 256;

}  // namespace

std::shared_ptr<const graph::NodeWorths> PodBook::WorthsFor(const graph::Jobspec& jobspec,
                                                            uint32_t queue) {
  const graph::PodPreferences& preferred = jobspec.preferences.pods;
  const bool heeds = model::HasRules(view_.state.config().rules(), model::kPrefersByPods);
  if (preferred.AreNone() || !heeds) return nullptr;
  const Space* known_space = SpaceOf(jobspec.pods.space, /*whole=*/true);
  if (known_space == nullptr) return nullptr;
  const Space& space = *known_space;
  const std::string kind =
      fmt::format("{} on {}", jobspec.preferences.signature, jobspec.constraint_signature);
  if (IsOneTooMany(kind, queue, "preferred in " + jobspec.pods.space)) return nullptr;
  if (known_worths_.size() >= kMostWorths) known_worths_.clear();
  KnownWorths& known = known_worths_[jobspec.pods.space + '\n' + kind];
  if (known.at == space.changes) return known.worths;
  known = {space.changes, nullptr};
  std::vector<int64_t> worths(nodes_.size(), 0);
  if (!preferred.near.empty()) Near(preferred.near, space, &worths);
  if (!preferred.even.empty()) Even(jobspec, space, &worths);
  graph::NodeWorths all;
  graph::Fnv hash;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (worths[i] == 0) continue;
    all.by_ordinal.emplace_back(nodes_[i].ordinal, worths[i]);
    hash.Add(nodes_[i].ordinal);
    hash.Add(static_cast<uint64_t>(worths[i]));
  }
  if (all.by_ordinal.empty()) return nullptr;
  all.signature = fmt::format("{:016x}", hash.value());
  known.worths = std::make_shared<const graph::NodeWorths>(std::move(all));
  return known.worths;
}

void PodBook::Near(const std::vector<graph::PodPreference>& near,
                   const Space& space,
                   std::vector<int64_t>* worths) {
  std::map<const Domain*, int64_t> by_domain;
  for (const graph::PodPreference& preference : near) {
    const Domains& domains = DomainsOf(preference.key);
    for (const auto& [name, kind] : space.kinds) {
      if (!preference.pods.Selects(kind.pods->labels)) continue;
      for (const auto& [job, slots] : kind.jobs) {
        for (const Held& slot : slots) {
          const Domain* domain = domains.of_node[slot.node];
          if (domain != nullptr) by_domain[domain] += preference.weight;
        }
      }
    }
  }
  std::vector<int64_t> weights(nodes_.size(), 0);
  for (const auto& [domain, weight] : by_domain) {
    for (const size_t node : *domain) weights[node] += weight;
  }
  if (weights.empty()) return;
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  if (*least == *most) return;
  for (size_t i = 0; i < weights.size(); ++i) {
    (*worths)[i] += kMostWorth * (weights[i] - *least) / (*most - *least);
  }
}

void PodBook::Even(const graph::Jobspec& jobspec,
                   const Space& space,
                   std::vector<int64_t>* worths) {
  const std::vector<graph::SpreadRule>& even = jobspec.preferences.pods.even;
  const Counting counting = CountingOf(jobspec, even);
  for (const graph::SpreadRule& rule : even) {
    const std::map<const Domain*, int64_t> pods = CountByDomain(counting, rule, space);
    if (pods.empty()) continue;
    const auto [least, most] = std::minmax_element(
        pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const int64_t range = std::max<int64_t>(1, most->second - least->second);
    for (const auto& [domain, number] : pods) {
      const int64_t worth = kMostWorth * (least->second + range - number) / range;
      for (const size_t node : *domain) (*worths)[node] += worth;
    }
  }
}

}  // namespace fluxqueue::matcher_core
