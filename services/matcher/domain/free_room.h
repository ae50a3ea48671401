// How whole what is free is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "libs/graph/engine.h"

namespace fluxqueue::matcher {

// By resource: of what is free, the part on nodes that hold a slot of ours. 0: whole nodes only, or
// nothing is free.
std::map<std::string, double> FragmentationOf(const std::vector<graph::NodeUsage>& nodes);

}  // namespace fluxqueue::matcher
