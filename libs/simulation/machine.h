// What the jobs of a simulation run on. Plain values; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/trace/trace.h"

#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

// The label of a node that says which GPUs it has; also what `fluxqueue load` gives its nodes.
inline constexpr std::string_view kGpuModelLabel = "fluxqueue.io/gpu-model";

struct Machine {
  // As the matcher gets them, and as libs/trace asks whether a job could ever run; the same order.
  std::vector<events::v1::Node> nodes{};
  std::vector<trace::TraceNode> offers{};
  // Nothing but this many equal processors; 0: nodes.
  int64_t processors = 0;

  bool homogeneous() const { return processors > 0; }
  // Of all nodes together; 0 for what nobody has.
  int64_t Total(std::string_view resource) const;
};

// The machine of the literature: a job fits if so many processors are free, wherever they are. It
// is one node, on which a job of p processors asks for one slot of p cpus.
// REQUIRES: processors >= 1.
Machine MachineOfProcessors(int64_t processors);

Machine MachineOfTrace(const std::vector<trace::TraceNode>& nodes);

// `kubectl get nodes -o json` or `-o yaml`. InvalidArgument names `file`, and what is wrong in it.
absl::StatusOr<Machine> MachineOfKubernetes(std::string_view text, std::string_view file);

}  // namespace fluxqueue::simulation
