// The FluxJob object of a job: how people see it (`kubectl get fluxjobs`). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "services/queue/domain/flux_job_planner.h"

namespace fluxqueue::queue {

// What the fact does not carry, from the matcher's tables.
struct FluxJobDetails {
  std::string jobspec;  // JSON; empty: not known
  // Where the slots are, or, of a job that has ended, were; by slot. Empty: it holds and held
  // nothing.
  std::vector<std::pair<uint32_t, std::string>> slots;
  struct Transition {
    std::string state;
    std::string reason;
    int64_t time_ms = 0;
    uint32_t attempt = 0;
  };
  std::vector<Transition> transitions;  // oldest first
};

// "job-hello": one name space for all kinds.
std::string FluxJobName(const events::v1::Workload& workload);
// The other way: "hello".
std::string WorkloadName(const std::string& flux_job);

// "node-3"; "node-3…node-18 (16)" for several nodes, in the order of the slots.
std::string NodesText(const FluxJobDetails& details);

// The whole object, for the create: owned by the workload, so that it goes with it.
std::string FluxJobObject(const events::v1::JobFact& fact,
                          int64_t position,
                          const FluxJobDetails& details);

// A merge patch that turns any earlier version of the object into this one, unless another has
// written it since `resource_version`; what no longer holds is set to null.
std::string FluxJobPatch(const events::v1::JobFact& fact,
                         int64_t position,
                         const FluxJobDetails& details,
                         const std::string& resource_version);

// The Event on the user's object for what a person must know at once; empty: this fact needs none.
// Refused, Requeued, Shrinking, SlotLost, Overran, and Failed by us do. A claim has no object.
std::string EventObject(const events::v1::JobFact& fact);

// That of a step. Each attempt has one of each at most, by its name.
// REQUIRES: `step` is not kNone
std::string StepEventObject(JobStep step,
                            const events::v1::JobFact& fact,
                            int64_t position,
                            const FluxJobDetails& details);

}  // namespace fluxqueue::queue
