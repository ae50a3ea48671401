// From pods to a jobspec (kubernetes.md). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/pod_rules.h"
#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// Pods of a group that ask for the same; of a pod that has places, itself, and those.
struct PodSet {
  uint32_t slots = 0;
  Amounts requests;  // of one

  friend bool operator==(const PodSet&, const PodSet&) = default;
};

// What each pod of a job needs: one slot.
struct PodDemand {
  Mode mode = Mode::kDirect;
  Amounts requests;               // with "pods": 1; where there are sets none
  std::string constraint;         // JSON, constraints.h
  std::string preferences = {};   // the same; empty: none
  PodRules rules = {};            // between it and other pods
  std::vector<PodSet> sets = {};  // where slots differ, in their order; else none

  friend bool operator==(const PodDemand&, const PodDemand&) = default;
};

// Of a pod that exists, or of a template that is complete, in this namespace and with these labels.
// InvalidArgument: refusals of CheckExpressible and MakePodRules; more than kMostAmount.
absl::StatusOr<PodDemand> DemandOfPod(const PodSpec& pod,
                                      std::string_view space,
                                      const StringMap& labels);

// Canonical RFC 14 version 1 (libs/graph/jobspec.h): `slots` slots of the demand, resources sorted
// by name, keys in a fixed order, so that equal demands have equal bytes. `duration` is given in
// whole seconds, rounded up; 0: unlimited. `min_slots` 0: all slots or none; else from so many on.
// Where there are sets: their slots, beside each other.
std::string MakeJobspec(const PodDemand& demand,
                        uint32_t slots,
                        Millis duration,
                        const Topology& topology,
                        uint32_t min_slots = 0);

}  // namespace fluxqueue::kubernetes
