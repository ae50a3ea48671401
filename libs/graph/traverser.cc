#include "libs/graph/traverser.h"

#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/candidate_choice.h"
#include "libs/graph/slot_parts.h"

namespace fluxqueue::graph {
namespace {

constexpr uint32_t kNoPlace = UINT32_MAX;

}  // namespace

Traverser::Traverser(const ResourceGraph& graph,
                     const GraphState& state,
                     const MatchPolicy& policy,
                     const Packing& packing,
                     TraverserKind kind)
    : graph_(graph),
      state_(state),
      policy_(policy),
      packing_(packing),
      kind_(kind),
      pruner_(graph, state, kind) {
  GraphChanged();
}

void Traverser::GraphChanged() {
  node_type_ = graph_.types().Find("node");
  pruner_.GraphChanged();
  marks_.resize(graph_.edges().size());
  cache_.Clear();
  last_table_ = {};
  node_places_.assign(graph_.vertices().size(), kNoPlace);
  nodes_ = 0;
  for (const VertexId v : graph_.OfType(node_type_)) {
    node_places_[v] = static_cast<uint32_t>(nodes_++);
  }
  remembered_.assign(nodes_, {});
}

bool Traverser::Select(const ResolvedRequest& request, const Window& window) {
  request_ = &request;
  window_ = window;
  pruner_.Begin(request.job, window);
  ++walk_;
  node_score_ = 0;
  shared_seen_.clear();
  const VertexId root = graph_.root();
  bool exclusive = false;
  Candidates found;
  if (!Visit(root, request.levels, true, &exclusive, &found)) return false;
  found.Of(graph_.vertex(root).type).Add({found.score, found.available, {}});
  const uint64_t available = found.available;
  if (!TakeAtRoot(policy_, request.levels, &found)) return false;
  int64_t amount = 1;
  for (const RequestLevel& level : request.levels) {
    if (level.type != graph_.vertex(root).type) continue;
    amount = static_cast<int64_t>(level.request->count.Best(available));
    if (amount == 0) return false;
  }
  for (const auto& [type, list] : found.lists) {
    if (list.qualified() == 0) return false;
  }
  MarkTaken(found, true);
  root_mark_ = {walk_, amount, exclusive};
  return true;
}

Traverser::Fit Traverser::Test(VertexId v, const Levels& levels, bool pristine) const {
  if (kind_ == TraverserKind::kFlexible) return TestFlexibly(v, levels, pristine);
  const TypeId type = graph_.vertex(v).type;
  const RequestLevel* matched = nullptr;
  const RequestLevel* slot = nullptr;
  bool any = false;
  for (const RequestLevel& level : levels) {
    const bool same = level.type == type;
    if (!same && !level.is_slot()) continue;
    // Two of one type beside each other cannot be told apart.
    if (any) return {};
    any = true;
    if (level.is_slot()) {
      slot = &level;
      continue;
    }
    matched = &level;
    for (const RequestLevel& below : level.with) {
      if (below.is_slot()) slot = &below;
    }
  }
  if (slot != nullptr && HasChildrenFor(v, *slot)) return {Kind::kSlot, &slot->with, slot};
  if (matched != nullptr) return {Kind::kResource, &matched->with, nullptr};
  return {pristine ? Kind::kPassing : Kind::kNone, &levels, nullptr};
}

Traverser::Fit Traverser::TestFlexibly(VertexId v, const Levels& levels, bool pristine) const {
  const TypeId type = graph_.vertex(v).type;
  const RequestLevel* matched = nullptr;
  const Levels* slots = nullptr;
  const RequestLevel* last_slot = nullptr;
  for (const RequestLevel& level : levels) {
    if (level.type != type && !level.is_slot()) continue;
    if (matched != nullptr) return {};
    if (level.is_slot()) {
      slots = &levels;
      last_slot = &level;
      continue;
    }
    if (slots != nullptr) return {};
    matched = &level;
    for (const RequestLevel& below : level.with) {
      if (!below.is_slot()) continue;
      slots = &level.with;
      last_slot = &below;
    }
  }
  const Kind otherwise = pristine ? Kind::kPassing : Kind::kNone;
  if (slots != nullptr) {
    const bool fits = std::any_of(slots->begin(), slots->end(), [&](const RequestLevel& slot) {
      return HasChildrenFor(v, slot);
    });
    return fits ? Fit{Kind::kSlot, slots, last_slot} : Fit{otherwise, &levels, nullptr};
  }
  if (matched != nullptr) return {Kind::kResource, &matched->with, nullptr};
  return {otherwise, &levels, nullptr};
}

bool Traverser::HasChildrenFor(VertexId v, const RequestLevel& slot) const {
  const auto& out = graph_.vertex(v).out;
  return std::all_of(slot.with.begin(), slot.with.end(), [&](const RequestLevel& part) {
    return std::any_of(out.begin(), out.end(), [&](EdgeId e) {
      return graph_.vertex(graph_.edge(e).target).type == part.type;
    });
  });
}

bool Traverser::Visit(
    VertexId v, const Levels& levels, bool pristine, bool* exclusive, Candidates* to_parent) {
  const Vertex& vertex = graph_.vertex(v);
  const bool exclusive_above = *exclusive;
  const bool exclusive_here =
      exclusive_above || std::any_of(levels.begin(), levels.end(), [&](const RequestLevel& level) {
        return level.type == vertex.type && level.request->exclusivity == Exclusivity::kExclusive;
      });
  const Fit fit = Test(v, levels, pristine);
  if (fit.kind == Kind::kNone || pruner_.Prune(v, levels, exclusive_here)) return false;
  const int64_t score_before = node_score_;
  if (vertex.type == node_type_) node_score_ += NodeScore(policy_, vertex);
  if (graph_.IsShared(v)) shared_seen_.push_back(v);
  // What this vertex finds for itself does not keep its siblings from finding it too.
  const bool named = fit.kind != Kind::kPassing;
  std::vector<VertexId> shared_before;
  if (named) shared_before.swap(shared_seen_);
  Candidates found;
  if (fit.kind == Kind::kSlot) {
    SplitIntoSlots(v, fit, exclusive_here, &found);
  } else {
    // A vertex held exclusively does not own what others contain too.
    const bool pristine_below = !named || request_->job.levels_may_be_left_out;
    Explore(v, *fit.next, {pristine_below, exclusive_here, exclusive_above}, &found);
  }
  if (named) shared_before.swap(shared_seen_);
  *exclusive = exclusive_here;
  node_score_ = score_before;
  if (!FinishVertex(v, levels, &found)) return false;
  if (found.settled) {
    // As in Fluxion the way to what was taken is not marked where the request does not name it: of
    // `rack → slot → core` nothing is held then, and it never matches.
    MarkTaken(found, request_->job.levels_may_be_left_out);
  } else {
    to_parent->Append(found);
  }
  to_parent->available =
      static_cast<uint64_t>(state_.FreeDuring(v, window_.at_s, window_.duration_s));
  to_parent->score = found.score;
  return true;
}

bool Traverser::MayRemember(VertexId v, const Levels& levels) const {
  return node_places_[v] != kNoPlace && !remembering_ && kind_ == TraverserKind::kSimple &&
         !levels.empty() && window_.kind != Window::Kind::kLater && node_score_ == 0 &&
         !graph_.has_shared() && !request_->job.shape.empty();
}

VisitCache::Outcomes& Traverser::Table(const Levels& levels, bool pristine, bool exclusive) {
  const uint32_t list = levels.front().list;
  const bool same = last_table_.walk == walk_ && last_table_.list == list &&
                    last_table_.pristine == pristine && last_table_.exclusive == exclusive;
  if (!same) {
    VisitCache::Outcomes& outcomes = cache_.For({request_->job.shape,
                                                 list,
                                                 pristine,
                                                 exclusive,
                                                 window_.at_s,
                                                 window_.duration_s,
                                                 window_.kind == Window::Kind::kEver},
                                                nodes_);
    last_table_ = {walk_, list, pristine, exclusive, &outcomes};
  }
  return *last_table_.outcomes;
}

bool Traverser::VisitRemembered(
    VertexId v, const Levels& levels, bool pristine, bool* exclusive, Candidates* to_parent) {
  const uint32_t place = node_places_[v];
  VisitCache::Outcome& outcome = Table(levels, pristine, *exclusive)[place];
  if (outcome.version == state_.Version(v)) {
    if (!outcome.fits) return false;
    remembered_[place] = {walk_, &levels, pristine, *exclusive};
  } else {
    Candidates found;
    bool exclusive_here = *exclusive;
    remembering_ = true;
    outcome.fits = Visit(v, levels, pristine, &exclusive_here, &found);
    remembering_ = false;
    outcome.version = state_.Version(v);
    outcome.exclusive = exclusive_here;
    outcome.score = found.score;
    outcome.available = found.available;
    outcome.found = found.lists.empty() ? nullptr : std::make_unique<Candidates>(std::move(found));
    if (!outcome.fits) return false;
  }
  if (outcome.found != nullptr) to_parent->Append(*outcome.found);
  to_parent->score = outcome.score;
  to_parent->available = outcome.available;
  *exclusive = outcome.exclusive;
  return true;
}

void Traverser::MarkRemembered(VertexId v) {
  const uint32_t place = node_places_[v];
  if (place == kNoPlace || remembered_[place].walk != walk_) return;
  const Remembered& visit = remembered_[place];
  remembering_ = true;
  Candidates found;
  bool exclusive = visit.exclusive;
  Visit(v, *visit.levels, visit.pristine, &exclusive, &found);
  remembering_ = false;
}

// Only what several vertices contain can be met twice.
bool Traverser::WasSeen(VertexId v) const {
  return graph_.IsShared(v) &&
         std::find(shared_seen_.begin(), shared_seen_.end(), v) != shared_seen_.end();
}

bool Traverser::VisitChild(EdgeId e,
                           const Levels& levels,
                           const Descent& descent,
                           Candidates* found) {
  const Edge& edge = graph_.edge(e);
  if (edge.subsystem != ResourceGraph::kContainment || WasSeen(edge.target)) return false;
  bool exclusive = graph_.IsShared(edge.target) ? descent.exclusive_shared : descent.exclusive;
  const bool fits = MayRemember(edge.target, levels)
                        ? VisitRemembered(edge.target, levels, descent.pristine, &exclusive, found)
                        : Visit(edge.target, levels, descent.pristine, &exclusive, found);
  if (!fits) return false;
  if (graph_.vertex(edge.target).divisible) return AddShares(e, levels, descent, found);
  const Vertex& child = graph_.vertex(edge.target);
  found->Of(child.type)
      .Add({found->score, found->available, {{e, found->available, exclusive}}, child.id});
  return true;
}

bool Traverser::AddShares(EdgeId e,
                          const Levels& levels,
                          const Descent& descent,
                          Candidates* found) const {
  const Vertex& vertex = graph_.vertex(graph_.edge(e).target);
  const TypeId type = vertex.type;
  const uint64_t available = found->available;
  const auto level = std::find_if(
      levels.begin(), levels.end(), [type](const RequestLevel& one) { return one.type == type; });
  if (level == levels.end()) return false;
  const CountRange& count = level->request->count;
  if (count.min > static_cast<uint64_t>(vertex.size) && count.min > LargestBeside(e)) {
    // So many whole ones.
    if (available < static_cast<uint64_t>(vertex.size)) return false;
    found->Of(type).Add({found->score, available, {{e, available, descent.exclusive}}, vertex.id});
    return true;
  }
  const uint64_t share = count.Best(available);
  if (share == 0) return false;
  for (uint64_t i = 0; i < std::min(available / share, descent.shares); ++i) {
    found->Of(type).Add({found->score, share, {{e, share, descent.exclusive, true}}, vertex.id});
  }
  return true;
}

// The size of the largest vertex of the type that the edge leads to, among those that its source
// contains.
uint64_t Traverser::LargestBeside(EdgeId e) const {
  const Edge& edge = graph_.edge(e);
  int64_t largest = 0;
  for (const EdgeId other : graph_.vertex(edge.source).out) {
    const Vertex& vertex = graph_.vertex(graph_.edge(other).target);
    const bool beside = graph_.edge(other).subsystem == ResourceGraph::kContainment &&
                        vertex.type == graph_.vertex(edge.target).type;
    if (beside) largest = std::max(largest, vertex.size);
  }
  return static_cast<uint64_t>(largest);
}

bool Traverser::Explore(VertexId v,
                        const Levels& levels,
                        const Descent& descent,
                        Candidates* found) {
  if (policy_.stop_on_first) return ExploreInOrder(v, levels, descent, found);
  bool any = false;
  for (const EdgeId e : graph_.vertex(v).out) {
    any = VisitChild(e, levels, descent, found) || any;
  }
  return any;
}

bool Traverser::ExploreInOrder(VertexId v,
                               const Levels& levels,
                               const Descent& descent,
                               Candidates* found) {
  struct Progress {
    const RequestLevel* level;
    ShareTally tally;
    uint64_t found_before = 0;
  };
  std::vector<Progress> wanted;
  for (const RequestLevel& level : levels) {
    wanted.push_back({&level, ShareTally(level.request->count.Most())});
  }
  const auto enough = [&descent](const Progress& progress) {
    return progress.tally.shares() >= descent.shares;
  };
  bool any = false;
  std::set<TypeId> satisfied;
  state_.VisitChildren(v, [&](EdgeId e) {
    if (satisfied.contains(graph_.vertex(graph_.edge(e).target).type)) return false;
    if (!VisitChild(e, levels, descent, found)) return false;
    any = true;
    for (Progress& progress : wanted) {
      const CandidateList* list = found->Find(progress.level->key());
      const uint64_t total = list == nullptr ? 0 : list->found();
      // What one child brings is not divided, but for what is divisible.
      uint64_t more = total - std::min(total, progress.found_before);
      const uint64_t share = progress.level->request->count.min;
      const bool divisible = graph_.vertex(graph_.edge(e).target).divisible;
      for (; divisible && more > share; more -= share) progress.tally.Add(share);
      if (more > 0) progress.tally.Add(more);
      progress.found_before = total;
      if (enough(progress)) satisfied.insert(progress.level->type);
    }
    return std::all_of(wanted.begin(), wanted.end(), enough);
  });
  return any;
}

void Traverser::SplitIntoSlots(VertexId v, const Fit& fit, bool exclusive, Candidates* found) {
  const bool flexible = kind_ == TraverserKind::kFlexible;
  const uint64_t most = fit.slot->request->count.Most();
  Levels all_parts;
  if (flexible) all_parts = PartsOf(*fit.next);
  // Not a copy: what is remembered of a walk refers to the request's own levels.
  const Levels& wanted = flexible ? all_parts : fit.slot->with;
  Candidates parts;
  if (!Explore(v, wanted, {false, true, true, most}, &parts)) return;
  OrderSlotParts(policy_, &parts);
  std::vector<Candidate> slots =
      flexible ? MakeSlotsOf(*fit.next, most, parts) : MakeSlots(*fit.slot, parts);
  if (policy_.order == MatchPolicy::Order::kPacked) ScoreByCost(v, exclusive, &slots);
  for (Candidate& slot : slots) found->Of(kSlotKey).Add(std::move(slot));
}

void Traverser::ScoreByCost(VertexId v, bool whole, std::vector<Candidate>* slots) const {
  Packing::Filling filling = packing_.Fill(v, window_);
  for (Candidate& slot : *slots) {
    for (const TakenEdge& taken : slot.edges) {
      filling.Take(graph_.edge(taken.edge).target, static_cast<int64_t>(taken.amount));
    }
    if (whole) filling.TakeAll();
    slot.score = filling.FinishSlot();
    slot.id = graph_.vertex(v).id;
  }
}

int64_t Traverser::PackedScore(VertexId v, const Candidates& found) const {
  std::vector<int64_t> scores;
  for (const auto& [type, list] : found.lists) {
    for (size_t i = 0; i < list.taken(); ++i) scores.push_back(list.all()[i].score);
  }
  if (!scores.empty()) return MeanScore(scores);
  return packing_.IsGpu(v) ? packing_.GpuScore(v, window_)
                           : VertexScore(policy_, graph_.vertex(v), node_score_);
}

bool Traverser::FinishVertex(VertexId v, const Levels& levels, Candidates* found) const {
  const Vertex& vertex = graph_.vertex(v);
  for (const RequestLevel& level : levels) {
    if (level.type != vertex.type) continue;
    for (const RequestLevel& below : level.with) {
      CandidateList& list = found->Of(below.key());
      const uint64_t count = below.request->count.Best(list.qualified());
      if (count == 0) {
        found->score = kUnmet;
        return false;
      }
      if (TakeBest(policy_, count, &list)) found->settled = true;
    }
  }
  found->score = policy_.order == MatchPolicy::Order::kPacked
                     ? PackedScore(v, *found)
                     : VertexScore(policy_, vertex, node_score_);
  return true;
}

EdgeId Traverser::ParentEdge(VertexId v) const {
  for (const EdgeId e : graph_.vertex(v).in) {
    if (graph_.edge(e).subsystem == ResourceGraph::kContainment) return e;
  }
  return kNoEdge;
}

void Traverser::MarkTaken(const Candidates& found, bool up_to_root) {
  for (const auto& [type, list] : found.lists) {
    for (size_t i = 0; i < list.taken(); ++i) {
      for (const TakenEdge& taken : list.all()[i].edges) {
        Mark& mark = marks_[taken.edge];
        const int64_t more = taken.share && mark.walk == walk_ ? mark.amount : 0;
        mark = {walk_, more + static_cast<int64_t>(taken.amount), taken.exclusive};
        if (up_to_root) MarkAncestors(found, taken.edge);
      }
    }
  }
}

// Levels that the request does not name are on the way to what is taken.
void Traverser::MarkAncestors(const Candidates& found, EdgeId edge) {
  VertexId v = graph_.edge(edge).source;
  while (true) {
    const EdgeId up = ParentEdge(v);
    if (up == kNoEdge || marks_[up].walk == walk_) return;
    const CandidateList* list = found.Find(graph_.vertex(v).type);
    if (list != nullptr && list->taken() == 0) {
      marks_[up] = {walk_, graph_.vertex(v).size, false};
    }
    v = graph_.edge(up).source;
  }
}

// The way down along the marks of the last Select.
struct Traverser::Collection {
  std::set<TypeId> exclusive_types;
  Selection selection;
  std::map<VertexId, bool> shared;  // met already, and whether something of it is held
};

Selection Traverser::Collect(const ResolvedRequest& request, const Window& window) {
  CHECK(root_mark_.walk == walk_);
  Collection collection;
  collection.selection.holding.at_s = window.at_s;
  collection.selection.holding.duration_s = window.duration_s;
  collection.selection.holding.reserved = window.kind == Window::Kind::kLater;
  collection.exclusive_types = request.exclusive;
  if (policy_.node_exclusive) collection.exclusive_types.insert(node_type_);
  CollectBelow(
      {graph_.root(), kNoEdge, root_mark_.amount, root_mark_.exclusive}, false, &collection);
  return std::move(collection.selection);
}

bool Traverser::CollectBelow(const HeldVertex& here, bool forced_above, Collection* collection) {
  MarkRemembered(here.vertex);
  const Vertex& vertex = graph_.vertex(here.vertex);
  // What is held exclusively by its type is held with all that it alone contains.
  const bool forced = forced_above || collection->exclusive_types.contains(vertex.type);
  const bool exclusive = here.exclusive || forced;
  bool held = exclusive;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    const Mark& mark = marks_[e];
    const bool shared = graph_.IsShared(edge.target);
    const bool all = shared ? forced_above : forced;
    if (mark.walk != walk_ && !all) continue;
    if (const auto met = collection->shared.find(edge.target); met != collection->shared.end()) {
      // It counts once, and is below this vertex all the same.
      held = held || met->second;
      continue;
    }
    const int64_t amount = all ? graph_.vertex(edge.target).size : mark.amount;
    const bool held_below =
        CollectBelow({edge.target, e, amount, all || mark.exclusive}, all, collection);
    if (shared) collection->shared[edge.target] = held_below;
    if (held_below) collection->selection.used.push_back(e);
    held = held || held_below;
  }
  if (held) {
    collection->selection.holding.vertices.push_back(
        {here.vertex, here.edge, here.amount, exclusive});
  }
  return held;
}

}  // namespace fluxqueue::graph
