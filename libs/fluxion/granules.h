// Amounts as Fluxion can count them. It takes vertices whole, so that each stands for a granule of
// a resource: what a slot needs is rounded up to granules, what a node has is rounded down. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libs/graph/jobspec.h"

namespace fluxqueue::fluxion {

struct Granules {
  int64_t cpu = 1000;                // millicores
  int64_t bytes = int64_t{1} << 30;  // of memory, storage, huge pages

  // In the resource's base unit; 1 for what has none of these units, and a whole device for
  // graph::kGpuMilli.
  int64_t Of(std::string_view resource) const;
  int64_t Needed(std::string_view resource, int64_t amount) const;
  int64_t In(std::string_view resource, int64_t amount) const;
};

// Each amount rounded up to whole granules.
graph::Jobspec Rounded(const graph::Jobspec& jobspec, const Granules& granules);

// The vertices' type: "core" for cpu, and no slash, which stands between the parts of a path.
std::string TypeOf(std::string_view resource);

}  // namespace fluxqueue::fluxion
