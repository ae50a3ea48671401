#include "services/cleanup/domain/foreign_pods.h"

#include <cstddef>

#include "libs/kubernetes/pod_rules.h"
#include "libs/model/host_ports.h"

namespace fluxqueue::cleanup {
namespace {

// As many ports as are said of one pod; it may have thousands.
constexpr size_t kMostHostPorts = 128;
// Of a node's pods: how many that differ are told apart, and with how many bytes.
constexpr size_t kMostIdentities = 128;
constexpr size_t kMostIdentityBytes = size_t{128} * 1024;

// What the pod uses of the node. It may ask for thousands of resources that the node does not have.
kubernetes::Amounts UsedOf(const kubernetes::Node& node, const kubernetes::Amounts& requests) {
  kubernetes::Amounts used;
  for (const auto& [resource, amount] : node.allocatable) {
    const auto asked = requests.find(resource);
    if (asked != requests.end()) used.insert(*asked);
  }
  size_t ports = 0;
  for (auto port = requests.lower_bound(model::kHostPortPrefix);
       port != requests.end() && model::IsHostPort(port->first) && ports < kMostHostPorts;
       ++port, ++ports) {
    used.insert(*port);
  }
  return used;
}

}  // namespace

std::optional<PodIdentity> IdentityOf(const kubernetes::Pod& pod) {
  // hint: rules between pods go by labels, and only within the namespace.
  const auto rules_of = [&pod](const kubernetes::PodSpec& spec) {
    return kubernetes::MakePodRules(spec, pod.meta.namespace_name, pod.meta.labels);
  };
  auto rules = rules_of(pod.spec);
  if (!rules.ok()) rules = rules_of({});
  if (!rules.ok()) return std::nullopt;
  return PodIdentity(std::move(rules->pod), std::move(rules->rules));
}

void ForeignPods::Add(const kubernetes::Amounts& requests, const PodIdentity* identity) {
  kubernetes::Add(used_, UsedOf(node_, requests));
  if (identity == nullptr) return;
  if (counts_.size() < kMostIdentities || counts_.contains(*identity)) ++counts_[*identity];
}

void ForeignPods::WriteIdentities(events::v1::Node* event) const {
  size_t bytes = 0;
  for (const auto& [identity, count] : counts_) {
    bytes += identity.first.size() + identity.second.size();
    if (bytes > kMostIdentityBytes) return;
    events::v1::Node::Pods* pods = event->add_foreign_pods();
    pods->set_pod(identity.first);
    pods->set_rules(identity.second);
    pods->set_count(count);
  }
}

}  // namespace fluxqueue::cleanup
