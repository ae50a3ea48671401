// What is held of a resource graph, as a tree for people. Pure, thread-safe.
//
//   cluster0
//   └─ rack0
//      ├─ node[0-1] (exclusive)           like siblings are one line, and what stands below them is
//      │  ├─ core[0-3]                    there once in each
//      │  └─ memory0: 3 of 512 GiB        an amount of what can be divided
//      └─ node7
//         └─ gpu0
//
// The leaves are held; of what stands above them only what says so.
#pragma once

#include <string>

#include "libs/graph/holding.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::cli {

// A vertex that several others contain is drawn below each of these, in full below the first;
// "(as above)" below the others. REQUIRES: `holding` is not empty, and is of this graph.
std::string DrawHolding(const graph::ResourceGraph& graph, const graph::Holding& holding);

}  // namespace fluxqueue::cli
