// What a graph is made of, in terms of its own: amounts, nodes, keys of what is held, placements.
// Plain values; amounts are in a resource's base unit (cpu in millicores, memory and storage in
// bytes, everything else in units).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fluxqueue::graph {

struct Amount {
  std::string resource;  // "cpu", "memory", "pods", "nvidia.com/gpu" …
  int64_t amount = 0;

  friend bool operator==(const Amount&, const Amount&) = default;
};

// Sorted by resource, each named once.
using Amounts = std::vector<Amount>;

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute

  friend bool operator==(const Taint&, const Taint&) = default;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

struct NodeSpec {
  std::string name;
  std::string uid;
  // The order of the nodes, and Fluxion's `id` and `uniq_id`: given once, never to two nodes.
  uint64_t ordinal = 0;
  Amounts resources;
  Labels labels;  // sorted by key
  std::vector<Taint> taints;
  // Ready and not cordoned. A node that is not keeps what is held on it and gets nothing new.
  bool schedulable = true;
  // Used by others than us. Together with what we hold it may exceed `resources`.
  Amounts foreign;

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// What is held is held under one of these.
struct AllocationKey {
  std::string job_id;
  uint32_t attempt = 0;
  uint32_t part = 0;

  friend auto operator<=>(const AllocationKey&, const AllocationKey&) = default;
};

// Thousandths of GPUs. They are not one amount, but devices of 1000 each: a slot that asks for at
// most that has a part of one, and one that asks for more has whole ones, as many as it takes.
inline constexpr std::string_view kGpuMilli = "fluxqueue.io/gpu-milli";
inline constexpr int64_t kWholeDevice = 1000;
// Of one node; more are not given out.
inline constexpr int64_t kMaxDevices = 1024;

// "gpu", "nvidia.com/gpu", "amd.com/gpu": whole ones.
constexpr bool IsWholeGpus(std::string_view resource) {
  return resource == "gpu" || resource.ends_with("/gpu");
}

// Resources whose base unit is the byte.
constexpr bool IsBytes(std::string_view resource) {
  return resource == "memory" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}

struct DevicesPerSlot {
  size_t devices = 0;
  int64_t of_each = 0;
};

constexpr DevicesPerSlot DevicesFor(int64_t amount) {
  if (amount <= kWholeDevice) return {1, amount};
  return {static_cast<size_t>((amount + kWholeDevice - 1) / kWholeDevice), kWholeDevice};
}

struct PlacedSlot {
  uint32_t slot = 0;
  std::string node;
  // Given back before the rest, or its node is gone.
  bool released = false;
  // Of the node's GPUs, when it asks for kGpuMilli: from 0 on.
  std::vector<uint32_t> devices = {};

  friend bool operator==(const PlacedSlot&, const PlacedSlot&) = default;
};

// Equal slots of a job.
struct SlotGroup {
  uint32_t slots = 0;
  // Of one slot; every amount at least 1.
  Amounts request;

  friend bool operator==(const SlotGroup&, const SlotGroup&) = default;
};

// Where each slot is: slot i stands at index i. The first slots are those of the first group, and
// so on.
struct Placement {
  std::vector<PlacedSlot> slots;
  std::vector<SlotGroup> groups;
  int64_t start_s = 0;     // whole seconds since the pool's beginning
  int64_t duration_s = 0;  // planned; 0: unlimited
  // Both for planned_end.h. Held for longer than planned it is planned to end later by growing
  // steps, rather than a second from now.
  bool corrected = false;
  // The steps lead no further than to this long after its start. 0: nothing bounds them.
  int64_t bound_s = 0;
  // It is ended when its bound (without one, its duration) is over.
  bool enforced = false;

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace fluxqueue::graph
