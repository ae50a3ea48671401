#include "libs/graph/traverser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "libs/base/check.h"
#include "libs/graph/slot_choice.h"

namespace fluxqueue::graph {
namespace {

// Slots among the candidates; no type has this number.
constexpr TypeId kSlotKey = NameTable::kUnknown - 1;
// A node's id counts as this many ids inside a node.
constexpr int64_t kNodeWeight = 10'000;
constexpr uint32_t kNoPlace = UINT32_MAX;
constexpr int64_t kWorstPerformance = 9'999;

TypeId KeyOf(const RequestLevel& level) {
  return level.is_slot() ? kSlotKey : level.type;
}

bool Higher(const Candidate& a, const Candidate& b) {
  return a.score > b.score;
}
bool Lower(const Candidate& a, const Candidate& b) {
  return a.score < b.score;
}

// How many shares of at least `per_share` whole vertices make up, taken as they come.
class ShareTally {
 public:
  explicit ShareTally(uint32_t per_share) : per_share_(per_share) {}

  void Add(uint64_t amount) {
    partial_ += amount;
    if (partial_ < per_share_) return;
    ++shares_;
    partial_ = 0;
  }
  uint64_t shares() const { return shares_; }

 private:
  uint32_t per_share_;
  uint64_t partial_ = 0;
  uint64_t shares_ = 0;
};

// Runs of adjacent scores, and which of them each score is in.
class ScoreRuns {
 public:
  void Add(const CandidateList& list) {
    for (const Candidate& candidate : list.all()) scores_.insert(candidate.score);
  }
  // The first score of the run.
  int64_t RunOf(int64_t score) const {
    auto at = scores_.find(score);
    while (at != scores_.begin() && *std::prev(at) == *at - 1) --at;
    return *at;
  }

 private:
  std::set<int64_t> scores_;
};

int64_t PerformanceClass(const Vertex& vertex) {
  for (const auto& [key, value] : vertex.properties) {
    if (key != "perf_class") continue;
    int64_t performance = 0;
    const auto result = std::from_chars(value.data(), value.data() + value.size(), performance);
    const bool good = result.ec == std::errc() && performance >= 0;
    return good ? std::min(performance, kWorstPerformance) : kWorstPerformance;
  }
  return kWorstPerformance;
}

// More than any graph has, and far from overflow.
constexpr int64_t kMaxNeed = int64_t{1} << 60;

int64_t Times(int64_t count, int64_t amount) {
  int64_t product = 0;
  if (__builtin_mul_overflow(count, amount, &product)) return kMaxNeed;
  return std::min(product, kMaxNeed);
}

// Adds what `level` needs to what all of its siblings need: the least that can be meant.
void SumUp(const RequestLevel& level, const PruneFilters& filters, std::map<TypeId, int64_t>* sum) {
  const int64_t count = level.request->count.min;
  const auto add = [sum](TypeId type, int64_t amount) {
    int64_t& total = (*sum)[type];
    total = std::min(total + amount, kMaxNeed);
  };
  if (filters.Tracks(level.type)) add(level.type, count);
  for (const auto& [type, amount] : level.below) add(type, Times(count, amount));
}

// The same for a slot whose sibling slots are alternatives.
void TakeLeast(const RequestLevel& slot, std::map<TypeId, int64_t>* sum) {
  for (const auto& [type, amount] : slot.below) {
    const int64_t needed = Times(slot.request->count.min, amount);
    const auto [entry, added] = sum->emplace(type, needed);
    if (!added) entry->second = std::min(entry->second, needed);
  }
  for (auto& [type, needed] : *sum) {
    if (!slot.below.contains(type)) needed = std::min<int64_t>(needed, 0);
  }
}

class Resolver {
 public:
  Resolver(const ResourceGraph& graph, const PruneFilters& filters, TraverserKind traverser)
      : graph_(graph), filters_(filters), traverser_(traverser) {}

  std::vector<RequestLevel> Resolve(const std::vector<ResourceRequest>& requests,
                                    std::map<TypeId, int64_t>* sum,
                                    std::set<TypeId>* exclusive) {
    std::vector<RequestLevel> levels;
    const uint32_t list = lists_++;
    for (const ResourceRequest& request : requests) {
      RequestLevel level;
      level.request = &request;
      level.list = list;
      level.type = graph_.types().Find(request.type);
      if (request.exclusivity == Exclusivity::kExclusive) exclusive->insert(level.type);
      level.with = Resolve(request.with, &level.below, exclusive);
      if (traverser_ == TraverserKind::kFlexible && level.is_slot()) {
        TakeLeast(level, sum);
      } else {
        SumUp(level, filters_, sum);
      }
      levels.push_back(std::move(level));
    }
    return levels;
  }

 private:
  const ResourceGraph& graph_;
  const PruneFilters& filters_;
  TraverserKind traverser_;
  uint32_t lists_ = 0;
};

}  // namespace

ResolvedRequest::ResolvedRequest(const JobRequest& request,
                                 const ResourceGraph& graph,
                                 const PruneFilters& filters,
                                 TraverserKind traverser)
    : job(request) {
  levels = Resolver(graph, filters, traverser).Resolve(request.resources, &total, &exclusive);
}

Traverser::Traverser(const ResourceGraph& graph,
                     const GraphState& state,
                     MatchPolicy policy,
                     TraverserKind kind)
    : graph_(graph), state_(state), policy_(policy), kind_(kind) {
  GraphChanged();
}

void Traverser::GraphChanged() {
  node_type_ = graph_.types().Find("node");
  storage_node_type_ = graph_.types().Find("storage_node");
  seen_.resize(graph_.vertices().size(), 0);
  kept_.resize(graph_.vertices().size(), 0);
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
  ++walk_;
  node_score_ = 0;
  shared_seen_.clear();
  const VertexId root = graph_.root();
  bool exclusive = false;
  Candidates found;
  if (!Visit(root, request.levels, true, &exclusive, &found)) return false;
  found.Of(graph_.vertex(root).type).Add({found.score, found.available, {}});
  const uint32_t available = found.available;
  if (!FinishRoot(request.levels, &found)) return false;
  int64_t amount = 1;
  for (const RequestLevel& level : request.levels) {
    if (level.type != graph_.vertex(root).type) continue;
    amount = level.request->count.Best(available);
    if (amount == 0) return false;
  }
  for (const auto& [type, list] : found.lists()) {
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

bool Traverser::MeetsConstraint(const Vertex& vertex) const {
  if (!request_->job.constrained) return true;
  if (vertex.type != node_type_ && vertex.type != storage_node_type_) return true;
  return request_->job.constraint.Matches({vertex.name, vertex.rank, vertex.properties});
}

bool Traverser::Prune(VertexId v, const Levels& levels, bool exclusive) const {
  const Vertex& vertex = graph_.vertex(v);
  if (window_.kind != Window::Kind::kEver && !vertex.up) return true;
  if (!MeetsConstraint(vertex)) return true;
  if (state_.at(v).held.FreeDuring(window_.at_s, window_.duration_s) <= 0) return true;
  return PruneByLevels(v, levels, exclusive);
}

bool Traverser::PruneByLevels(VertexId v, const Levels& levels, bool exclusive) const {
  bool pruned = false;
  for (const RequestLevel& level : levels) {
    if (level.type != graph_.vertex(v).type && !level.is_slot()) continue;
    pruned = PruneByLevel(v, level, exclusive);
    // Of slots that are alternatives, Fluxion lets the last one decide.
    const bool alternative = kind_ == TraverserKind::kFlexible && level.is_slot();
    if (pruned && !alternative) return true;
  }
  return pruned;
}

bool Traverser::PruneByLevel(VertexId v, const RequestLevel& level, bool exclusive) const {
  const GraphState::At& at = state_.at(v);
  if (!level.is_slot()) {
    // What is inside a slot cannot be shared.
    if (exclusive && level.request->exclusivity == Exclusivity::kShared) return true;
    if (exclusive || level.request->exclusivity == Exclusivity::kExclusive) {
      // A job beyond its end still holds what it holds.
      if (window_.kind == Window::Kind::kNow && !at.allocations.empty()) return true;
      if (at.jobs.FreeDuring(window_.at_s, window_.duration_s) < 0) return true;
    }
  }
  if (level.below.empty()) return false;
  for (size_t i = 0; i < at.filters.size(); ++i) {
    const auto needed = level.below.find(at.filter_types[i]);
    const int64_t amount = needed == level.below.end() ? 0 : needed->second;
    if (amount > at.filters[i].FreeDuring(window_.at_s, window_.duration_s)) return true;
  }
  return false;
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
  if (fit.kind == Kind::kNone || Prune(v, levels, exclusive_here)) return false;
  const int64_t factor = NodeFactor(vertex);
  if (factor < 0) return false;
  node_score_ += factor;
  MarkSeen(v);
  // What this vertex finds for itself does not keep its siblings from finding it too.
  const bool named = fit.kind != Kind::kPassing;
  std::vector<VertexId> shared_before;
  if (named) shared_before.swap(shared_seen_);
  Candidates found;
  if (fit.kind == Kind::kSlot) {
    if (kind_ == TraverserKind::kFlexible) {
      SplitIntoSlotsOf(v, *fit.next, fit.slot->request->count.Most(), &found);
    } else {
      SplitIntoSlots(v, *fit.slot, &found);
    }
  } else {
    // A vertex held exclusively does not own what others contain too.
    Explore(v, *fit.next, {!named, exclusive_here, exclusive_above}, 1, &found);
  }
  if (named) shared_before.swap(shared_seen_);
  *exclusive = exclusive_here;
  node_score_ -= factor;
  if (!FinishVertex(v, levels, &found)) return false;
  if (found.settled) {
    MarkTaken(found, false);
  } else {
    to_parent->Append(found);
  }
  to_parent->available =
      static_cast<uint32_t>(state_.at(v).held.FreeDuring(window_.at_s, window_.duration_s));
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
  if (outcome.version == state_.at(v).version) {
    if (!outcome.fits) return false;
    remembered_[place] = {walk_, &levels, pristine, *exclusive};
  } else {
    Candidates found;
    bool exclusive_here = *exclusive;
    remembering_ = true;
    outcome.fits = Visit(v, levels, pristine, &exclusive_here, &found);
    remembering_ = false;
    outcome.version = state_.at(v).version;
    outcome.exclusive = exclusive_here;
    outcome.score = found.score;
    outcome.available = found.available;
    outcome.found =
        found.lists().empty() ? nullptr : std::make_unique<Candidates>(std::move(found));
    if (!outcome.fits) return false;
  }
  if (outcome.found != nullptr) to_parent->Append(*outcome.found);
  to_parent->score = outcome.score;
  to_parent->available = outcome.available;
  *exclusive = outcome.exclusive;
  return true;
}

void Traverser::MarkRemembered(VertexId v, uint64_t walk) {
  const uint32_t place = node_places_[v];
  if (place == kNoPlace || remembered_[place].walk != walk) return;
  const Remembered& visit = remembered_[place];
  const uint64_t collecting = walk_;
  walk_ = walk;
  remembering_ = true;
  Candidates found;
  bool exclusive = visit.exclusive;
  Visit(v, *visit.levels, visit.pristine, &exclusive, &found);
  remembering_ = false;
  walk_ = collecting;
}

bool Traverser::WasSeen(VertexId v) const {
  if (!graph_.IsShared(v)) return seen_[v] == walk_;
  return std::find(shared_seen_.begin(), shared_seen_.end(), v) != shared_seen_.end();
}

void Traverser::MarkSeen(VertexId v) {
  if (graph_.IsShared(v)) {
    shared_seen_.push_back(v);
  } else if (!graph_.has_shared()) {
    seen_[v] = walk_;
  }
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
  found->Of(graph_.vertex(edge.target).type)
      .Add({found->score, found->available, {{e, found->available, exclusive}}});
  return true;
}

bool Traverser::Explore(
    VertexId v, const Levels& levels, const Descent& descent, uint32_t shares, Candidates* found) {
  if (policy_.stop_on_first) return ExploreInOrder(v, levels, descent, shares, found);
  bool any = false;
  for (const EdgeId e : graph_.vertex(v).out) {
    any = VisitChild(e, levels, descent, found) || any;
  }
  return any;
}

bool Traverser::ExploreInOrder(
    VertexId v, const Levels& levels, const Descent& descent, uint32_t shares, Candidates* found) {
  struct Progress {
    const RequestLevel* level;
    ShareTally tally;
    uint32_t found_before = 0;
  };
  std::vector<Progress> wanted;
  for (const RequestLevel& level : levels) {
    wanted.push_back({&level, ShareTally(level.request->count.Most())});
  }
  const auto enough = [shares](const Progress& progress) {
    return progress.tally.shares() >= shares;
  };
  bool any = false;
  std::set<TypeId> satisfied;
  for (const auto& [weight, uniq_id, e] : state_.Children(v)) {
    if (satisfied.contains(graph_.vertex(graph_.edge(e).target).type)) continue;
    if (!VisitChild(e, levels, descent, found)) continue;
    any = true;
    for (Progress& progress : wanted) {
      const CandidateList* list = found->Find(KeyOf(*progress.level));
      const uint32_t total = list == nullptr ? 0 : list->found();
      // What one child brings is not divided.
      if (total > progress.found_before) progress.tally.Add(total - progress.found_before);
      progress.found_before = total;
      if (enough(progress)) satisfied.insert(progress.level->type);
    }
    if (std::all_of(wanted.begin(), wanted.end(), enough)) break;
  }
  return any;
}

namespace {

// Hands out the candidates of each type, whole vertices one after another.
class PartSource {
 public:
  explicit PartSource(const Candidates& parts) : parts_(parts) {}

  uint32_t Qualified(TypeId type) const {
    const CandidateList* list = parts_.Find(type);
    return list == nullptr ? 0 : list->qualified();
  }
  const CandidateList* Find(TypeId type) const { return parts_.Find(type); }

  // Adds what one slot takes. False when there is too little left.
  bool AddSlot(const std::vector<RequestLevel>& shape, Candidate* slot) {
    for (const RequestLevel& part : shape) {
      const uint32_t count = part.request->count.Best(Qualified(part.type));
      for (uint64_t taken = 0; taken < count;) {
        const std::vector<Candidate>& all = parts_.Find(part.type)->all();
        size_t& at = next_[part.type];
        if (at == all.size()) return false;
        const Candidate& candidate = all[at++];
        slot->edges.push_back({candidate.edges.front().edge, candidate.count, true});
        slot->score += candidate.score;
        taken += candidate.count;
      }
    }
    return true;
  }

 private:
  const Candidates& parts_;
  std::map<TypeId, size_t> next_;
};

}  // namespace

void Traverser::SplitIntoSlots(VertexId v, const RequestLevel& slot, Candidates* found) {
  const Levels& shape = slot.with;
  Candidates parts;
  if (!Explore(v, shape, {false, true, true}, slot.request->count.Most(), &parts)) return;
  OrderSlotParts(&parts);
  PartSource source(parts);
  // As many slots as the scarcest part makes.
  uint64_t slots = shape.empty() ? 0 : UINT64_MAX;
  for (const RequestLevel& part : shape) {
    const uint32_t count = part.request->count.Best(source.Qualified(part.type));
    ShareTally tally(count);
    if (count > 0) {
      for (const Candidate& candidate : source.Find(part.type)->all()) tally.Add(candidate.count);
    }
    slots = std::min(slots, tally.shares());
  }
  std::vector<Candidate> made(slots, Candidate{kMet, 1, {}});
  for (Candidate& candidate : made) {
    if (!source.AddSlot(shape, &candidate)) return;
  }
  for (Candidate& candidate : made) found->Of(kSlotKey).Add(std::move(candidate));
}

void Traverser::SplitIntoSlotsOf(VertexId v,
                                 const Levels& kinds,
                                 uint32_t slots,
                                 Candidates* found) {
  // Of each type, the level that wants most of it; the index of the type is its place in the map.
  std::map<TypeId, const RequestLevel*> types;
  for (const RequestLevel& kind : kinds) {
    for (const RequestLevel& part : kind.with) {
      const RequestLevel*& most = types[part.type];
      if (most == nullptr || most->request->count.min < part.request->count.min) most = &part;
    }
  }
  Levels wanted;
  for (const auto& [type, level] : types) wanted.push_back(*level);
  Candidates parts;
  if (!Explore(v, wanted, {false, true, true}, slots, &parts)) return;
  OrderSlotParts(&parts);

  PartSource source(parts);
  std::vector<uint32_t> counts;
  for (const auto& [type, level] : types) counts.push_back(source.Qualified(type));
  std::vector<SlotKind> shapes;
  for (const RequestLevel& kind : kinds) {
    SlotKind& shape = shapes.emplace_back();
    for (const RequestLevel& part : kind.with) {
      const auto index = std::distance(types.begin(), types.find(part.type));
      shape.push_back({static_cast<size_t>(index), part.request->count});
    }
  }
  size_t vertices = 0;
  for (const auto& [type, list] : parts.lists()) vertices += list.all().size();
  const auto most = static_cast<uint32_t>(std::min<size_t>(slots, vertices));
  std::vector<Candidate> made;
  for (const size_t kind : ChooseSlots(shapes, counts, most)) {
    Candidate& candidate = made.emplace_back(Candidate{kMet, 1, {}});
    if (!source.AddSlot(kinds[kind].with, &candidate)) return;
  }
  for (Candidate& candidate : made) found->Of(kSlotKey).Add(std::move(candidate));
}

void Traverser::OrderSlotParts(Candidates* found) const {
  const bool low = policy_.order == MatchPolicy::Order::kLow;
  for (auto& [type, list] : found->lists()) {
    const uint32_t all = list.qualified();
    if (low ? list.Take(all, Lower) : list.Take(all, Higher)) found->settled = true;
  }
}

bool Traverser::TakeBest(CandidateList* list, uint32_t count) const {
  const bool low =
      policy_.order == MatchPolicy::Order::kLow || policy_.order == MatchPolicy::Order::kVariation;
  return low ? list->Take(count, Lower) : list->Take(count, Higher);
}

bool Traverser::FinishVertex(VertexId v, const Levels& levels, Candidates* found) const {
  const Vertex& vertex = graph_.vertex(v);
  for (const RequestLevel& level : levels) {
    if (level.type != vertex.type) continue;
    for (const RequestLevel& below : level.with) {
      CandidateList& list = found->Of(KeyOf(below));
      const uint32_t count = below.request->count.Best(list.qualified());
      if (count == 0) {
        found->score = kUnmet;
        return false;
      }
      if (TakeBest(&list, count)) found->settled = true;
    }
  }
  found->score =
      kMet + (policy_.order == MatchPolicy::Order::kVariation ? PerformanceClass(vertex)
                                                              : node_score_ + vertex.id + 1);
  return true;
}

bool Traverser::FinishRoot(const Levels& levels, Candidates* found) const {
  ScoreRuns runs;
  for (const RequestLevel& level : levels) {
    CandidateList& list = found->Of(KeyOf(level));
    const uint32_t count = level.request->count.Best(list.qualified());
    if (count == 0) return false;
    if (policy_.order == MatchPolicy::Order::kLocality) {
      runs.Add(list);
      list.Take(count, [&](const Candidate& a, const Candidate& b) {
        return runs.RunOf(a.score) > runs.RunOf(b.score);
      });
    } else {
      TakeBest(&list, count);
    }
  }
  return true;
}

int64_t Traverser::NodeFactor(const Vertex& vertex) const {
  if (!policy_.node_centric || vertex.type != node_type_) return 0;
  if (vertex.id < -1 || vertex.uniq_id < 0) return -1;
  return (vertex.id + 2) * kNodeWeight + std::abs(vertex.uniq_id % kNodeWeight - 1);
}

EdgeId Traverser::ParentEdge(VertexId v) const {
  for (const EdgeId e : graph_.vertex(v).in) {
    if (graph_.edge(e).subsystem == ResourceGraph::kContainment) return e;
  }
  return kNoEdge;
}

void Traverser::MarkTaken(const Candidates& found, bool up_to_root) {
  for (const auto& [type, list] : found.lists()) {
    for (size_t i = 0; i < list.taken(); ++i) {
      for (const TakenEdge& taken : list.all()[i].edges) {
        marks_[taken.edge] = {walk_, taken.amount, taken.exclusive};
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

Traverser::Selection Traverser::Collect(const ResolvedRequest& request, const Window& window) {
  CHECK(root_mark_.walk == walk_);
  // Marks are of the walk before; this one only tells what has been visited.
  ++walk_;
  Selection selection;
  selection.holding.at_s = window.at_s;
  selection.holding.duration_s = window.duration_s;
  selection.holding.reserved = window.kind == Window::Kind::kLater;
  std::set<TypeId> exclusive_types = request.exclusive;
  if (policy_.node_exclusive) exclusive_types.insert(node_type_);
  const HeldVertex root{graph_.root(), kNoEdge, root_mark_.amount, root_mark_.exclusive, {}};
  CollectBelow(root, root_mark_.walk, false, exclusive_types, &selection);
  state_.SumUpBelow(&selection.holding);
  return selection;
}

int Traverser::CollectBelow(const HeldVertex& here,
                            uint64_t walk,
                            bool forced,
                            const std::set<TypeId>& exclusive_types,
                            Selection* selection) {
  MarkRemembered(here.vertex, walk);
  const Vertex& vertex = graph_.vertex(here.vertex);
  // What is held exclusively by its type is held with all that it alone contains.
  const bool forced_above = forced;
  forced = forced || exclusive_types.contains(vertex.type);
  seen_[here.vertex] = walk_;
  int held = 0;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    const Mark& mark = marks_[e];
    const bool marked = mark.walk == walk;
    const bool all = graph_.IsShared(edge.target) ? forced_above : forced;
    if (!marked && !all) continue;
    if (seen_[edge.target] == walk_) {
      // Held by another way already: it counts once, and is below this vertex all the same.
      if (kept_[edge.target] == walk_) ++held;
      continue;
    }
    const HeldVertex child{edge.target,
                           e,
                           all ? graph_.vertex(edge.target).size : mark.amount,
                           all || mark.exclusive,
                           {}};
    const int held_below = CollectBelow(child, walk, all, exclusive_types, selection);
    if (held_below > 0) selection->used.push_back(e);
    held += held_below;
  }
  const bool exclusive = here.exclusive || forced;
  if (exclusive) ++held;
  if (held == 0) return 0;
  kept_[here.vertex] = walk_;
  selection->holding.vertices.push_back({here.vertex, here.edge, here.amount, exclusive, {}});
  return held;
}

}  // namespace fluxqueue::graph
