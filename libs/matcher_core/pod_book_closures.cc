// Which nodes rules between pods close.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "libs/matcher_core/pod_book.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::matcher_core {

using graph::PodRule;
using graph::PodRules;
using graph::SpreadRule;
using Time = std::pair<int64_t, int64_t>;

namespace {

// Each is a look at every node; more are put together, until the last of them ends.
constexpr size_t kMostEnds = 16;

Time TimeOf(const graph::Placement& placement, int64_t from_s, int64_t end_s) {
  return {from_s, placement.duration_s == 0 ? kNeverOver : end_s};
}

bool AreSelected(const LabelMap& labels, const std::vector<PodRule>& by_all) {
  return std::all_of(by_all.begin(), by_all.end(), [&labels](const PodRule& rule) {
    return rule.pods.Selects(labels);
  });
}

// Of the domains in which pods that have `own` and those that have `other` must not both be: the
// labels.
std::set<std::string> KeysBetween(const PodRules& own, const PodRules& other) {
  std::set<std::string> keys;
  for (const PodRule& rule : own.apart) {
    if (rule.pods.Selects(other.labels)) keys.insert(rule.key);
  }
  for (const PodRule& rule : other.apart) {
    if (rule.pods.Selects(own.labels)) keys.insert(rule.key);
  }
  return keys;
}

}  // namespace

std::shared_ptr<const PodBook::Closures> PodBook::MakeClosures(
    const AllocationKey& key,
    const graph::Jobspec& jobspec,
    const std::vector<AllocationKey>& behind,
    const Space& space) {
  const PodRules& own = jobspec.pods;
  Closed closed;
  if (own.apart.empty()) {
    for (const Kind* kind : space.ruled) KeepApart(own, *kind, &closed);
  } else {
    for (const auto& [name, kind] : space.kinds) KeepApart(own, kind, &closed);
  }
  KeepApartFromPromised(key, own, behind, &closed);
  if (!own.beside.empty()) KeepBeside(own, space, &closed);
  if (!own.spread.empty()) Spread(jobspec, space, &closed);
  return ToClosures(closed);
}

void PodBook::Close(const std::string& key, size_t node, Time time, Closed* closed) {
  const Domain* domain = DomainsOf(key).of_node[node];
  if (domain == nullptr) return;
  Share& then = (*closed)[time];
  if (!then.domains.insert(domain).second) return;
  then.nodes.insert(then.nodes.end(), domain->begin(), domain->end());
}

void PodBook::KeepApart(const PodRules& own, const Kind& kind, Closed* closed) {
  const std::set<std::string> keys = KeysBetween(own, *kind.pods);
  if (keys.empty()) return;
  for (const auto& [job, slots] : kind.jobs) {
    for (const Held& slot : slots) {
      for (const std::string& key : keys) Close(key, slot.node, {now_s_, slot.until_s}, closed);
    }
  }
}

void PodBook::KeepApartFromPromised(const AllocationKey& its,
                                    const PodRules& own,
                                    const std::vector<AllocationKey>& behind,
                                    Closed* closed) {
  for (const auto& [key, placement] : view_.promises.map()) {
    if (key == its || std::find(behind.begin(), behind.end(), key) != behind.end()) continue;
    const Spec* spec = view_.specs.Find(SpecKey(key.job_id, key.part));
    if (spec == nullptr || spec->jobspec == nullptr) continue;
    const PodRules& other = spec->jobspec->pods;
    if (other.space != own.space) continue;
    const Time time =
        TimeOf(placement, placement.start_s, placement.start_s + placement.duration_s);
    if (time.second <= now_s_) continue;
    const std::set<std::string> keys = KeysBetween(own, other);
    for (const graph::PlacedSlot& slot : placement.slots) {
      const auto node = by_name_.find(slot.node);
      if (node == by_name_.end()) continue;
      for (const std::string& label : keys) Close(label, node->second, time, closed);
    }
  }
}

void PodBook::KeepBeside(const PodRules& own, const Space& space, Closed* closed) {
  std::vector<bool> open(nodes_.size(), true);
  std::vector<size_t> selected;
  for (const auto& [name, kind] : space.kinds) {
    if (!AreSelected(kind.pods->labels, own.beside)) continue;
    for (const auto& [job, slots] : kind.jobs) {
      for (const Held& slot : slots) selected.push_back(slot.node);
    }
  }
  const bool is_first = selected.empty() && AreSelected(own.labels, own.beside);
  for (const PodRule& rule : own.beside) {
    const Domains& domains = DomainsOf(rule.key);
    std::set<const Domain*> with_pods;
    for (const size_t node : selected) with_pods.insert(domains.of_node[node]);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Domain* domain = domains.of_node[i];
      if (domain == nullptr || (!is_first && !with_pods.contains(domain))) open[i] = false;
    }
  }
  std::vector<size_t>& nodes = (*closed)[{now_s_, kNeverOver}].nodes;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!open[i]) nodes.push_back(i);
  }
}

PodBook::Counting PodBook::CountingOf(const graph::Jobspec& jobspec,
                                      const std::vector<SpreadRule>& all) {
  // Kubernetes counts on nodes that have the labels of all these rules.
  std::vector<bool> labelled(nodes_.size(), true);
  for (const SpreadRule& rule : all) {
    const Domains& domains = DomainsOf(rule.key);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (domains.of_node[i] == nullptr) labelled[i] = false;
    }
  }
  Counting counting;
  for (const SpreadRule& rule : all) {
    const auto [counts, is_new] =
        counting.try_emplace({rule.heeds_constraint, rule.heeds_taints}, labelled);
    if (!is_new) continue;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const graph::NodeSpec& node = nodes_[i];
      counts->second[i] =
          labelled[i] && (!rule.heeds_constraint || jobspec.constraint.Matches(node)) &&
          (!rule.heeds_taints ||
           graph::FirstUntolerated(node.taints, jobspec.tolerations, /*lasting=*/false) == nullptr);
    }
  }
  return counting;
}

std::map<const PodBook::Domain*, int64_t> PodBook::CountByDomain(const Counting& counting,
                                                                 const SpreadRule& rule,
                                                                 const Space& space) {
  const std::vector<bool>& counts = counting.at({rule.heeds_constraint, rule.heeds_taints});
  const Domains& domains = DomainsOf(rule.key);
  std::map<const Domain*, int64_t> pods;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (counts[i]) pods.try_emplace(domains.of_node[i], 0);
  }
  // kube-scheduler counts nothing by an empty selector, and the pod itself all the same.
  if (rule.pods == LabelSelector()) return pods;
  for (const auto& [name, kind] : space.kinds) {
    if (!rule.pods.Selects(kind.pods->labels)) continue;
    for (const auto& [job, slots] : kind.jobs) {
      for (const Held& slot : slots) {
        if (counts[slot.node]) ++pods[domains.of_node[slot.node]];
      }
    }
  }
  return pods;
}

void PodBook::Spread(const graph::Jobspec& jobspec, const Space& space, Closed* closed) {
  const PodRules& own = jobspec.pods;
  const Counting counting = CountingOf(jobspec, own.spread);
  for (const SpreadRule& rule : own.spread) {
    const Domains& domains = DomainsOf(rule.key);
    const std::map<const Domain*, int64_t> pods = CountByDomain(counting, rule, space);
    int64_t fewest = std::ssize(pods) < rule.domains ? 0 : std::numeric_limits<int64_t>::max();
    for (const auto& [domain, number] : pods) fewest = std::min(fewest, number);
    const int64_t more = rule.pods.Selects(own.labels) ? 1 : 0;
    std::vector<size_t>& nodes = (*closed)[{now_s_, kNeverOver}].nodes;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      // A domain none of whose nodes counts has none of the pods.
      const auto here = pods.find(domains.of_node[i]);
      const int64_t number = here == pods.end() ? 0 : here->second;
      const bool is_full = !pods.empty() && number + more - fewest > rule.skew;
      if (domains.of_node[i] == nullptr || is_full) nodes.push_back(i);
    }
  }
}

std::shared_ptr<const PodBook::Closures> PodBook::ToClosures(const Closed& closed) const {
  if (closed.empty()) return nullptr;
  const size_t together = (closed.size() + kMostEnds - 1) / kMostEnds;
  auto closures = std::make_shared<Closures>();
  std::vector<bool> now(nodes_.size(), false);
  for (auto next = closed.begin(); next != closed.end();) {
    std::vector<bool> nodes(nodes_.size(), false);
    Time time = next->first;
    for (size_t i = 0; i < together && next != closed.end(); ++i, ++next) {
      // An end is never put off for ever.
      if (next->first.second == kNeverOver && time.second != kNeverOver) break;
      time.second = std::max(time.second, next->first.second);
      for (const size_t node : next->second.nodes) nodes[node] = true;
    }
    std::vector<graph::IdRange> ranks;
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (!nodes[node]) continue;
      now[node] = now[node] || time.first <= now_s_;
      const auto ordinal = static_cast<int64_t>(nodes_[node].ordinal);
      if (!ranks.empty() && ranks.back().second + 1 == ordinal) {
        ranks.back().second = ordinal;
      } else {
        ranks.emplace_back(ordinal, ordinal);
      }
    }
    if (ranks.empty()) continue;
    const auto& closure = closures->all.emplace_back(
        graph::Closure{graph::Constraint::IsAnyRank(std::move(ranks)), time.first, time.second});
    closures->text += fmt::format("\n{} {} {}", time.first, time.second, closure.nodes.ToString());
  }
  closures->nodes_now = static_cast<uint32_t>(std::count(now.begin(), now.end(), true));
  return closures;
}

}  // namespace fluxqueue::matcher_core
