// The graph engine for any graph and any request: Fluxion's operations and answers.
//
// A deterministic state machine: no clock (jobs are matched at time 0, as Fluxion does, or at the
// time that the caller says), no thread, no I/O, no exception. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "libs/graph/find_criteria.h"
#include "libs/graph/graph_explanation.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/indexed_search.h"
#include "libs/graph/match_operation.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/packing.h"
#include "libs/graph/request.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/traverser.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

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
    // False: every answer by a walk. The same answers, to hold the other against.
    bool indexes = true;
    // Policies that stop at the first match try children by what was free when they were last used,
    // as Fluxion does. False: by what the caller says (SetTryOrder).
    bool remembers_use = true;
  };

  // InvalidArgument: an option that does not parse, a graph without a root.
  static absl::StatusOr<std::unique_ptr<GeneralEngine>> Make(ResourceGraph graph,
                                                             const Options& options);

  const ResourceGraph& graph() const { return graph_; }
  TypeId InternType(std::string_view type) { return graph_.InternType(type); }
  // Null when the job holds nothing.
  const Holding* Find(JobNumber job) const;

  // FailedPrecondition when the job holds something already.
  absl::StatusOr<MatchAnswer> Match(MatchOperation operation,
                                    JobNumber job,
                                    const JobRequest& request) {
    return Match(operation, job, request, {0, request.duration_s});
  }
  // The same at another time. What is allocated is held from 0 until its end: that it begins at no
  // later time is what makes it another thing than a reservation.
  struct When {
    int64_t now_s = 0;
    int64_t duration_s = 0;  // 0: unlimited
  };
  absl::StatusOr<MatchAnswer> Match(MatchOperation operation,
                                    JobNumber job,
                                    const JobRequest& request,
                                    const When& when);
  // Holds it from then on, if it fits then, whether or not it would earlier.
  absl::StatusOr<MatchAnswer> Reserve(JobNumber job, const JobRequest& request, const When& at);
  // Holds it from the first of the points after `after` on at which it fits, those from `before` on
  // not tried; else kBusy.
  absl::StatusOr<MatchAnswer> ReserveFirst(JobNumber job,
                                           const JobRequest& request,
                                           const When& after,
                                           int64_t before);
  // That point; nothing: there is none.
  std::optional<int64_t> FirstTime(const JobRequest& request, const When& after, int64_t before);
  // The next time after this one at which something is given back or begins to be held.
  std::optional<int64_t> PointAfter(int64_t time) const;
  // The least of the vertex's own amount that is not held in that time.
  int64_t FreeDuring(VertexId v, int64_t at_s, int64_t duration_s) const {
    return state_.FreeDuring(v, at_s, duration_s);
  }
  // Why the request does not fit now; see GraphExplanation.
  GraphExplanation Explain(const JobRequest& request) const;
  // False when the job holds nothing.
  bool Cancel(JobNumber job);
  // Gives back these vertices, and those above them that then hold nothing; true when that is all.
  // NotFound when the job holds nothing; InvalidArgument when it does not hold one of them itself.
  absl::StatusOr<bool> CancelPart(JobNumber job, const std::vector<VertexId>& vertices);

  // Holds again what a match gave (after a restart), whether or not it fits by now.
  // FailedPrecondition when the job holds something already; InvalidArgument for a vertex or an
  // edge that the graph does not have.
  absl::Status Restore(JobNumber job, const Holding& holding);

  // Adds what `part` has and the graph has not: vertices by their paths, with the way to them from
  // the root. FailedPrecondition, and nothing has changed: see ResourceGraph::Merge;
  // InvalidArgument when `part` is no graph.
  absl::Status AddSubgraph(const ResourceGraph& part);
  // Adds one vertex below another in containment. FailedPrecondition when its path is taken.
  absl::StatusOr<VertexId> AddVertex(Vertex vertex, VertexId parent);
  // Takes a vertex out with all that it contains, and from the jobs that hold some of it; returns
  // them, sorted. NotFound for an unknown path; InvalidArgument for the root.
  absl::StatusOr<std::vector<JobNumber>> RemoveSubgraph(std::string_view path);

  // A copy for what-if: what happens to it does not happen here.
  std::unique_ptr<GeneralEngine> Snapshot() const;

  // Undo: between Checkpoint() and Commit() every change is recorded, and Rollback() takes all of
  // them back, so that StateFingerprint() is what it was. Not twice at once; Commit and Rollback do
  // nothing without a Checkpoint.
  void Checkpoint() { recording_ = true; }
  void Commit();
  void Rollback();

  // A hash of what is held: equal when the same jobs hold the same. (What policies that stop at the
  // first match remember of past jobs is not in it.)
  uint64_t Fingerprint() const;
  // A hash of all that can show in an answer.
  uint64_t StateFingerprint() const;

  // Vertices that meet the criteria and those above them, children before their parents.
  std::vector<VertexId> FindVertices(const FindCriteria& criteria) const;

  // A divisible vertex has this size from now on, whatever is held of it. REQUIRES: it is
  // divisible.
  void Resize(VertexId v, int64_t size);
  void SetProperties(VertexId v, Labels properties);
  void SetTaints(VertexId v, std::vector<Taint> taints);
  void SetUp(VertexId v, bool up);
  // Children with greater weights are tried first, those never used (GraphState::kUntouched) before
  // all others. REQUIRES: not the root, and it contains something.
  void SetTryOrder(VertexId v, uint64_t weight);
  // InvalidArgument: not a policy's name or form. What is held stays.
  absl::Status SetPolicy(std::string_view policy);

  // The slots that are expected: under `packed` the gpus are kept of use to them. Counts are taken
  // as the nearest powers of two (QuantisedCount), and nothing happens when all stay the same; else
  // every node is looked at anew.
  void SetWorkload(Workload workload);

  // NotFound for an unknown path. What is below a vertex that is down is not given out either.
  absl::Status SetUp(std::string_view path, bool up);
  absl::Status SetProperty(std::string_view path, std::string key, std::string value);

 private:
  GeneralEngine(ResourceGraph graph,
                MatchPolicy policy,
                PruneFilters filters,
                TraverserKind traverser,
                const Options& options);

  // How to take back one change.
  struct UndoJob {
    JobNumber job = 0;
    std::optional<Holding> before;
  };
  struct UndoOrder {
    EdgeId edge = 0;
    uint64_t weight = 0;
  };
  struct UndoVertex {
    VertexId vertex = 0;
    bool up = true;
    Labels properties;
  };
  struct UndoWorkload {
    Workload before;
  };
  // The graph grew or shrank, which is rare: all of it is kept.
  struct UndoAll {
    std::unique_ptr<GeneralEngine> before;
  };
  using Undo = std::variant<UndoJob, UndoOrder, UndoVertex, UndoWorkload, UndoAll>;

  GeneralEngine(const GeneralEngine& other);

  void TakeBack(UndoJob& undo);
  void TakeBack(UndoOrder& undo);
  void TakeBack(UndoVertex& undo);
  void TakeBack(UndoWorkload& undo);
  void TakeBack(UndoAll& undo);
  // To be called before a vertex changes, so that it can be undone.
  void Note(VertexId v);
  void NoteAll();
  // What follows from the graph is made anew when it is needed next.
  void GraphChanged() { settled_ = false; }
  // Vertices and edges have come.
  void GraphGrew();
  void WorkloadChanged();
  // What some node has, or its properties.
  void NodesChanged();
  void Settle();
  // The job holds this from now on, and no more what it held; nothing: it holds nothing.
  void SetHolding(JobNumber job, std::optional<Holding> holding);

  // What is known of like requests, until something may be free that was not.
  struct Known {
    uint64_t freed = 0;  // GraphState::freed
    // Nothing fits from there on, now, for so long or longer.
    int64_t now_s = 0;
    int64_t refused_s = INT64_MAX;
    // Of the points after `after_s`, of which there was a first, none does before these times: by
    // duration. Both ascend.
    int64_t after_s = 0;
    int64_t first_s = 0;
    std::map<int64_t, int64_t> not_before;
  };
  // A request against this graph. What is prepared once serves all like requests.
  struct Prepared {
    Prepared(const JobRequest& request, const GeneralEngine& engine);

    JobRequest job;
    ResolvedRequest resolved;
    std::optional<SearchPlan> plan;
    mutable Known known;
    // For how long it could ever be held, as things were when the state's changes_end() was
    // `ever_seen`; −1: not known.
    mutable uint64_t ever_seen = 0;
    mutable int64_t ever_s = -1;
  };
  // What a request stands for, in the order in which it is tried.
  using Alternatives = std::vector<const Prepared*>;

  const Prepared& Prepare(const JobRequest& request);
  // Where the request goes in that time.
  std::optional<Selection> Select(const Prepared& request, const Window& window);
  bool Fits(const Prepared& request, const Window& window);
  bool EnoughNodes(const ResolvedRequest& request,
                   MatchOperation operation,
                   const When& when) const;
  // Empty when nothing fits there.
  Holding Place(const Alternatives& alternatives, const Window& window);
  // The first time from `at` on at which the whole graph has enough; nothing: it never has.
  std::optional<int64_t> EnoughFrom(const ResolvedRequest& request, const When& at) const;
  // Of the same request, and of now.
  Known& KnownOf(const Prepared& request) const;
  // What is known of points after this time.
  Known& KnownAfter(const Prepared& request, int64_t time) const;
  // The point, or the first one after it that may do.
  std::optional<int64_t> SkipKnown(const Known& known, int64_t duration, int64_t point) const;
  // Nothing: it does not fit at any of them. `holding` may be null.
  std::optional<int64_t> FindFirst(const Prepared& request,
                                   const When& after,
                                   int64_t before,
                                   Holding* holding);
  // What fits at that time; if nothing, `time` becomes the next one at which something may.
  std::optional<Selection> SweepOn(const Prepared& request,
                                   int64_t duration,
                                   std::optional<int64_t>* time);
  std::optional<Selection> Walk(const Prepared& request, const Window& window);
  Holding Take(Selection selection);
  struct Sum {
    const Timeline* free = nullptr;
    int64_t needed = 0;
  };
  std::vector<Sum> SumsOf(const ResolvedRequest& request) const;
  bool HasEnough(const ResolvedRequest& request, const When& at) const;
  Holding PlaceLater(const Alternatives& alternatives, const When& when);
  MatchAnswer Answer(MatchOperation operation, const Alternatives& alternatives, const When& when);
  void CountNodes();
  // Beside it is another of its type.
  bool HasTwins(VertexId v) const;
  // Takes these vertices out of what the job holds; false when nothing is left of it. `leaving`:
  // they do not even lead to what is left.
  bool Reduce(JobNumber job, const std::set<VertexId>& gone, bool leaving);

  bool CouldEver(const Alternatives& alternatives, int64_t duration);

  ResourceGraph graph_;
  MatchPolicy policy_;
  TraverserKind kind_;
  GraphState state_;
  Packing packing_;
  Traverser traverser_;
  bool indexes_;
  bool remembers_use_;
  bool settled_ = true;
  bool packed_ = true;  // the costs of `packed` are those of now
  IndexedSearch search_;
  // By shape.
  std::unordered_map<std::string, std::unique_ptr<Prepared>, TextHash, std::equal_to<>> prepared_;
  int64_t nodes_up_ = 0;
  std::map<JobNumber, Holding> jobs_;
  std::vector<EdgeId> used_;  // by the last match
  bool recording_ = false;
  std::vector<Undo> journal_;
};

}  // namespace fluxqueue::graph
