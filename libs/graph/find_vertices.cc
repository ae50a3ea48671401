#include "libs/graph/find_vertices.h"

#include <set>
#include <unordered_map>
#include <utility>

namespace fluxqueue::graph {
namespace {

// What holds above a vertex holds for it too.
struct Above {
  bool down = false;
  bool allocated = false;
  bool reserved = false;
};

// Which jobs are at a vertex.
struct JobsAt {
  std::set<JobNumber> allocations;   // that hold this vertex itself
  std::set<JobNumber> reservations;  // the same
  std::set<JobNumber> passing;       // jobs that hold it or something below
};

class Finder {
 public:
  Finder(const ResourceGraph& graph,
         const GraphState& state,
         const std::map<JobNumber, Holding>& jobs,
         const FindCriteria& criteria)
      : graph_(graph), state_(state), criteria_(criteria), seen_(graph.vertices().size(), false) {
    for (const auto& [job, holding] : jobs) {
      for (const HeldVertex& held : holding.vertices) {
        JobsAt& at = jobs_[held.vertex];
        at.passing.insert(job);
        if (held.exclusive) (holding.reserved ? at.reservations : at.allocations).insert(job);
      }
    }
  }

  std::vector<VertexId> Find() {
    FindBelow(graph_.root(), {});
    return std::move(found_);
  }

 private:
  bool FindBelow(VertexId v, Above above) {
    static const JobsAt kNoJobs;
    seen_[v] = true;
    const Vertex& vertex = graph_.vertex(v);
    const auto jobs = jobs_.find(v);
    const JobsAt& at = jobs == jobs_.end() ? kNoJobs : jobs->second;
    const Above here{above.down || !vertex.up,
                     above.allocated || !at.allocations.empty(),
                     above.reserved || !at.reservations.empty()};
    bool any = false;
    for (const EdgeId e : vertex.out) {
      const Edge& edge = graph_.edge(e);
      if (edge.subsystem != ResourceGraph::kContainment || seen_[edge.target]) continue;
      any = FindBelow(edge.target, here) || any;
    }
    const FindSubject subject{.name = vertex.name,
                              .down = here.down,
                              .allocated = here.allocated,
                              .reserved = here.reserved,
                              .sums_up = !state_.Filters(v).empty(),
                              .properties = vertex.properties,
                              .allocations = at.allocations,
                              .reservations = at.reservations,
                              .passing = at.passing};
    if (!any && !criteria_.Matches(subject)) return false;
    found_.push_back(v);
    return true;
  }

  const ResourceGraph& graph_;
  const GraphState& state_;
  const FindCriteria& criteria_;
  std::unordered_map<VertexId, JobsAt> jobs_;
  std::vector<bool> seen_;
  std::vector<VertexId> found_;
};

}  // namespace

std::vector<VertexId> FindOnGraph(const ResourceGraph& graph,
                                  const GraphState& state,
                                  const std::map<JobNumber, Holding>& jobs,
                                  const FindCriteria& criteria) {
  return Finder(graph, state, jobs, criteria).Find();
}

}  // namespace fluxqueue::graph
