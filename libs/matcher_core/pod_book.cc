#include "libs/matcher_core/pod_book.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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
    const int64_t until_s = placement.duration_s == 0 ? kNeverOver : PlannedEnd(placement, now_s_);
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

}  // namespace fluxqueue::matcher_core
