#include "libs/graph/general_engine.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/alternatives.h"
#include "libs/graph/find_vertices.h"

namespace fluxqueue::graph {
namespace {

// Requests of so many shapes are kept ready.
constexpr size_t kMaxPrepared = 1024;

bool AsksForSatisfiability(MatchOperation operation) {
  return operation == MatchOperation::kAllocateWithSatisfiability ||
         operation == MatchOperation::kSatisfiability;
}

bool MayReserve(MatchOperation operation) {
  return operation == MatchOperation::kAllocateOrElseReserve ||
         operation == MatchOperation::kWithoutAllocatingFuture;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GeneralEngine>> GeneralEngine::Make(ResourceGraph graph,
                                                                   const Options& options) {
  RETURN_IF_ERROR(graph.Check());
  ASSIGN_OR_RETURN(const MatchPolicy policy, MatchPolicy::Parse(options.policy));
  ASSIGN_OR_RETURN(PruneFilters filters, PruneFilters::Parse(options.prune_filters, &graph));
  if (options.traverser != "simple" && options.traverser != "flexible") {
    return InvalidArgument("traverser: must be simple or flexible, is \"{}\"", options.traverser);
  }
  const TraverserKind kind =
      options.traverser == "simple" ? TraverserKind::kSimple : TraverserKind::kFlexible;
  return std::unique_ptr<GeneralEngine>(
      new GeneralEngine(std::move(graph), policy, std::move(filters), kind, options));
}

GeneralEngine::GeneralEngine(ResourceGraph graph,
                             MatchPolicy policy,
                             PruneFilters filters,
                             TraverserKind traverser,
                             const Options& options)
    : graph_(std::move(graph)),
      policy_(policy),
      kind_(traverser),
      state_(graph_, std::move(filters)),
      packing_(graph_, state_, policy_, {}),
      traverser_(graph_, state_, policy_, packing_, kind_),
      indexes_(options.indexes),
      remembers_use_(options.remembers_use),
      search_(graph_, state_, policy_, packing_) {
  CountNodes();
}

GeneralEngine::Prepared::Prepared(const JobRequest& request, const GeneralEngine& engine)
    : job(request), resolved(job, engine.graph_, engine.state_.filters(), engine.kind_) {}

const GeneralEngine::Prepared& GeneralEngine::Prepare(const JobRequest& request) {
  CHECK(!request.shape.empty());
  const auto known = prepared_.find(request.shape);
  if (known != prepared_.end()) return *known->second;
  if (prepared_.size() >= kMaxPrepared) prepared_.clear();
  auto prepared = std::make_unique<Prepared>(request, *this);
  if (indexes_ && kind_ == TraverserKind::kSimple) {
    prepared->plan = search_.PlanFor(prepared->resolved);
  }
  return *prepared_.emplace(request.shape, std::move(prepared)).first->second;
}

void GeneralEngine::Settle() {
  if (settled_ && packed_) return;
  packing_.GraphChanged();
  traverser_.GraphChanged();
  if (settled_) {
    search_.CostsChanged();
  } else {
    prepared_.clear();
    search_.GraphChanged();
    CountNodes();
  }
  settled_ = packed_ = true;
}

const Holding* GeneralEngine::Find(JobNumber job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

absl::StatusOr<MatchAnswer> GeneralEngine::Match(MatchOperation operation,
                                                 JobNumber job,
                                                 const JobRequest& request,
                                                 const When& when) {
  if (operation != MatchOperation::kSatisfiability && jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  Settle();
  Alternatives alternatives;
  std::vector<std::unique_ptr<Prepared>> split;
  if (kind_ == TraverserKind::kFlexible) {
    ASSIGN_OR_RETURN(auto variants, SplitAlternatives(request.resources));
    for (auto& variant : variants) {
      JobRequest alternative = request;
      alternative.resources = std::move(variant);
      split.push_back(std::make_unique<Prepared>(alternative, *this));
      alternatives.push_back(split.back().get());
    }
  } else {
    alternatives.push_back(&Prepare(request));
  }
  const int64_t duration = when.duration_s == 0 ? kForever : when.duration_s;
  MatchAnswer answer = Answer(operation, alternatives, {when.now_s, duration});
  if (answer.holding.vertices.empty()) return answer;
  if (answer.status == MatchStatus::kAllocated) {
    answer.holding.duration_s += std::exchange(answer.holding.at_s, 0);
  }

  // What is only looked for is held and given back, as in Fluxion: `first` remembers it, by what
  // was free before.
  SetHolding(job, answer.holding);
  if (!Holds(operation)) SetHolding(job, std::nullopt);
  if (policy_.stop_on_first && remembers_use_) {
    for (const EdgeId edge : used_) {
      const uint64_t before = state_.Reorder(edge, 0);
      if (recording_) journal_.push_back(UndoOrder{edge, before});
    }
  }
  if (!Holds(operation)) answer.status = MatchStatus::kMatched;
  return answer;
}

MatchAnswer GeneralEngine::Answer(MatchOperation operation,
                                  const Alternatives& alternatives,
                                  const When& when) {
  const int64_t duration = when.duration_s;
  if (operation == MatchOperation::kSatisfiability) {
    return {CouldEver(alternatives, duration) ? MatchStatus::kMatched : MatchStatus::kUnsatisfiable,
            {}};
  }
  const bool enough =
      std::any_of(alternatives.begin(), alternatives.end(), [&](const Prepared* request) {
        return EnoughNodes(request->resolved, operation, when);
      });
  if (!enough) {
    const bool ever = AsksForSatisfiability(operation);
    return {ever ? MatchStatus::kUnsatisfiable : MatchStatus::kBusy, {}};
  }
  Holding now = Place(alternatives, {when.now_s, duration, Window::Kind::kNow});
  if (!now.vertices.empty()) return {MatchStatus::kAllocated, std::move(now)};
  if (MayReserve(operation)) {
    Holding later = PlaceLater(alternatives, when);
    if (!later.vertices.empty()) return {MatchStatus::kReserved, std::move(later)};
  }
  const bool ask = AsksForSatisfiability(operation) || MayReserve(operation);
  const bool ever = !ask || CouldEver(alternatives, duration);
  return {ever ? MatchStatus::kBusy : MatchStatus::kUnsatisfiable, {}};
}

// A quick look, before any traversal: are there as many nodes as are asked for?
bool GeneralEngine::EnoughNodes(const ResolvedRequest& request,
                                MatchOperation operation,
                                const When& when) const {
  const TypeId node = graph_.types().Find("node");
  const auto wanted = request.total.find(node);
  const int64_t nodes = wanted == request.total.end() ? 0 : wanted->second;
  if (nodes > nodes_up_) return false;
  if (!request.job.constrained) return true;
  const bool ever = AsksForSatisfiability(operation);
  const int64_t at = operation == MatchOperation::kAllocate ? when.now_s : kForever - 1;
  int64_t feasible = 0;
  for (const VertexId v : graph_.OfType(node)) {
    if (feasible >= nodes) break;
    const Vertex& vertex = graph_.vertex(v);
    const bool meets =
        request.job.constraint.Matches({vertex.name, vertex.rank, vertex.properties});
    if (meets && (ever || vertex.up) && state_.FreeDuring(v, at, when.duration_s) == 1) {
      ++feasible;
    }
  }
  return feasible >= nodes;
}

Holding GeneralEngine::Place(const Alternatives& alternatives, const Window& window) {
  for (const Prepared* request : alternatives) {
    std::optional<Selection> selection = Select(*request, window);
    if (selection.has_value()) return Take(*std::move(selection));
  }
  return {};
}

Holding GeneralEngine::Take(Selection selection) {
  used_ = std::move(selection.used);
  state_.SumUpBelow(&selection.holding);
  return std::move(selection.holding);
}

std::optional<Selection> GeneralEngine::Select(const Prepared& request, const Window& window) {
  if (!request.plan.has_value()) return Walk(request, window);
  Known& known = KnownOf(request);
  const bool now = window.kind == Window::Kind::kNow;
  if (now && known.now_s == window.at_s && window.duration_s >= known.refused_s) {
    return std::nullopt;
  }
  Selection selection;
  const auto answer = search_.Search(*request.plan, window, &selection);
  if (answer == IndexedSearch::Answer::kFound) return selection;
  if (answer == IndexedSearch::Answer::kAskAWalk) return Walk(request, window);
  if (now) {
    known.now_s = window.at_s;
    known.refused_s = window.duration_s;
  }
  return std::nullopt;
}

std::optional<Selection> GeneralEngine::Walk(const Prepared& request, const Window& window) {
  if (!traverser_.Select(request.resolved, window)) return std::nullopt;
  Selection selection = traverser_.Collect(request.resolved, window);
  // Nothing of it is held: it fits, and never matches.
  if (selection.holding.vertices.empty()) return std::nullopt;
  return selection;
}

bool GeneralEngine::Fits(const Prepared& request, const Window& window) {
  if (request.plan.has_value()) {
    const auto answer = search_.Search(*request.plan, window, nullptr);
    if (answer != IndexedSearch::Answer::kAskAWalk) return answer == IndexedSearch::Answer::kFound;
  }
  return traverser_.Select(request.resolved, window);
}

bool GeneralEngine::CouldEver(const Alternatives& alternatives, int64_t duration) {
  const Window window{Timeline::kEnd - duration - 1, duration, Window::Kind::kEver};
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const Prepared* request) {
    if (request->ever_seen == state_.changes_end() && duration <= request->ever_s) return true;
    if (!Fits(*request, window)) return false;
    request->ever_seen = state_.changes_end();
    request->ever_s = duration;
    return true;
  });
}

GraphExplanation GeneralEngine::Explain(const JobRequest& request) const {
  const ResolvedRequest resolved(request, graph_, state_.filters(), kind_);
  return ExplainOnGraph(graph_, state_, jobs_, resolved);
}

bool GeneralEngine::Cancel(JobNumber job) {
  if (!jobs_.contains(job)) return false;
  SetHolding(job, std::nullopt);
  return true;
}

void GeneralEngine::SetHolding(JobNumber job, std::optional<Holding> holding) {
  UndoJob undo{job, std::nullopt};
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) {
    state_.Release(found->second);
    undo.before = std::move(found->second);
    jobs_.erase(found);
  }
  if (holding.has_value()) {
    state_.Hold(*holding);
    jobs_[job] = *std::move(holding);
  }
  if (recording_) journal_.push_back(std::move(undo));
}

absl::StatusOr<bool> GeneralEngine::CancelPart(JobNumber job,
                                               const std::vector<VertexId>& vertices) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    return MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", job);
  }
  std::set<VertexId> has;
  for (const HeldVertex& held : found->second.vertices) {
    if (held.exclusive) has.insert(held.vertex);
  }
  for (const VertexId v : vertices) {
    if (!has.contains(v)) {
      return InvalidArgument("job {} does not hold \"{}\"", job, graph_.PathOf(v));
    }
  }
  return !Reduce(job, {vertices.begin(), vertices.end()}, /*leaving=*/false);
}

bool GeneralEngine::Reduce(JobNumber job, const std::set<VertexId>& gone, bool leaving) {
  const auto found = jobs_.find(job);
  Holding rest = found->second;
  rest.vertices.clear();
  std::set<VertexId> needed;  // above what is still held
  for (const HeldVertex& held : found->second.vertices) {
    const bool keeps = held.exclusive && !gone.contains(held.vertex);
    const bool leads = needed.contains(held.vertex) && !(leaving && gone.contains(held.vertex));
    if (!keeps && !leads) continue;
    rest.vertices.push_back({held.vertex, held.edge, held.amount, keeps});
    for (const VertexId parent : graph_.ParentsOf(held.vertex)) needed.insert(parent);
  }
  state_.SumUpBelow(&rest);
  const bool any = !rest.vertices.empty();
  SetHolding(job, any ? std::optional<Holding>(std::move(rest)) : std::nullopt);
  return any;
}

absl::Status GeneralEngine::Restore(JobNumber job, const Holding& holding) {
  if (jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  for (const HeldVertex& held : holding.vertices) {
    const bool known = held.vertex < graph_.vertices().size() &&
                       (held.edge == kNoEdge || held.edge < graph_.edges().size());
    if (!known || graph_.vertex(held.vertex).gone) {
      return InvalidArgument("job {}: the graph has no vertex {}", job, held.vertex);
    }
    if (held.amount < 0) return InvalidArgument("job {}: an amount of {}", job, held.amount);
    const bool whole = held.exclusive && held.amount == graph_.vertex(held.vertex).size;
    if (!whole && state_.BitOf(held.vertex) != 0) {
      return InvalidArgument(
          "job {}: \"{}\" can only be held whole", job, graph_.PathOf(held.vertex));
    }
  }
  if (holding.at_s < 0 || holding.duration_s < 1 ||
      holding.at_s > Timeline::kEnd - holding.duration_s) {
    return InvalidArgument(
        "job {}: from {} on for {} seconds is no time", job, holding.at_s, holding.duration_s);
  }
  Holding summed = holding;
  state_.SumUpBelow(&summed);
  SetHolding(job, std::move(summed));
  if (!policy_.stop_on_first || !remembers_use_) return absl::OkStatus();
  // In Fluxion what was restored is tried last, whatever is free of it.
  for (const HeldVertex& held : holding.vertices) {
    if (held.edge == kNoEdge || state_.Filters(held.vertex).empty()) continue;
    if (recording_) journal_.push_back(UndoOrder{held.edge, state_.Weight(held.edge)});
    state_.SetWeight(held.edge, 0);
  }
  return absl::OkStatus();
}

std::vector<VertexId> GeneralEngine::FindVertices(const FindCriteria& criteria) const {
  return FindOnGraph(graph_, state_, jobs_, criteria);
}

GeneralEngine::GeneralEngine(const GeneralEngine& other)
    : graph_(other.graph_),
      policy_(other.policy_),
      kind_(other.kind_),
      state_(graph_, other.state_),
      packing_(graph_, state_, policy_, other.packing_.workload()),
      traverser_(graph_, state_, policy_, packing_, kind_),
      indexes_(other.indexes_),
      remembers_use_(other.remembers_use_),
      settled_(other.settled_),
      packed_(other.packed_),
      search_(graph_, state_, policy_, packing_),
      nodes_up_(other.nodes_up_),
      jobs_(other.jobs_) {}

std::unique_ptr<GeneralEngine> GeneralEngine::Snapshot() const {
  return std::unique_ptr<GeneralEngine>(new GeneralEngine(*this));
}

}  // namespace fluxqueue::graph
