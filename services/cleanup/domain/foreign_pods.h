// Pods on a node that hold no slot of ours: what they use of it, and who they are to the rules
// between pods (libs/kubernetes/pod_rules.h). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::cleanup {

// Its labels and namespace, and its rules: as JSON.
using PodIdentity = std::pair<std::string, std::string>;
// Without its rules where we could not keep them for a pod of ours. Nothing: its labels are too
// long for a jobspec.
std::optional<PodIdentity> IdentityOf(const kubernetes::Pod& pod);

// Of one node. What it says of them is bounded: some may be left out.
class ForeignPods {
 public:
  explicit ForeignPods(const kubernetes::Node& node) : node_(node) {}

  // `identity` null: no rule is about it.
  void Add(const kubernetes::Amounts& requests, const PodIdentity* identity);

  const kubernetes::Amounts& used() const { return used_; }
  void WriteIdentities(events::v1::Node* event) const;

 private:
  const kubernetes::Node& node_;
  kubernetes::Amounts used_;
  std::map<PodIdentity, uint32_t> counts_;
};

}  // namespace fluxqueue::cleanup
