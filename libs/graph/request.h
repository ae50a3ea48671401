// Jobspecs in full: RFC 14 and RFC 25 (YAML or JSON), the trees of resources that Fluxion matches
// on any graph. (jobspec.h reads the flat subset that pods need, with divisible amounts.)
//
//   version: 1
//   resources:
//     - type: node
//       count: 2
//       with:
//         - {type: slot, count: 1, label: task, with: [{type: core, count: 4}]}
//   tasks:
//     - {command: [app], slot: task, count: {per_slot: 1}}
//   attributes: {system: {duration: 3600, queue: batch, constraints: {properties: [ssd]}}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/constraint.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr std::string_view kSlotType = "slot";
inline constexpr size_t kMaxRequestBytes = size_t{1024} * 1024;
inline constexpr int kMaxRequestDepth = 32;
inline constexpr size_t kMaxRequestValues = 10'000;
// Counts may be amounts of divisible resources, such as bytes.
inline constexpr uint64_t kMaxCount = uint64_t{1} << 60;

// How many: from `min` on, each next by the operator and operand, up to `max`; the most that is
// there is taken. One number is the range from itself to itself.
struct CountRange {
  uint64_t min = 1;
  uint64_t max = 1;
  char op = '+';  // + * ^
  uint64_t operand = 1;

  // The greatest count of the range that is at most `available`; 0 when even `min` is more.
  uint64_t Best(uint64_t available) const;
  // The greatest of all.
  uint64_t Most() const { return Best(UINT64_MAX); }
};

enum class Exclusivity { kUnsaid, kShared, kExclusive };

struct ResourceRequest {
  std::string type;
  CountRange count;
  Exclusivity exclusivity = Exclusivity::kUnsaid;
  std::string unit;
  std::string label;
  std::string id;
  std::vector<ResourceRequest> with;

  bool is_slot() const { return type == kSlotType; }
};

// Immutable once parsed.
struct JobRequest {
  std::vector<ResourceRequest> resources;  // never empty
  std::vector<std::string> task_slots;     // the labels that tasks run in
  int64_t duration_s = 0;                  // 0: unlimited
  std::string queue;
  bool constrained = false;
  Constraint constraint;
  std::vector<Toleration> tolerations;
  // Everywhere above the slots; in jobspecs it is only above the first level that is named.
  bool levels_may_be_left_out = false;
  // Equal for requests of the same resources, constraints and tolerations; never empty.
  std::string shape;
};

// InvalidArgument with the path of the offending key ("resources[0].with[1].count: …"), its value
// and what is allowed. Time and memory are bounded by the limits above.
absl::StatusOr<JobRequest> ParseJobRequest(std::string_view text);

}  // namespace fluxqueue::graph
