#include "libs/graph/general_engine.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/alternatives.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// A job without a duration holds what it holds for as long as Fluxion takes a graph to last.
constexpr int64_t kGraphDuration = int64_t{100} * 365 * 24 * 3600;

bool AsksForSatisfiability(MatchOperation operation) {
  return operation == MatchOperation::kAllocateWithSatisfiability ||
         operation == MatchOperation::kSatisfiability;
}

bool MayReserve(MatchOperation operation) {
  return operation == MatchOperation::kAllocateOrElseReserve ||
         operation == MatchOperation::kWithoutAllocatingFuture;
}

bool Holds(MatchOperation operation) {
  return operation == MatchOperation::kAllocate ||
         operation == MatchOperation::kAllocateWithSatisfiability ||
         operation == MatchOperation::kAllocateOrElseReserve;
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
      new GeneralEngine(std::move(graph), policy, std::move(filters), kind));
}

GeneralEngine::GeneralEngine(ResourceGraph graph,
                             MatchPolicy policy,
                             PruneFilters filters,
                             TraverserKind traverser)
    : graph_(std::move(graph)),
      policy_(policy),
      kind_(traverser),
      state_(graph_, std::move(filters)),
      traverser_(graph_, state_, policy_, kind_) {
  CountNodes();
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
                                                 const JobRequest& request) {
  if (operation != MatchOperation::kSatisfiability && jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  std::vector<JobRequest> split;
  Alternatives alternatives;
  if (kind_ == TraverserKind::kFlexible) {
    ASSIGN_OR_RETURN(auto variants, SplitAlternatives(request.resources));
    split.assign(variants.size(), request);
    for (size_t i = 0; i < variants.size(); ++i) {
      split[i].resources = std::move(variants[i]);
      alternatives.emplace_back(split[i], graph_, state_.filters(), kind_);
    }
  } else {
    alternatives.emplace_back(request, graph_, state_.filters(), kind_);
  }
  const int64_t duration = request.duration_s == 0 ? kGraphDuration : request.duration_s;
  MatchAnswer answer = Answer(operation, alternatives, duration);
  if (answer.holding.vertices.empty()) return answer;

  // What is only looked for is held and given back, as in Fluxion: `first` remembers it, by what
  // was free before.
  SetHolding(job, answer.holding);
  if (!Holds(operation)) SetHolding(job, std::nullopt);
  if (policy_.stop_on_first) {
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
                                  int64_t duration) {
  if (operation == MatchOperation::kSatisfiability) {
    return {CouldEver(alternatives, duration) ? MatchStatus::kMatched : MatchStatus::kUnsatisfiable,
            {}};
  }
  const bool enough =
      std::any_of(alternatives.begin(), alternatives.end(), [&](const ResolvedRequest& request) {
        return EnoughNodes(request, operation, duration);
      });
  if (!enough) {
    const bool ever = AsksForSatisfiability(operation);
    return {ever ? MatchStatus::kUnsatisfiable : MatchStatus::kBusy, {}};
  }
  Holding now = Place(alternatives, {0, duration, Window::Kind::kNow});
  if (!now.vertices.empty()) return {MatchStatus::kAllocated, std::move(now)};
  if (MayReserve(operation)) {
    Holding later = PlaceLater(alternatives, duration);
    if (!later.vertices.empty()) return {MatchStatus::kReserved, std::move(later)};
  }
  const bool ask = AsksForSatisfiability(operation) || MayReserve(operation);
  const bool ever = !ask || CouldEver(alternatives, duration);
  return {ever ? MatchStatus::kBusy : MatchStatus::kUnsatisfiable, {}};
}

// A quick look, before any traversal: are there as many nodes as are asked for?
bool GeneralEngine::EnoughNodes(const ResolvedRequest& request,
                                MatchOperation operation,
                                int64_t duration) const {
  const TypeId node = graph_.types().Find("node");
  const auto wanted = request.total.find(node);
  const int64_t nodes = wanted == request.total.end() ? 0 : wanted->second;
  if (nodes > nodes_up_) return false;
  if (!request.job.constrained) return true;
  const bool ever = AsksForSatisfiability(operation);
  const int64_t at = operation == MatchOperation::kAllocate ? 0 : kGraphDuration - 1;
  int64_t feasible = 0;
  for (const VertexId v : graph_.OfType(node)) {
    if (feasible >= nodes) break;
    const Vertex& vertex = graph_.vertex(v);
    const bool meets =
        request.job.constraint.Matches({vertex.name, vertex.rank, vertex.properties});
    if (meets && (ever || vertex.up) && state_.at(v).held.FreeDuring(at, duration) == 1) {
      ++feasible;
    }
  }
  return feasible >= nodes;
}

Holding GeneralEngine::Place(const Alternatives& alternatives, const Window& window) {
  for (const ResolvedRequest& request : alternatives) {
    if (!traverser_.Select(request, window)) continue;
    Traverser::Selection selection = traverser_.Collect(request, window);
    used_ = std::move(selection.used);
    return std::move(selection.holding);
  }
  return {};
}

// The times at which something ends or begins are tried in turn, those at which the whole graph
// has enough.
Holding GeneralEngine::PlaceLater(const Alternatives& alternatives, int64_t duration) {
  const GraphState::At& root = state_.at(graph_.root());
  if (root.filters.empty()) return {};
  const auto has_enough = [&](const ResolvedRequest& request, int64_t time) {
    for (const auto& [type, amount] : request.total) {
      const auto filter = std::find(root.filter_types.begin(), root.filter_types.end(), type);
      if (filter == root.filter_types.end()) continue;
      const Timeline& free = root.filters[static_cast<size_t>(filter - root.filter_types.begin())];
      if (amount > free.FreeDuring(time, duration)) return false;
    }
    return true;
  };
  for (auto time = root.filters.front().PointAfter(0); time.has_value();
       time = root.filters.front().PointAfter(*time)) {
    const bool enough =
        std::any_of(alternatives.begin(), alternatives.end(), [&](const ResolvedRequest& request) {
          return has_enough(request, *time);
        });
    if (!enough) continue;
    Holding holding = Place(alternatives, {*time, duration, Window::Kind::kLater});
    if (!holding.vertices.empty()) return holding;
  }
  return {};
}

bool GeneralEngine::CouldEver(const Alternatives& alternatives, int64_t duration) {
  const Window window{Timeline::kEnd - duration - 1, duration, Window::Kind::kEver};
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const ResolvedRequest& request) {
    return traverser_.Select(request, window);
  });
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
    state_.Release(job, found->second);
    undo.before = std::move(found->second);
    jobs_.erase(found);
  }
  if (holding.has_value()) {
    state_.Hold(job, *holding);
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
    rest.vertices.push_back(held);
    rest.vertices.back().exclusive = keeps;
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
  state_.GraphGrew();
  traverser_.GraphChanged();
  CountNodes();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobNumber>> GeneralEngine::RemoveSubgraph(std::string_view path) {
  const auto top = graph_.FindPath(path);
  if (!top.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  if (*top == graph_.root()) return InvalidArgument("\"{}\" is the root; make a new graph", path);
  if (recording_) journal_.push_back(UndoAll{Snapshot()});
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
  traverser_.GraphChanged();
  CountNodes();
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
  }
  if (holding.at_s < 0 || holding.duration_s < 1 ||
      holding.at_s > Timeline::kEnd - holding.duration_s) {
    return InvalidArgument(
        "job {}: from {} on for {} seconds is no time", job, holding.at_s, holding.duration_s);
  }
  Holding summed = holding;
  state_.SumUpBelow(&summed);
  SetHolding(job, std::move(summed));
  if (!policy_.stop_on_first) return absl::OkStatus();
  // In Fluxion what was restored is tried last, whatever is free of it.
  for (const HeldVertex& held : holding.vertices) {
    if (held.edge == kNoEdge || state_.at(held.vertex).filters.empty()) continue;
    const uint64_t before = state_.Reorder(held.edge, 0);
    state_.SetWeight(held.edge, 0);
    if (recording_) journal_.push_back(UndoOrder{held.edge, before});
  }
  return absl::OkStatus();
}

// What holds above a vertex holds for it too.
struct GeneralEngine::Above {
  bool down = false;
  bool allocated = false;
  bool reserved = false;
};

std::vector<VertexId> GeneralEngine::FindVertices(const FindCriteria& criteria) const {
  std::vector<VertexId> found;
  std::vector<bool> seen(graph_.vertices().size(), false);
  FindBelow(graph_.root(), {}, criteria, &seen, &found);
  return found;
}

bool GeneralEngine::FindBelow(VertexId v,
                              Above above,
                              const FindCriteria& criteria,
                              std::vector<bool>* seen,
                              std::vector<VertexId>* found) const {
  (*seen)[v] = true;
  const Vertex& vertex = graph_.vertex(v);
  const GraphState::At& at = state_.at(v);
  const Above here{above.down || !vertex.up,
                   above.allocated || !at.allocations.empty(),
                   above.reserved || !at.reservations.empty()};
  bool any = false;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment || (*seen)[edge.target]) continue;
    any = FindBelow(edge.target, here, criteria, seen, found) || any;
  }
  const FindSubject subject{.name = vertex.name,
                            .down = here.down,
                            .allocated = here.allocated,
                            .reserved = here.reserved,
                            .sums_up = !at.filters.empty(),
                            .properties = vertex.properties,
                            .allocations = at.allocations,
                            .reservations = at.reservations,
                            .passing = at.passing};
  if (!any && !criteria.Matches(subject)) return false;
  found->push_back(v);
  return true;
}

absl::Status GeneralEngine::SetUp(std::string_view path, bool up) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  ChangesVertex(*v);
  const Vertex& vertex = graph_.vertex(*v);
  if (vertex.up != up && vertex.type == graph_.types().Find("node")) nodes_up_ += up ? 1 : -1;
  graph_.SetUp(*v, up);
  return absl::OkStatus();
}

absl::Status GeneralEngine::SetProperty(std::string_view path, std::string key, std::string value) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  ChangesVertex(*v);
  graph_.SetProperty(*v, std::move(key), std::move(value));
  return absl::OkStatus();
}

GeneralEngine::GeneralEngine(const GeneralEngine& other)
    : graph_(other.graph_),
      policy_(other.policy_),
      kind_(other.kind_),
      state_(graph_, other.state_),
      traverser_(graph_, state_, policy_, kind_),
      nodes_up_(other.nodes_up_),
      jobs_(other.jobs_) {}

std::unique_ptr<GeneralEngine> GeneralEngine::Snapshot() const {
  return std::unique_ptr<GeneralEngine>(new GeneralEngine(*this));
}

void GeneralEngine::ChangesVertex(VertexId v) {
  state_.Touch(v);
  if (!recording_) return;
  const Vertex& vertex = graph_.vertex(v);
  journal_.push_back(UndoVertex{v, vertex.up, vertex.properties});
}

void GeneralEngine::Commit() {
  recording_ = false;
  journal_.clear();
}

void GeneralEngine::Rollback() {
  recording_ = false;
  std::vector<Undo> journal = std::move(journal_);
  journal_.clear();
  for (auto undo = journal.rbegin(); undo != journal.rend(); ++undo) {
    std::visit([this](auto& change) { TakeBack(change); }, *undo);
  }
}

void GeneralEngine::TakeBack(UndoJob& undo) {
  SetHolding(undo.job, std::move(undo.before));
}

void GeneralEngine::TakeBack(UndoOrder& undo) {
  state_.SetWeight(undo.edge, undo.weight);
}

void GeneralEngine::TakeBack(UndoVertex& undo) {
  graph_.SetUp(undo.vertex, undo.up);
  graph_.SetProperties(undo.vertex, std::move(undo.properties));
  state_.Touch(undo.vertex);
  CountNodes();
}

void GeneralEngine::TakeBack(UndoAll& undo) {
  graph_ = std::move(undo.before->graph_);
  state_.Take(std::move(undo.before->state_));
  jobs_ = std::move(undo.before->jobs_);
  nodes_up_ = undo.before->nodes_up_;
  traverser_.GraphChanged();
}

uint64_t GeneralEngine::StateFingerprint() const {
  Fnv hash;
  hash.Add(state_.Fingerprint());
  hash.Add(state_.OrderFingerprint());
  for (const Vertex& vertex : graph_.vertices()) {
    hash.Add(static_cast<uint64_t>(vertex.up) * 2 + static_cast<uint64_t>(vertex.gone));
    for (const auto& [key, value] : vertex.properties) {
      hash.Add(key);
      hash.Add(value);
    }
  }
  return hash.value();
}

}  // namespace fluxqueue::graph
