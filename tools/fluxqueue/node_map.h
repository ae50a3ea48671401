// The cluster as a picture: a cell for each node, as full as the node, in the colour of the queue
// whose jobs hold the most of it. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/fluxqueue/cluster_view.h"

namespace fluxqueue::cli {

// One row of cells for each place (rack, zone), or several of `width` characters; then the legend.
std::string DrawNodeMap(const std::vector<NodeView>& nodes, size_t width, bool colour);

}  // namespace fluxqueue::cli
