#include "libs/fluxion/granules.h"

#include <algorithm>

#include "libs/graph/types.h"

namespace fluxqueue::fluxion {

int64_t Granules::Of(std::string_view resource) const {
  if (resource == "cpu") return cpu;
  if (resource == graph::kGpuMilli) return graph::kWholeDevice;
  return graph::IsBytes(resource) ? bytes : 1;
}

int64_t Granules::Needed(std::string_view resource, int64_t amount) const {
  const int64_t granule = Of(resource);
  return amount / granule + (amount % granule == 0 ? 0 : 1);
}

int64_t Granules::In(std::string_view resource, int64_t amount) const {
  return amount / Of(resource);
}

graph::Jobspec Rounded(const graph::Jobspec& jobspec, const Granules& granules) {
  graph::Jobspec rounded = jobspec;
  for (graph::SlotGroup& group : rounded.groups) {
    for (graph::Amount& amount : group.request) {
      amount.amount =
          granules.Needed(amount.resource, amount.amount) * granules.Of(amount.resource);
    }
  }
  return rounded;
}

std::string TypeOf(std::string_view resource) {
  if (resource == "cpu") return "core";
  std::string type(resource);
  std::replace(type.begin(), type.end(), '/', '.');
  return type;
}

}  // namespace fluxqueue::fluxion
