#include "libs/matcher_core/node_book.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

namespace fluxqueue::matcher_core {

void NodeBook::Put(const std::string& name, KnownNode node) {
  if (const KnownNode* known = nodes_.Find(name); known != nullptr) Uncount(name, *known);
  Count(name, node);
  nodes_.Put(name, std::move(node));
}

void NodeBook::ForgetGone(size_t kept) {
  while (gone_.size() > kept) {
    const std::string oldest = gone_.begin()->second;
    Uncount(oldest, *nodes_.Find(oldest));
    nodes_.Erase(oldest);
  }
}

void NodeBook::Rollback() {
  nodes_.Rollback([this](const std::string& name, const KnownNode& node) { Uncount(name, node); },
                  [this](const std::string& name, const KnownNode& node) { Count(name, node); });
}

void NodeBook::Restore(const std::string& name, KnownNode node) {
  Count(name, node);
  nodes_.Restore(name, std::move(node));
}

void NodeBook::Clear() {
  nodes_.Clear();
  gone_.clear();
  foreign_.clear();
  ruled_.clear();
  capacity_.clear();
}

namespace {

// Nothing: it does not count, or does not decode.
std::optional<events::v1::Node> Decode(const KnownNode& known) {
  events::v1::Node node;
  if (!known.present || !node.ParseFromString(known.bytes)) return std::nullopt;
  return node;
}

// Of what is said of pods that are not ours; nothing: it cannot be read.
std::optional<graph::PodRules> RulesOf(const events::v1::Node::Pods& said) {
  using nlohmann::json;
  graph::PodRules pods;
  const json pod = json::parse(said.pod(), nullptr, /*allow_exceptions=*/false);
  if (!graph::ParsePodOf(pod, &pods).ok()) return std::nullopt;
  if (said.rules().empty()) return pods;
  const json rules = json::parse(said.rules(), nullptr, /*allow_exceptions=*/false);
  if (!graph::ParsePodRules(rules, &pods).ok()) return std::nullopt;
  return pods;
}

}  // namespace

const NodeBook::ForeignByNode* NodeBook::ForeignIn(const std::string& space) const {
  const auto found = foreign_.find(space);
  return found == foreign_.end() ? nullptr : &found->second;
}

void NodeBook::Count(const std::string& name, const KnownNode& known) {
  if (!known.present) gone_.emplace(known.ordinal, name);
  const std::optional<events::v1::Node> node = Decode(known);
  if (!node) return;
  CountCapacity(*node, 1);
  CountForeign(*node);
}

void NodeBook::Uncount(const std::string& name, const KnownNode& known) {
  if (!known.present) gone_.erase({known.ordinal, name});
  const std::optional<events::v1::Node> node = Decode(known);
  if (!node) return;
  CountCapacity(*node, -1);
  UncountForeign(*node);
}

void NodeBook::CountForeign(const events::v1::Node& node) {
  for (const events::v1::Node::Pods& said : node.foreign_pods()) {
    std::optional<graph::PodRules> pods = RulesOf(said);
    if (!pods) continue;
    if (!pods->AreNone()) ++ruled_[pods->space];
    ForeignByNode& space = foreign_[pods->space];
    // No node runs more.
    const uint32_t count = std::min<uint32_t>(said.count(), 10'000);
    space[node.name()].push_back({*std::move(pods), count});
  }
}

void NodeBook::UncountForeign(const events::v1::Node& node) {
  if (node.foreign_pods().empty()) return;
  for (auto space = foreign_.begin(); space != foreign_.end();) {
    const auto here = space->second.find(node.name());
    if (here != space->second.end()) {
      for (const ForeignPods& foreign : here->second) {
        if (!foreign.pods.AreNone() && --ruled_[space->first] == 0) ruled_.erase(space->first);
      }
      space->second.erase(here);
    }
    space = space->second.empty() ? foreign_.erase(space) : std::next(space);
  }
}

void NodeBook::CountCapacity(const events::v1::Node& node, int sign) {
  if (!node.ready() || node.unschedulable()) return;
  for (const events::v1::Amount& amount : node.allocatable()) {
    const auto it = capacity_.try_emplace(amount.resource(), 0).first;
    it->second += sign * amount.amount();
    if (it->second == 0) capacity_.erase(it);
  }
}

}  // namespace fluxqueue::matcher_core
