// Nodes of a cluster's graph that are closed for a time.
//
// A closed node is held itself, and nothing below it: whoever looks for room leaves out a vertex
// whose own amount is held in the time, with all that it contains (pruner.h), while what is held of
// the node's resources, and the sums of what is free above, are as they were. So a job that runs
// there may run on.
//
// Each node is held once at any time, however many closures meet there, so that no sum of nodes
// falls below what there is. What stays closed from call to call is not touched, so that searches
// keep what they know of it.
#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/cluster_graph.h"

namespace fluxqueue::graph {
namespace {

// What closes nodes is held by jobs with this bit, which nobody else has.
constexpr JobNumber kClosing = JobNumber{1} << 61;

// When the node is closed, in order; those that touch are one.
std::vector<std::pair<int64_t, int64_t>> TimesOf(const NodeSpec& node,
                                                 const std::vector<Closure>& closures) {
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const Closure& closure : closures) {
    if (closure.nodes.Matches(node)) times.emplace_back(closure.from_s, closure.to_s);
  }
  std::sort(times.begin(), times.end());
  size_t last = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i].first <= times[last].second) {
      times[last].second = std::max(times[last].second, times[i].second);
    } else {
      times[++last] = times[i];
    }
  }
  times.resize(std::min(times.size(), last + 1));
  return times;
}

}  // namespace

void ClusterGraph::SetClosures(const std::vector<Closure>& closures) {
  if (stale_) return;
  std::map<Times, std::vector<const Node*>> wanted;
  if (!closures.empty()) {
    for (const auto& [ordinal, node] : table_.nodes()) {
      for (const Times& times : TimesOf(node->spec, closures)) wanted[times].push_back(node);
    }
  }
  for (auto known = closed_.begin(); known != closed_.end();) {
    const auto still = wanted.find(known->first);
    if (still != wanted.end() && still->second == known->second.nodes) {
      wanted.erase(still);
      ++known;
      continue;
    }
    engine_->Cancel(known->second.number);
    known = closed_.erase(known);
  }
  for (auto& [times, nodes] : wanted) {
    Holding holding;
    holding.at_s = times.first;
    holding.duration_s = times.second - times.first;
    holding.reserved = true;
    Above above;
    for (const Node* node : nodes) {
      holding.vertices.push_back({node->here.vertex, node->here.edge, 1, true});
      NoteAbove(*node, &above);
    }
    AddAbove(above, &holding);
    const JobNumber number = kClosing | next_closure_++;
    CHECK(engine_->Restore(number, holding).ok());
    closed_.emplace(times, Closed{std::move(nodes), number});
  }
}

// A search keeps who has room now until it is told of a change (search_tables.h), and that time has
// passed is none: those who begin or end to be closed by it are told. After a Rollback time may go
// back.
void ClusterGraph::AdvanceTo(int64_t now_s) {
  const auto [earlier, later] = std::minmax({std::exchange(now_s_, now_s), now_s});
  const auto passed = [&](int64_t time) { return earlier < time && time <= later; };
  for (const auto& [times, closed] : closed_) {
    if (!passed(times.first) && !passed(times.second)) continue;
    const Holding holding = *engine_->Find(closed.number);
    engine_->Cancel(closed.number);
    CHECK(engine_->Restore(closed.number, holding).ok());
  }
}

void ClusterGraph::OpenNodes() {
  for (const auto& [times, closed] : closed_) engine_->Cancel(closed.number);
  closed_.clear();
}

}  // namespace fluxqueue::graph
