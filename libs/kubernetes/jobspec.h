// From pods to a jobspec (kubernetes.md). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "libs/base/clock.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// What each pod of a job needs: one slot.
struct PodDemand {
  Mode mode = Mode::kDirect;
  Amounts requests;        // with "pods": 1
  std::string constraint;  // JSON, constraints.h
};

// Of a pod that exists. InvalidArgument: refusals of CheckExpressible; more than kMostAmount.
absl::StatusOr<PodDemand> DemandOfPod(const PodSpec& pod);
// Of a template: completed first.
absl::StatusOr<PodDemand> DemandOfTemplate(const PodSpec& pod, const TemplateContext& context);

// Canonical RFC 14 version 1 (libs/graph/jobspec.h): `slots` slots of the demand, resources sorted
// by name, keys in a fixed order, so that equal demands have equal bytes. `duration` is given in
// whole seconds, rounded up; 0: unlimited. `min_slots` 0: all slots or none; else from so many on.
std::string MakeJobspec(const PodDemand& demand,
                        uint32_t slots,
                        Millis duration,
                        const Topology& topology,
                        uint32_t min_slots = 0);

}  // namespace fluxqueue::kubernetes
