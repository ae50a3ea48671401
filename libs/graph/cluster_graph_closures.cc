// Nodes of a cluster's graph that are closed for a time.
//
// A closed node is held itself, and nothing below it: whoever looks for room leaves out a vertex
// whose own amount is held in the time, with all that it contains (pruner.h), while what is held of
// the node's resources, and the sums of what is free above, are as they were. So a job that runs
// there may run on, and a node that is closed twice is not missing twice.
//
// What stays closed from call to call is not touched, so that searches keep what they know of it.
#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/cluster_graph.h"

namespace fluxqueue::graph {
namespace {

// What closes nodes is held by jobs with this bit, which nobody else has.
constexpr JobNumber kClosing = JobNumber{1} << 61;

}  // namespace

void ClusterGraph::SetClosures(const std::vector<Closure>& closures) {
  if (stale_) return;
  // Other nodes may be meant.
  if (std::exchange(closed_for_, table_.version()) != table_.version()) OpenNodes();
  std::vector<Closed> closed;
  for (const Closure& closure : closures) {
    const auto known = std::find_if(
        closed_.begin(), closed_.end(), [&](const Closed& one) { return one.closure == closure; });
    if (known == closed_.end()) {
      closed.push_back({closure, kClosing | next_closure_++});
      Close(closed.back());
    } else {
      closed.push_back(std::move(*known));
      closed_.erase(known);
    }
  }
  OpenNodes();
  closed_ = std::move(closed);
}

void ClusterGraph::Close(const Closed& closed) {
  Holding holding;
  holding.at_s = closed.closure.from_s;
  holding.duration_s = closed.closure.to_s - closed.closure.from_s;
  holding.reserved = true;
  holding.out_of_sums = !closed.closure.counts_as_taken;
  Above above;
  for (const auto& [ordinal, node] : table_.nodes()) {
    if (!closed.closure.nodes.Matches(node->spec)) continue;
    holding.vertices.push_back({node->here.vertex, node->here.edge, 1, true});
    NoteAbove(*node, &above);
  }
  if (holding.vertices.empty()) return;
  AddAbove(above, &holding);
  CHECK(engine_->Restore(closed.number, holding).ok());
}

// A search keeps who has room now until it is told of a change (search_tables.h), and that time has
// passed is none: those who begin or end to be closed by it are told. After a Rollback time may go
// back.
void ClusterGraph::AdvanceTo(int64_t now_s) {
  const auto [earlier, later] = std::minmax({std::exchange(now_s_, now_s), now_s});
  for (const Closed& closed : closed_) {
    const bool begins = earlier < closed.closure.from_s && closed.closure.from_s <= later;
    const bool ends = earlier < closed.closure.to_s && closed.closure.to_s <= later;
    if (!begins && !ends) continue;
    engine_->Cancel(closed.number);
    Close(closed);
  }
}

void ClusterGraph::OpenNodes() {
  for (const Closed& closed : closed_) engine_->Cancel(closed.number);
  closed_.clear();
}

}  // namespace fluxqueue::graph
