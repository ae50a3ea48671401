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

void GeneralEngine::CountNodes() {
  const auto nodes = graph_.OfType(graph_.types().Find("node"));
  nodes_up_ =
      std::count_if(nodes.begin(), nodes.end(), [this](VertexId v) { return graph_.vertex(v).up; });
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

absl::StatusOr<MatchAnswer> GeneralEngine::Reserve(JobNumber job,
                                                   const JobRequest& request,
                                                   const When& at) {
  if (jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  Settle();
  const Prepared& prepared = Prepare(request);
  const When when{at.now_s, at.duration_s == 0 ? kForever : at.duration_s};
  MatchAnswer answer;
  if (!HasEnough(prepared.resolved, when)) return answer;
  answer.holding = Place({&prepared}, {when.now_s, when.duration_s, Window::Kind::kLater});
  if (answer.holding.vertices.empty()) return answer;
  answer.status = MatchStatus::kReserved;
  SetHolding(job, answer.holding);
  return answer;
}

absl::StatusOr<MatchAnswer> GeneralEngine::ReserveFirst(JobNumber job,
                                                        const JobRequest& request,
                                                        const When& after,
                                                        int64_t before) {
  if (jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  Settle();
  MatchAnswer answer;
  if (!FindFirst(Prepare(request), after, before, &answer.holding).has_value()) return answer;
  answer.status = MatchStatus::kReserved;
  SetHolding(job, answer.holding);
  return answer;
}

std::optional<int64_t> GeneralEngine::FirstTime(const JobRequest& request,
                                                const When& after,
                                                int64_t before) {
  Settle();
  return FindFirst(Prepare(request), after, before, nullptr);
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
  return traverser_.Collect(request.resolved, window);
}

bool GeneralEngine::Fits(const Prepared& request, const Window& window) {
  if (request.plan.has_value()) {
    const auto answer = search_.Search(*request.plan, window, nullptr);
    if (answer != IndexedSearch::Answer::kAskAWalk) return answer == IndexedSearch::Answer::kFound;
  }
  return traverser_.Select(request.resolved, window);
}

// A quick look at what the whole graph has then.
bool GeneralEngine::HasEnough(const ResolvedRequest& request, const When& at) const {
  if (state_.IsOverheld()) return true;
  const auto sums = SumsOf(request);
  return std::all_of(sums.begin(), sums.end(), [&at](const Sum& sum) {
    return sum.free->FreeDuring(at.now_s, at.duration_s) >= sum.needed;
  });
}

// What one sum has from some time on another may not have yet: each is asked until all agree.
std::optional<int64_t> GeneralEngine::EnoughFrom(const ResolvedRequest& request,
                                                 const When& at) const {
  if (state_.IsOverheld()) return at.now_s;
  const auto sums = SumsOf(request);
  int64_t time = at.now_s;
  for (size_t agree = 0, i = 0; agree < sums.size(); ++i) {
    const Sum& sum = sums[i % sums.size()];
    const auto enough = sum.free->FirstFrom(time, at.duration_s, sum.needed);
    if (!enough.has_value()) return std::nullopt;
    agree = *enough == time ? agree + 1 : 1;
    time = *enough;
  }
  return time;
}

// What the root sums up of what the request asks for.
std::vector<GeneralEngine::Sum> GeneralEngine::SumsOf(const ResolvedRequest& request) const {
  const std::span<const TypeId> types = state_.FilterTypes(graph_.root());
  const std::span<const Timeline> filters = state_.Filters(graph_.root());
  std::vector<Sum> sums;
  for (const auto& [type, amount] : request.total) {
    const auto filter = std::find(types.begin(), types.end(), type);
    if (filter == types.end()) continue;
    sums.push_back({&filters[static_cast<size_t>(filter - types.begin())], amount});
  }
  return sums;
}

std::optional<int64_t> GeneralEngine::PointAfter(int64_t time) const {
  return state_.JobsAt(graph_.root()).PointAfter(time);
}

// The times at which something ends or begins are tried in turn, those at which the whole graph
// has enough.
Holding GeneralEngine::PlaceLater(const Alternatives& alternatives, const When& when) {
  for (auto time = PointAfter(when.now_s); time.has_value(); time = PointAfter(*time)) {
    std::optional<int64_t> enough;
    for (const Prepared* request : alternatives) {
      const auto from = EnoughFrom(request->resolved, {*time, when.duration_s});
      if (from.has_value()) enough = std::min(*from, enough.value_or(*from));
    }
    if (!enough.has_value()) break;
    time = enough;
    Holding holding = Place(alternatives, {*time, when.duration_s, Window::Kind::kLater});
    if (!holding.vertices.empty()) return holding;
  }
  return {};
}

bool GeneralEngine::CouldEver(const Alternatives& alternatives, int64_t duration) {
  const Window window{Timeline::kEnd - duration - 1, duration, Window::Kind::kEver};
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const Prepared* request) {
    return Fits(*request, window);
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

absl::Status GeneralEngine::AddSubgraph(const ResourceGraph& part) {
  RETURN_IF_ERROR(part.Check());
  std::unique_ptr<GeneralEngine> before = recording_ ? Snapshot() : nullptr;
  RETURN_IF_ERROR(graph_.Merge(part));
  if (recording_) journal_.push_back(UndoAll{std::move(before)});
  GraphGrew();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobNumber>> GeneralEngine::RemoveSubgraph(std::string_view path) {
  const auto top = graph_.FindPath(path);
  if (!top.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  if (*top == graph_.root()) return InvalidArgument("\"{}\" is the root; make a new graph", path);
  NoteAll();
  const std::vector<VertexId> subtree = graph_.SubtreeOf(*top);
  const std::set<VertexId> gone(subtree.begin(), subtree.end());
  std::vector<JobNumber> losers;
  for (const auto& [job, holding] : jobs_) {
    const bool loses = std::any_of(
        holding.vertices.begin(), holding.vertices.end(), [&gone](const HeldVertex& held) {
          return gone.contains(held.vertex);
        });
    if (loses) losers.push_back(job);
  }
  for (const JobNumber job : losers) Reduce(job, gone, /*leaving=*/true);
  state_.GraphShrinks(*top);
  const bool had_shared = graph_.has_shared();
  graph_.RemoveSubtree(*top);
  state_.GraphShrank(had_shared);
  GraphChanged();
  return losers;
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

absl::StatusOr<VertexId> GeneralEngine::AddVertex(Vertex vertex, VertexId parent) {
  NoteAll();
  ASSIGN_OR_RETURN(const VertexId added, graph_.AddVertex(std::move(vertex)));
  graph_.AddEdge(parent, added, ResourceGraph::kContainment);
  GraphGrew();
  return added;
}

void GeneralEngine::GraphGrew() {
  if (state_.GraphGrew()) {
    for (auto& [job, holding] : jobs_) state_.SumUpBelow(&holding);
  }
  GraphChanged();
}

bool GeneralEngine::HasTwins(VertexId v) const {
  const auto beside = [&](VertexId parent) {
    const auto& out = graph_.vertex(parent).out;
    return std::any_of(out.begin(), out.end(), [&](EdgeId e) {
      const VertexId other = graph_.edge(e).target;
      return other != v && graph_.vertex(other).type == graph_.vertex(v).type;
    });
  };
  const auto parents = graph_.ParentsOf(v);
  return std::any_of(parents.begin(), parents.end(), beside);
}

void GeneralEngine::Resize(VertexId v, int64_t size) {
  NoteAll();
  const int64_t more = size - graph_.vertex(v).size;
  graph_.SetSize(v, size);
  state_.Resize(v, more);
  // Several of one type are searched by an index when they are of one size.
  if (HasTwins(v)) GraphChanged();
  NodesChanged();
}

void GeneralEngine::SetTaints(VertexId v, std::vector<Taint> taints) {
  const std::span<const Taint> before = graph_.TaintsOf(v);
  if (std::equal(before.begin(), before.end(), taints.begin(), taints.end())) return;
  NoteAll();
  graph_.SetTaints(v, std::move(taints));
  state_.Touch(v);
}

void GeneralEngine::SetProperties(VertexId v, Labels properties) {
  if (graph_.vertex(v).properties == properties) return;
  Note(v);
  graph_.SetProperties(v, std::move(properties));
  state_.Touch(v);
  NodesChanged();
}

void GeneralEngine::SetUp(VertexId v, bool up) {
  const Vertex& vertex = graph_.vertex(v);
  if (vertex.up == up) return;
  Note(v);
  if (vertex.type == graph_.types().Find("node")) nodes_up_ += up ? 1 : -1;
  graph_.SetUp(v, up);
  state_.Touch(v);
}

void GeneralEngine::SetTryOrder(VertexId v, uint64_t weight) {
  for (const EdgeId e : graph_.vertex(v).in) {
    if (graph_.edge(e).subsystem != ResourceGraph::kContainment) continue;
    if (recording_) journal_.push_back(UndoOrder{e, state_.Weight(e)});
    state_.SetWeight(e, weight);
  }
}

absl::Status GeneralEngine::SetPolicy(std::string_view policy) {
  ASSIGN_OR_RETURN(const MatchPolicy parsed, MatchPolicy::Parse(policy));
  NoteAll();
  policy_ = parsed;
  GraphChanged();
  return absl::OkStatus();
}

void GeneralEngine::SetWorkload(Workload workload) {
  for (WorkloadShape& shape : workload) shape.count = QuantisedCount(shape.count);
  if (workload == packing_.workload()) return;
  if (recording_) journal_.push_back(UndoWorkload{packing_.workload()});
  packing_.SetWorkload(std::move(workload));
  WorkloadChanged();
}

void GeneralEngine::NodesChanged() {
  if (!packing_.workload().empty()) WorkloadChanged();
}

void GeneralEngine::WorkloadChanged() {
  if (policy_.order == MatchPolicy::Order::kPacked) packed_ = false;
}

absl::Status GeneralEngine::SetUp(std::string_view path, bool up) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  SetUp(*v, up);
  return absl::OkStatus();
}

absl::Status GeneralEngine::SetProperty(std::string_view path, std::string key, std::string value) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  Note(*v);
  graph_.SetProperty(*v, std::move(key), std::move(value));
  state_.Touch(*v);
  NodesChanged();
  return absl::OkStatus();
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
