// The graph engine for any graph and any request: Fluxion's operations and answers.
//
// A deterministic state machine: no clock (all jobs are matched at time 0 and times count from
// there), no thread, no I/O, no exception. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/find_criteria.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/request.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/traverser.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

enum class MatchOperation {
  kAllocate,
  kAllocateWithSatisfiability,
  kAllocateOrElseReserve,
  kSatisfiability,
  kWithoutAllocating,
  kWithoutAllocatingFuture,
};

enum class MatchStatus {
  kAllocated,      // held from now on
  kReserved,       // held from `holding.at_s` on
  kMatched,        // it would be (or, for kSatisfiability, could be) held; nothing is
  kBusy,           // not now
  kUnsatisfiable,  // not ever
};

struct MatchAnswer {
  MatchStatus status = MatchStatus::kBusy;
  Holding holding;  // empty unless there is a place
};

class GeneralEngine {
 public:
  struct Options {
    std::string_view policy = "first";
    std::string_view prune_filters = "ALL:core";
    std::string_view traverser = "simple";
  };

  // InvalidArgument: an option that does not parse, a graph without a root.
  static absl::StatusOr<std::unique_ptr<GeneralEngine>> Make(ResourceGraph graph,
                                                             const Options& options);

  const ResourceGraph& graph() const { return graph_; }
  // Null when the job holds nothing.
  const Holding* Find(JobNumber job) const;

  // FailedPrecondition when the job holds something already.
  absl::StatusOr<MatchAnswer> Match(MatchOperation operation,
                                    JobNumber job,
                                    const JobRequest& request);
  // False when the job holds nothing.
  bool Cancel(JobNumber job);
  // Gives back these vertices, and those above them that then hold nothing; true when that is all.
  // NotFound when the job holds nothing; InvalidArgument when it does not hold one of them itself.
  absl::StatusOr<bool> CancelPart(JobNumber job, const std::vector<VertexId>& vertices);

  // Holds again what a match gave (after a restart), whether or not it fits by now.
  // FailedPrecondition when the job holds something already; InvalidArgument for a vertex or an
  // edge that the graph does not have.
  absl::Status Restore(JobNumber job, const Holding& holding);

  // A hash of what is held: equal when the same jobs hold the same. (What policies that stop at the
  // first match remember of past jobs is not in it.)
  uint64_t Fingerprint() const { return state_.Fingerprint(); }

  // Vertices that meet the criteria and those above them, children before their parents.
  std::vector<VertexId> FindVertices(const FindCriteria& criteria) const;

  // NotFound for an unknown path. What is below a vertex that is down is not given out either.
  absl::Status SetUp(std::string_view path, bool up);
  absl::Status SetProperty(std::string_view path, std::string key, std::string value);

 private:
  GeneralEngine(ResourceGraph graph,
                MatchPolicy policy,
                PruneFilters filters,
                TraverserKind traverser);

  // What a request stands for, in the order in which it is tried.
  using Alternatives = std::vector<ResolvedRequest>;

  bool EnoughNodes(const ResolvedRequest& request,
                   MatchOperation operation,
                   int64_t duration) const;
  // Empty when nothing fits there.
  Holding Place(const Alternatives& alternatives, const Window& window);
  Holding PlaceLater(const Alternatives& alternatives, int64_t duration);
  MatchAnswer Answer(MatchOperation operation, const Alternatives& alternatives, int64_t duration);
  struct Above;
  bool FindBelow(VertexId v,
                 Above above,
                 const FindCriteria& criteria,
                 std::vector<bool>* seen,
                 std::vector<VertexId>* found) const;
  bool CouldEver(const Alternatives& alternatives, int64_t duration);

  ResourceGraph graph_;
  MatchPolicy policy_;
  TraverserKind kind_;
  GraphState state_;
  Traverser traverser_;
  int64_t nodes_up_ = 0;
  std::map<JobNumber, Holding> jobs_;
  std::vector<EdgeId> used_;  // by the last match
};

}  // namespace fluxqueue::graph
