// Why a jobspec does not fit: counts over all nodes, and the sentence that people read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/node_table.h"

namespace fluxqueue::graph {

// `levels`: all that the pool could have; `in_use`: those that some node's label names.
Explanation ExplainShortfall(const Jobspec& jobspec,
                             const NodeTable& table,
                             std::span<const Level> levels,
                             std::span<const Level> in_use,
                             Wording wording);

// For people: cpu in cores ("1.5"), bytes with binary units ("3Gi", "1.5Gi"), else the number.
std::string FormatAmount(std::string_view resource, int64_t amount);

}  // namespace fluxqueue::graph
