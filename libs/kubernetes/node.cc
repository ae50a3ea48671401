#include "libs/kubernetes/node.h"

#include <algorithm>

#include <fmt/format.h>

#include "libs/kubernetes/labels.h"

namespace fluxqueue::kubernetes {
namespace {

template <typename List>
void Fill(const Amounts& amounts, List* list) {
  for (const auto& [resource, amount] : amounts) {
    if (amount == 0) continue;
    auto* item = list->Add();
    item->set_resource(resource);
    item->set_amount(std::min(amount, kMostAmount));
  }
}

// As kube-scheduler does it (k8s.io/api/core/v1: Toleration.ToleratesTaint).
bool Tolerate(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& toleration) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    if (!toleration.key.empty() && toleration.key != taint.key) return false;
    return toleration.op == "Exists" ||
           (!toleration.key.empty() && toleration.value == taint.value);
  });
}

}  // namespace

events::v1::Node ToEvent(const Node& node, const Amounts& foreign) {
  events::v1::Node event;
  event.set_name(node.meta.name);
  event.set_uid(node.meta.uid);
  event.set_resource_version(node.meta.resource_version);
  Fill(node.allocatable, event.mutable_allocatable());
  // hint: only administrators and kubelets write to nodes.
  for (const auto& [key, value] : node.meta.labels) {
    auto* label = event.add_labels();
    label->set_key(key);
    label->set_value(value);
  }
  for (const Taint& taint : node.taints) {
    auto* item = event.add_taints();
    item->set_key(taint.key);
    item->set_value(taint.value);
    item->set_effect(taint.effect);
  }
  std::sort(event.mutable_taints()->begin(),
            event.mutable_taints()->end(),
            [](const events::v1::Taint& a, const events::v1::Taint& b) {
              return std::tie(a.key(), a.effect(), a.value()) <
                     std::tie(b.key(), b.effect(), b.value());
            });
  event.set_unschedulable(node.unschedulable);
  event.set_ready(node.ready);
  Fill(foreign, event.mutable_foreign());
  return event;
}

std::string InventoryOf(events::v1::Node node) {
  node.clear_resource_version();
  return node.SerializeAsString();
}

std::optional<std::string> WhyClosed(const Node& node, const std::vector<Toleration>& tolerations) {
  static const Taint kCordoned = {"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (node.unschedulable && !Tolerate(tolerations, kCordoned)) return "is cordoned";
  for (const Taint& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!Tolerate(tolerations, taint)) {
      return fmt::format("has the taint {}={}:{}", taint.key, taint.value, taint.effect);
    }
  }
  return std::nullopt;
}

std::string PoolOf(const Node& node) {
  const auto label = node.meta.labels.find(kPoolLabel);  // hint: as above
  return label == node.meta.labels.end() ? std::string(kDefaultPool) : label->second;
}

Amounts ToAmounts(const google::protobuf::RepeatedPtrField<events::v1::Amount>& list) {
  Amounts amounts;
  for (const auto& item : list) Add(amounts, {{item.resource(), item.amount()}});
  return amounts;
}

}  // namespace fluxqueue::kubernetes
