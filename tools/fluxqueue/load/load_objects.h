// The Kubernetes objects of a load, as JSON texts. Pure.
#pragma once

#include <string>
#include <string_view>

#include "libs/trace/trace.h"

#include "tools/fluxqueue/load/load_plan.h"

namespace fluxqueue::load {

// On the nodes of a load, with its namespace as value; its pods select by it, so that they run
// there and nowhere else, and what they use can be measured.
inline constexpr std::string_view kLoadLabel = "fluxqueue.io/load";
inline constexpr std::string_view kGpuModelLabel = "fluxqueue.io/gpu-model";

// `managed`: Fluxqueue looks after it.
std::string NamespaceObject(std::string_view space, bool managed);

// A node that kwok plays, already with what a kubelet would report; `now` is RFC 3339.
std::string NodeObject(const trace::TraceNode& node, std::string_view space, std::string_view now);

// A Job with a pod for each slot, Indexed if there are several; its pods run for the planned time.
// `queue` may be empty: the default.
std::string JobObject(const PlannedJob& planned, std::string_view space, std::string_view queue);

}  // namespace fluxqueue::load
