#include "libs/matcher_core/pod_book.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "libs/graph/fnv.h"
#include "libs/graph/levels.h"
#include "libs/graph/planned_end.h"
#include "libs/matcher_core/windows.h"
#include "libs/model/node_labels.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

using graph::PodRule;
using graph::PodRules;
using graph::SpreadRule;
using Time = std::pair<int64_t, int64_t>;

// Each is a look at every node; more are put together, until the last of them ends.
constexpr size_t kMostEnds = 16;
constexpr int64_t kMostWorth = 100;
// Kept of those that prefer something, each with a number for each node.
constexpr size_t kMostWorths = 256;

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

void AddKeys(const LabelSelector& selector, std::set<std::string>* keys) {
  for (const auto& [key, value] : selector.labels) keys->insert(key);
  for (const LabelExpression& one : selector.expressions) keys->insert(one.key);
}

}  // namespace

bool IsPlacedOneByOne(const graph::Jobspec& jobspec) {
  const PodRules& own = jobspec.pods;
  if (jobspec.slots == 1 || own.AreNone()) return false;
  const auto selects_own = [&own](const auto& rule) { return rule.pods.Selects(own.labels); };
  return std::any_of(own.beside.begin(), own.beside.end(), selects_own) ||
         std::any_of(own.spread.begin(), own.spread.end(), selects_own) ||
         std::any_of(own.apart.begin(), own.apart.end(), [&](const PodRule& rule) {
           return selects_own(rule) && !(jobspec.one_per_node && rule.key == model::kHostnameLabel);
         });
}

bool PrefersAmongOwn(const graph::Jobspec& jobspec) {
  const bool alike = jobspec.groups.size() == 1 && jobspec.min_slots == 0;
  const bool anywhere = jobspec.required_level.empty() && jobspec.preferred_level.empty();
  if (!alike || !anywhere || jobspec.slots == 1 || jobspec.slots > kMostPreferring) return false;
  const graph::PodPreferences& preferred = jobspec.preferences.pods;
  const auto selects_own = [&](const auto& one) { return one.pods.Selects(jobspec.pods.labels); };
  return std::any_of(preferred.near.begin(), preferred.near.end(), selects_own) ||
         std::any_of(preferred.even.begin(), preferred.even.end(), selects_own);
}

PodBook::PodBook(const View& view, int64_t now_s) : view_(view), now_s_(now_s) {}

std::shared_ptr<const PodBook::Closures> PodBook::ClosuresFor(
    const AllocationKey& key,
    const graph::Jobspec& jobspec,
    const std::vector<AllocationKey>& behind,
    uint32_t queue) {
  const PodRules& own = jobspec.pods;
  const Space* space = SpaceOf(own.space, /*whole=*/false);
  if (space == nullptr || (own.AreNone() && !space->has_rules)) return nullptr;
  const std::string kind = own.space + '\n' + NameOf(own, space->keys);
  if (!own.AreNone() && IsOneTooMany(kind, queue, own.space)) {
    Share all;
    for (size_t i = 0; i < nodes_.size(); ++i) all.nodes.push_back(i);
    return ToClosures({{{now_s_, kNeverOver}, std::move(all)}});
  }
  if (!own.AreNone()) SpaceOf(own.space, /*whole=*/true);
  // Its own promise counts for others, and not for itself.
  if (view_.promises.Has(key)) return MakeClosures(key, jobspec, behind, *space);
  const std::array<uint64_t, 3> at = {space->changes, view_.promises.revision(), behind.size()};
  // Which nodes count for a spread is said by the rest of the jobspec.
  Known& known = known_[own.spread.empty() ? kind : kind + '\n' + jobspec.shape];
  if (known.at != at) {
    known = {at, MakeClosures(key, jobspec, behind, *space)};
  }
  return known.closures;
}

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

bool PodBook::IsOneTooMany(const std::string& kind, uint32_t queue, const std::string& space) {
  std::set<std::string>& kinds = looked_at_[{queue, space}];
  if (kinds.contains(kind)) return false;
  if (kinds.size() >= kMostKinds) return true;
  kinds.insert(kind);
  return false;
}

void PodBook::Changed(const std::string& job_id) {
  const SpecKey first(job_id, 0);
  for (const auto& [name, space] : spaces_) {
    for (auto known = space->of_job.lower_bound(first);
         known != space->of_job.end() && known->first.first == job_id;
         known = space->of_job.erase(known)) {
      known->second->jobs.erase(known->first);
      ++space->changes;
    }
  }
  for (auto spec = view_.specs.map().lower_bound(first);
       spec != view_.specs.map().end() && spec->first.first == job_id;
       ++spec) {
    if (spec->second.jobspec == nullptr) continue;
    const PodRules& pods = spec->second.jobspec->pods;
    const auto space = spaces_.find(pods.space);
    if (space == spaces_.end() || (pods.AreNone() && !space->second->is_whole)) continue;
    Add(spec->first, pods, space->second.get());
    ++space->second->changes;
  }
}

PodBook::Space* PodBook::SpaceOf(const std::string& name, bool whole) {
  if (!HaveRules(view_.ruled, name) && !view_.nodes.ForeignHaveRules(name)) return nullptr;
  if (!model::HasRules(view_.state.config().rules(), model::kPodRules)) return nullptr;
  std::unique_ptr<Space>& space = spaces_[name];
  if (space == nullptr) {
    space = std::make_unique<Space>();
    AddRuled(name, space.get());
    AddForeign(name, space.get());
  }
  if (!whole || space->is_whole) return space.get();
  space->is_whole = true;
  for (const SpecKey& key : Unruled(name)) {
    Add(key, view_.specs.Find(key)->jobspec->pods, space.get());
  }
  return space.get();
}

const std::vector<SpecKey>& PodBook::Unruled(const std::string& name) {
  if (!unruled_.has_value()) {
    unruled_.emplace();
    for (const auto& [key, spec] : view_.specs.map()) {
      if (spec.jobspec == nullptr) continue;
      const PodRules& pods = spec.jobspec->pods;
      if (pods.space.empty() || !pods.AreNone()) continue;
      const auto known = unruled_->find(pods.space);
      if (known != unruled_->end()) {
        known->second.push_back(key);
      } else if (HaveRules(view_.ruled, pods.space) || view_.nodes.ForeignHaveRules(pods.space)) {
        (*unruled_)[pods.space].push_back(key);
      }
    }
  }
  return (*unruled_)[name];
}

void PodBook::Prepare(const graph::Jobspec& jobspec) {
  const bool prefers = !jobspec.preferences.pods.AreNone() &&
                       model::HasRules(view_.state.config().rules(), model::kPrefersByPods);
  SpaceOf(jobspec.pods.space, prefers || !jobspec.pods.AreNone());
}

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
  const std::vector<SpreadRule>& even = jobspec.preferences.pods.even;
  const Counting counting = CountingOf(jobspec, even);
  for (const SpreadRule& rule : even) {
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

std::vector<std::string> PodBook::DomainBeside(const PodRules& own, const std::string& node) {
  std::vector<std::string> names;
  const auto its = by_name_.find(node);
  const auto rule = std::find_if(own.beside.begin(), own.beside.end(), [&own](const auto& each) {
    return each.pods.Selects(own.labels);
  });
  if (its == by_name_.end() || rule == own.beside.end()) return names;
  const Domain* domain = DomainsOf(rule->key).of_node[its->second];
  if (domain == nullptr) return names;
  for (const size_t each : *domain) names.push_back(nodes_[each].name);
  return names;
}

void PodBook::AddRuled(const std::string& name, Space* space) {
  if (nodes_.empty()) {
    nodes_ = view_.engine.Nodes();
    for (size_t i = 0; i < nodes_.size(); ++i) by_name_.emplace(nodes_[i].name, i);
  }
  std::vector<std::pair<SpecKey, const PodRules*>> all;
  const auto& keys = view_.ruled.map();
  for (auto key = keys.lower_bound({name, SpecKey()});
       key != keys.end() && key->first.first == name;
       ++key) {
    const SpecKey& spec = key->first.second;
    const graph::Jobspec& jobspec = *view_.specs.Find(spec)->jobspec;
    all.emplace_back(spec, &jobspec.pods);
    NoteKeys(jobspec, space);
  }
  if (const auto* foreign = view_.nodes.ForeignIn(name); foreign != nullptr) {
    for (const auto& [node, pods] : *foreign) {
      for (const NodeBook::ForeignPods& each : pods) NoteRules(each.pods, space);
    }
  }
  for (const auto& [key, pods] : all) Add(key, *pods, space);
}

void PodBook::NoteRules(const PodRules& pods, Space* space) {
  space->has_rules = space->has_rules || !pods.AreNone();
  for (std::set<std::string>* keys : {&space->keys, &space->more_keys}) {
    for (const PodRule& rule : pods.apart) AddKeys(rule.pods, keys);
    for (const PodRule& rule : pods.beside) AddKeys(rule.pods, keys);
    for (const SpreadRule& rule : pods.spread) AddKeys(rule.pods, keys);
  }
}

void PodBook::NoteKeys(const graph::Jobspec& jobspec, Space* space) const {
  NoteRules(jobspec.pods, space);
  if (!model::HasRules(view_.state.config().rules(), model::kPrefersByPods)) return;
  const graph::PodPreferences& preferred = jobspec.preferences.pods;
  for (const graph::PodPreference& one : preferred.near) AddKeys(one.pods, &space->more_keys);
  for (const SpreadRule& rule : preferred.even) AddKeys(rule.pods, &space->more_keys);
}

std::string PodBook::NameOf(const PodRules& pods, const std::set<std::string>& keys) {
  std::string name;
  for (const auto& [key, value] : pods.labels) {
    if (keys.contains(key)) name += fmt::format("{}={},", key, value);
  }
  return name + pods.signature;
}

PodBook::Kind* PodBook::KindOf(const PodRules& pods, Space* space) {
  Kind& kind = space->kinds[NameOf(pods, space->more_keys)];
  if (kind.pods == nullptr) {
    kind.pods = &pods;
    if (!pods.apart.empty()) space->ruled.push_back(&kind);
  }
  return &kind;
}

void PodBook::Add(const SpecKey& key, const PodRules& pods, Space* space) {
  std::vector<Held> held;
  for (const AllocationKey& its : view_.engine.KeysOf(key.first)) {
    if (its.part != key.second) continue;
    const graph::Placement& placement = *view_.engine.Find(its);
    const int64_t until_s = TimeOf(placement, now_s_, PlannedEnd(placement, now_s_)).second;
    for (const graph::PlacedSlot& slot : placement.slots) {
      const auto node = by_name_.find(slot.node);
      if (!slot.released && node != by_name_.end()) held.push_back({node->second, until_s});
    }
  }
  if (held.empty()) return;
  Kind* kind = KindOf(pods, space);
  kind->jobs[key] = std::move(held);
  space->of_job[key] = kind;
}

void PodBook::AddForeign(const std::string& name, Space* space) {
  const NodeBook::ForeignByNode* by_node = view_.nodes.ForeignIn(name);
  if (by_node == nullptr) return;
  for (const auto& [where, all] : *by_node) {
    const auto node = by_name_.find(where);
    if (node == by_name_.end()) continue;
    for (const NodeBook::ForeignPods& foreign : all) {
      std::vector<Held>& held = KindOf(foreign.pods, space)->jobs[SpecKey()];
      held.insert(held.end(), foreign.count, {node->second, kNeverOver});
    }
  }
}

const PodBook::Domains& PodBook::DomainsOf(const std::string& key) {
  const auto [known, is_new] = domains_.try_emplace(key);
  Domains& domains = known->second;
  if (!is_new) return domains;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const std::string* value = graph::LabelOf(nodes_[i], key);
    Domain* domain = value == nullptr ? nullptr : &domains.by_value[*value];
    if (domain != nullptr) domain->push_back(i);
    domains.of_node.push_back(domain);
  }
  return domains;
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
