// A whole resource graph in the JSON Graph Format (jgf.h), piece by piece: a large one need not be
// in memory as text. What ParseJgf makes of it is the same graph; taints, which are not in the
// format, are left out.
#pragma once

#include <cstddef>
#include <string>

#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

class JgfWriter {
 public:
  // `graph` outlives the writer, and gets or loses nothing before the last piece.
  explicit JgfWriter(const ResourceGraph& graph) : graph_(graph) {}

  // The next piece, somewhat above `bytes` or the rest; empty when that was all.
  std::string Next(size_t bytes);

 private:
  enum class Part { kBegin, kNodes, kEdges, kEnd };

  void AppendNodes(size_t bytes, std::string* piece);
  void AppendEdges(size_t bytes, std::string* piece);

  const ResourceGraph& graph_;
  Part part_ = Part::kBegin;
  size_t next_ = 0;    // of the vertices or edges
  bool first_ = true;  // in its list
};

}  // namespace fluxqueue::graph
