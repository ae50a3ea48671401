#include "libs/matcher_core/codec.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "libs/graph/fnv.h"
#include "libs/model/host_ports.h"

namespace fluxqueue::matcher_core {
namespace {

// Sorted, each resource once; what is said twice is added up.
graph::Amounts ToAmounts(const google::protobuf::RepeatedPtrField<events::v1::Amount>& amounts) {
  graph::Amounts result;
  for (const events::v1::Amount& amount : amounts) {
    result.push_back({amount.resource(), amount.amount()});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.resource < b.resource;
  });
  size_t kept = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    if (kept > 0 && result[kept - 1].resource == result[i].resource) {
      result[kept - 1].amount += result[i].amount;
    } else {
      if (kept != i) result[kept] = std::move(result[i]);
      ++kept;
    }
  }
  result.resize(kept);
  return result;
}

std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

graph::NodeSpec ToNodeSpec(const events::v1::Node& node,
                           uint64_t ordinal,
                           const google::protobuf::RepeatedPtrField<std::string>& host_ports) {
  graph::NodeSpec spec;
  spec.name = node.name();
  spec.uid = node.uid();
  spec.ordinal = ordinal;
  spec.resources = ToAmounts(node.allocatable());
  for (const events::v1::Label& label : node.labels()) {
    spec.labels.emplace_back(label.key(), label.value());
  }
  std::sort(spec.labels.begin(), spec.labels.end());
  for (const events::v1::Taint& taint : node.taints()) {
    spec.taints.push_back({taint.key(), taint.value(), taint.effect()});
  }
  spec.schedulable = node.ready() && !node.unschedulable();
  spec.foreign = ToAmounts(node.foreign());
  std::erase_if(spec.foreign, [&host_ports](const graph::Amount& amount) {
    return model::IsHostPort(amount.resource) &&
           !std::binary_search(host_ports.begin(), host_ports.end(), amount.resource);
  });
  for (const std::string& port : host_ports) spec.resources.push_back({port, 1});
  std::inplace_merge(spec.resources.begin(),
                     spec.resources.end() - host_ports.size(),
                     spec.resources.end(),
                     [](const auto& a, const auto& b) { return a.resource < b.resource; });
  return spec;
}

events::v1::Placement ToProto(const graph::Placement& placement) {
  events::v1::Placement proto;
  proto.mutable_slots()->Reserve(static_cast<int>(placement.slots.size()));
  for (const graph::PlacedSlot& slot : placement.slots) {
    events::v1::Placement::Slot* added = proto.add_slots();
    added->set_slot(slot.slot);
    added->set_node(slot.node);
    added->set_released(slot.released);
    for (const uint32_t device : slot.devices) added->add_devices(device);
  }
  for (const graph::SlotGroup& group : placement.groups) {
    events::v1::Placement::Group* added = proto.add_groups();
    added->set_slots(group.slots);
    for (const graph::Amount& amount : group.request) {
      events::v1::Amount* request = added->add_requests();
      request->set_resource(amount.resource);
      request->set_amount(amount.amount);
    }
  }
  proto.set_start_s(placement.start_s);
  proto.set_duration_s(placement.duration_s);
  proto.set_bound_s(placement.bound_s);
  proto.set_corrected(placement.corrected);
  proto.set_enforced(placement.enforced);
  return proto;
}

graph::Placement FromProto(const events::v1::Placement& proto) {
  graph::Placement placement;
  for (const events::v1::Placement::Slot& slot : proto.slots()) {
    placement.slots.push_back({slot.slot(),
                               slot.node(),
                               slot.released(),
                               {slot.devices().begin(), slot.devices().end()}});
  }
  for (const events::v1::Placement::Group& group : proto.groups()) {
    placement.groups.push_back({group.slots(), ToAmounts(group.requests())});
  }
  placement.start_s = proto.start_s();
  placement.duration_s = proto.duration_s();
  placement.bound_s = proto.bound_s();
  placement.corrected = proto.corrected();
  placement.enforced = proto.enforced();
  return placement;
}

graph::AllocationKey FromProto(const events::v1::AllocationKey& key) {
  return {key.job_id(), key.attempt(), key.part()};
}

events::v1::AllocationKey ToProto(const graph::AllocationKey& key) {
  events::v1::AllocationKey proto;
  proto.set_job_id(key.job_id);
  proto.set_attempt(key.attempt);
  proto.set_part(key.part);
  return proto;
}

uint64_t PlacementHash(const events::v1::Placement& placement) {
  events::v1::Placement whole = placement;
  for (events::v1::Placement::Slot& slot : *whole.mutable_slots()) slot.set_released(false);
  graph::Fnv hash;
  // No map and no unknown field: the bytes are the same on every machine.
  hash.Add(whole.SerializeAsString());
  return hash.value() == 0 ? 1 : hash.value();
}

bool IsOlder(std::string_view said, std::string_view known) {
  const std::optional<uint64_t> said_number = ToNumber(said);
  const std::optional<uint64_t> known_number = ToNumber(known);
  return said_number && known_number && *said_number < *known_number;
}

}  // namespace fluxqueue::matcher_core
