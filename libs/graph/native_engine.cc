#include "libs/graph/native_engine.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/explanation.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// What others use of a node is held by a job with this bit and the node's ordinal.
constexpr JobNumber kForeign = JobNumber{1} << 63;
// Unique ids of resources, behind those of nodes.
constexpr int64_t kFirstLeaf = int64_t{1} << 40;
// A node can have so much of a resource, whatever it says: sums over all nodes have room.
constexpr int64_t kMostOfOne = int64_t{1} << 46;
// As long as a graph lasts; see GeneralEngine.
constexpr int64_t kForEver = int64_t{100} * 365 * 24 * 3600;
constexpr size_t kMaxRequests = 1024;

// Those that tell nodes apart, and do not hold more of them than is asked for.
constexpr std::array<std::string_view, 3> kPolicies = {"first", "lonode", "hinode"};

// `first`, but which node a slot is on does not count: what was found first is taken.
constexpr std::string_view kFirst =
    "policy=high node_centric=false node_exclusive=false stop_on_1_matches=true";

std::string_view OnGraph(std::string_view policy) {
  return policy == "first" ? kFirst : policy;
}

// A cluster without nodes.
std::unique_ptr<GeneralEngine> EmptyCluster() {
  ResourceGraph graph;
  Vertex cluster;
  cluster.type = graph.InternType("cluster");
  cluster.basename = "cluster";
  cluster.name = "cluster0";
  cluster.paths.emplace_back(ResourceGraph::kContainment, "/cluster0");
  CHECK(graph.AddVertex(std::move(cluster)).ok());
  auto engine = GeneralEngine::Make(
      std::move(graph), {.policy = kFirst, .prune_filters = "ALL:cpu", .remembers_use = false});
  CHECK(engine.ok());
  return *std::move(engine);
}

// More of any resource in `after`; both sorted by name.
bool AnyGrew(const Amounts& before, const Amounts& after) {
  return std::any_of(after.begin(), after.end(), [&before](const Amount& now) {
    const auto was = std::find_if(before.begin(), before.end(), [&now](const Amount& amount) {
      return amount.resource == now.resource;
    });
    return now.amount > (was == before.end() ? 0 : was->amount);
  });
}

std::string PathOf(const Node& node) {
  return "/cluster0/" + node.spec.name;
}

int64_t SizeOf(const Node& node, size_t resource) {
  return std::min(node.capacity[resource], kMostOfOne);
}

}  // namespace

std::unique_ptr<Engine> MakeNativeEngine() {
  return std::make_unique<NativeEngine>();
}

NativeEngine::NativeEngine() : graph_(EmptyCluster()) {}

// ---- the graph

absl::Status NativeEngine::SetPolicy(std::string_view policy) {
  if (std::find(kPolicies.begin(), kPolicies.end(), policy) == kPolicies.end()) {
    return InvalidArgument(
        "policy \"{}\": the native engine knows {}", policy, fmt::join(kPolicies, ", "));
  }
  RETURN_IF_ERROR(graph_->SetPolicy(OnGraph(policy)));
  Record(UndoPolicy{std::exchange(policy_, std::string(policy))});
  return absl::OkStatus();
}

VertexId NativeEngine::Add(Vertex vertex, std::string_view path, VertexId parent) {
  vertex.basename = graph_->graph().types()[vertex.type];
  vertex.paths.emplace_back(ResourceGraph::kContainment, path);
  const auto added = graph_->AddVertex(std::move(vertex), parent);
  CHECK(added.ok(), "{}", Message(added.status()));
  return *added;
}

void NativeEngine::Plant(Node* node) {
  Vertex vertex;
  vertex.type = graph_->InternType("node");
  vertex.name = node->spec.name;
  vertex.id = static_cast<int64_t>(node->spec.ordinal);
  vertex.rank = vertex.id;
  vertex.uniq_id = vertex.id + 1;
  const VertexId v = Add(std::move(vertex), PathOf(*node), graph_->graph().root());
  node->here = {v, graph_->graph().vertex(v).in.front()};
  node->leaves.assign(table_.resources().size(), {});
  by_vertex_[v] = node;
  for (const Amount& amount : node->spec.resources) LeafOf(node, table_.Number(amount.resource));
  Tend(node);
}

Node::Leaf NativeEngine::LeafOf(Node* node, size_t resource) {
  Node::Leaf& leaf = node->leaves[resource];
  if (leaf.edge != kNoEdge) return leaf;
  Vertex vertex;
  vertex.type = graph_->InternType(table_.resources()[resource]);
  vertex.name = table_.resources()[resource];
  vertex.uniq_id = kFirstLeaf + next_leaf_++;
  vertex.rank = static_cast<int64_t>(node->spec.ordinal);
  vertex.size = SizeOf(*node, resource);
  vertex.divisible = true;
  const VertexId v =
      Add(std::move(vertex), PathOf(*node) + "/" + table_.resources()[resource], node->here.vertex);
  leaf = {v, graph_->graph().vertex(v).in.front()};
  return leaf;
}

// Everything but name and ordinal may have changed.
void NativeEngine::Tend(Node* node) {
  graph_->SetUp(node->here.vertex, node->spec.schedulable);
  graph_->SetProperties(node->here.vertex, node->spec.labels);
  graph_->SetTaints(node->here.vertex, node->spec.taints);
  for (const Amount& amount : node->spec.resources) LeafOf(node, table_.Number(amount.resource));
  for (size_t resource = 0; resource < node->leaves.size(); ++resource) {
    const Node::Leaf& leaf = node->leaves[resource];
    const int64_t size = SizeOf(*node, resource);
    if (leaf.edge == kNoEdge || graph_->graph().vertex(leaf.vertex).size == size) continue;
    graph_->Resize(leaf.vertex, size);
  }
  HoldForeign(node);
  Reorder(*node);
}

void NativeEngine::Uproot(Node* node) {
  graph_->Cancel(kForeign | node->spec.ordinal);
  by_vertex_.erase(node->here.vertex);
  CHECK(graph_->RemoveSubgraph(PathOf(*node)).ok());
}

void NativeEngine::HoldForeign(Node* node) {
  const JobNumber number = kForeign | node->spec.ordinal;
  graph_->Cancel(number);
  Holding holding;
  holding.duration_s = kForEver;
  for (size_t resource = 0; resource < node->leaves.size(); ++resource) {
    const Node::Leaf& leaf = node->leaves[resource];
    const int64_t amount = std::min(node->foreign[resource], kMostOfOne);
    if (leaf.edge == kNoEdge || amount == 0) continue;
    holding.vertices.push_back({leaf.vertex, leaf.edge, amount, true});
  }
  if (holding.vertices.empty()) return;
  holding.vertices.push_back({node->here.vertex, node->here.edge, 1, false});
  holding.vertices.push_back({graph_->graph().root(), kNoEdge, 1, false});
  CHECK(graph_->Restore(number, holding).ok());
}

void NativeEngine::Reorder(const Node& node) {
  const bool empty = graph_->graph().vertex(node.here.vertex).out.empty();
  if (empty) return;
  const auto free = static_cast<uint64_t>(node.free[NodeTable::kCpu]);
  graph_->SetTryOrder(node.here.vertex, node.live_slots == 0 ? GraphState::kUntouched : free);
}

absl::Status NativeEngine::AddNode(NodeSpec node) {
  if (table_.Find(node.name) != nullptr) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition, "node {} is in the graph already", node.name);
  }
  if (table_.HasOrdinal(node.ordinal)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "node {}: the ordinal {} is another node's",
                      node.name,
                      node.ordinal);
  }
  Record(UndoAdd{node.name});
  Plant(table_.Add(std::move(node)));
  return absl::OkStatus();
}

absl::StatusOr<NodeChange> NativeEngine::UpdateNode(NodeSpec spec) {
  Node* node = table_.Find(spec.name);
  if (node == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "node {} is not in the graph", spec.name);
  }
  const NodeSpec& before = node->spec;
  if (before.ordinal != spec.ordinal) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "node {}: has the ordinal {}, which cannot become {}",
                      spec.name,
                      before.ordinal,
                      spec.ordinal);
  }
  if (before == spec) return NodeChange{};
  NodeChange change{.changed = true};
  change.grew =
      spec.schedulable &&
      (!before.schedulable || before.labels != spec.labels || before.taints != spec.taints ||
       AnyGrew(before.resources, spec.resources) || AnyGrew(spec.foreign, before.foreign));
  Record(UndoUpdate{before});
  table_.Replace(node, std::move(spec));
  Tend(node);
  return change;
}

absl::StatusOr<std::vector<AllocationKey>> NativeEngine::RemoveNode(std::string_view name) {
  Node* node = table_.Find(name);
  if (node == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "node {} is not in the graph", name);
  }
  std::vector<AllocationKey> broken;
  UndoRemove undo;
  // Nodes go rarely: looking at every slot is dearer here and cheaper everywhere else.
  for (auto& [key, allocation] : allocations_) {
    for (size_t i = 0; node->live_slots > 0 && i < allocation.nodes.size(); ++i) {
      if (allocation.nodes[i] != node) continue;
      table_.Hold(node, allocation.needs, -1);
      allocation.nodes[i] = nullptr;
      allocation.placement.slots[i].released = true;
      undo.slots.emplace_back(key, i);
      if (broken.empty() || broken.back() != key) broken.push_back(key);
    }
  }
  Uproot(node);
  undo.node = table_.Take(node);
  Record(std::move(undo));
  return broken;
}

// --------------------------------------------------------------------------------------- the match

const JobRequest& NativeEngine::RequestOf(const Jobspec& jobspec) {
  const auto known = requests_.find(jobspec.shape);
  if (known != requests_.end()) return known->second;
  if (requests_.size() >= kMaxRequests) requests_.clear();
  const auto asks = [](std::string_view type, uint64_t count) {
    ResourceRequest request;
    request.type = type;
    request.count = {.min = count, .max = count};
    return request;
  };
  ResourceRequest slot = asks(kSlotType, jobspec.slots);
  for (const Amount& amount : jobspec.request) {
    slot.with.push_back(asks(amount.resource, static_cast<uint64_t>(amount.amount)));
  }
  JobRequest& request = requests_[jobspec.shape];
  request.resources.push_back(std::move(slot));
  request.constrained = true;
  request.constraint = jobspec.constraint;
  request.tolerations = jobspec.tolerations;
  request.shape = jobspec.shape;
  return request;
}

bool NativeEngine::Before(const Node& a, const Node& b) const {
  if (policy_ != "first") {
    const bool high = policy_.starts_with("hi");
    return high ? a.spec.ordinal > b.spec.ordinal : a.spec.ordinal < b.spec.ordinal;
  }
  const auto rank = [](const Node& node) {
    return node.live_slots == 0 ? std::numeric_limits<int64_t>::max() : node.free[NodeTable::kCpu];
  };
  return std::pair(rank(a), a.spec.ordinal) > std::pair(rank(b), b.spec.ordinal);
}

std::vector<NativeEngine::Share> NativeEngine::SharesOf(const Holding& holding,
                                                        const Jobspec& jobspec) const {
  const ResourceGraph& graph = graph_->graph();
  std::vector<Share> shares;
  for (size_t i = 1; i < holding.vertices.size(); ++i) {
    const auto node = by_vertex_.find(holding.vertices[i].vertex);
    if (node == by_vertex_.end()) continue;
    // What stands before a node is a resource of it.
    const HeldVertex& leaf = holding.vertices[i - 1];
    for (const Amount& amount : jobspec.request) {
      if (amount.resource != graph.TypeName(leaf.vertex)) continue;
      shares.push_back({node->second, leaf.amount / amount.amount});
    }
  }
  std::sort(shares.begin(), shares.end(), [this](const Share& a, const Share& b) {
    return Before(*a.node, *b.node);
  });
  return shares;
}

Outcome NativeEngine::Match(const MatchRequest& request) {
  const bool allocates = request.operation != Operation::kSatisfiability;
  if (allocates) {
    if (const Placement* held = Find(request.key); held != nullptr) {
      return {OutcomeKind::kAllocated, held};
    }
  }
  std::optional<std::vector<Need>> needs = table_.NeedsOf(request.jobspec.request);
  const auto ask = [&](MatchOperation operation) {
    auto answer = graph_->Match(operation, next_number_, RequestOf(request.jobspec));
    CHECK(answer.ok(), "{}", Message(answer.status()));
    return *std::move(answer);
  };
  if (allocates && needs) {
    const MatchAnswer answer = ask(MatchOperation::kAllocate);
    if (answer.status == MatchStatus::kAllocated) {
      const std::vector<Share> shares = SharesOf(answer.holding, request.jobspec);
      return {OutcomeKind::kAllocated,
              &Allocate(request, next_number_++, *std::move(needs), shares)};
    }
  }
  if (request.operation == Operation::kAllocate) return {OutcomeKind::kBusy, nullptr};
  const bool ever = needs && ask(MatchOperation::kSatisfiability).status == MatchStatus::kMatched;
  if (!ever) return {OutcomeKind::kUnsatisfiable, nullptr};
  return {allocates ? OutcomeKind::kBusy : OutcomeKind::kAllocated, nullptr};
}

const Placement& NativeEngine::Allocate(const MatchRequest& request,
                                        JobNumber number,
                                        std::vector<Need> needs,
                                        const std::vector<Share>& shares) {
  Allocation& allocation = allocations_[request.key];
  allocation.number = number;
  allocation.placement.requests = request.jobspec.request;
  allocation.placement.start_s = request.now_s;
  allocation.placement.duration_s = request.duration_s;
  allocation.placement.slots.reserve(request.jobspec.slots);
  allocation.nodes.reserve(request.jobspec.slots);
  for (const Share& share : shares) {
    table_.Hold(share.node, needs, share.slots);
    Reorder(*share.node);
    for (int64_t i = 0; i < share.slots; ++i) {
      const uint32_t slot = static_cast<uint32_t>(allocation.nodes.size());
      allocation.placement.slots.push_back({slot, share.node->spec.name, false});
      allocation.nodes.push_back(share.node);
    }
  }
  allocation.needs = std::move(needs);
  Record(UndoAllocate{request.key});
  return allocation.placement;
}

Explanation NativeEngine::Explain(const Jobspec& jobspec) const {
  return ExplainShortfall(jobspec, table_);
}

// ---- what is held

// direction 1: holds every live slot; -1: gives them back.
void NativeEngine::HoldLive(const Allocation& allocation, int64_t direction) {
  for (Node* node : allocation.nodes) {
    if (node == nullptr) continue;
    table_.Hold(node, allocation.needs, direction);
    Reorder(*node);
  }
  if (direction > 0) {
    HoldInGraph(allocation);
  } else {
    graph_->Cancel(allocation.number);
  }
}

void NativeEngine::HoldInGraph(const Allocation& allocation) {
  graph_->Cancel(allocation.number);
  std::map<uint64_t, Share> shares;
  for (Node* node : allocation.nodes) {
    if (node == nullptr) continue;
    Share& share = shares.try_emplace(node->spec.ordinal, Share{node, 0}).first->second;
    ++share.slots;
  }
  Holding holding;
  holding.duration_s = kForEver;
  for (const auto& [ordinal, share] : shares) {
    for (const Need& need : allocation.needs) {
      const Node::Leaf leaf = LeafOf(share.node, need.resource);
      holding.vertices.push_back({leaf.vertex, leaf.edge, need.amount * share.slots, true});
    }
    holding.vertices.push_back({share.node->here.vertex, share.node->here.edge, 1, false});
  }
  if (shares.empty()) return;
  holding.vertices.push_back({graph_->graph().root(), kNoEdge, 1, false});
  CHECK(graph_->Restore(allocation.number, holding).ok());
}

bool NativeEngine::Release(const AllocationKey& key) {
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return false;
  HoldLive(found->second, -1);
  Record(UndoRelease{key, std::move(found->second)});
  allocations_.erase(found);
  return true;
}

std::vector<uint32_t> NativeEngine::ReleaseSlots(const AllocationKey& key,
                                                 const std::vector<uint32_t>& slots) {
  std::vector<uint32_t> released;
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return released;
  Allocation& allocation = found->second;
  UndoReleaseSlots undo{key, {}};
  for (const uint32_t slot : slots) {
    if (slot >= allocation.nodes.size() || allocation.nodes[slot] == nullptr) continue;
    Node* node = std::exchange(allocation.nodes[slot], nullptr);
    table_.Hold(node, allocation.needs, -1);
    Reorder(*node);
    allocation.placement.slots[slot].released = true;
    undo.slots.emplace_back(slot, node);
    released.push_back(slot);
  }
  if (released.empty()) return released;
  HoldInGraph(allocation);
  Record(std::move(undo));
  return released;
}

absl::Status NativeEngine::Restore(const AllocationKey& key, const Placement& placement) {
  const auto fail = [&key](std::string_view what) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "job {} attempt {} part {}: {}",
                      key.job_id,
                      key.attempt,
                      key.part,
                      what);
  };
  if (allocations_.contains(key)) return fail("holds something already");
  Allocation allocation{.placement = placement, .nodes = {}, .needs = {}, .number = next_number_++};
  for (size_t i = 0; i < placement.slots.size(); ++i) {
    const PlacedSlot& slot = placement.slots[i];
    if (slot.slot != i) return fail(fmt::format("slot {} stands at index {}", slot.slot, i));
    Node* node = slot.released ? nullptr : table_.Find(slot.node);
    if (node == nullptr && !slot.released) {
      return fail(fmt::format("slot {} is on node {}, which is not in the graph", i, slot.node));
    }
    allocation.nodes.push_back(node);
  }
  for (const Amount& amount : placement.requests) {
    allocation.needs.push_back({table_.Number(amount.resource), amount.amount});
  }
  HoldLive(allocation, 1);
  allocations_.emplace(key, std::move(allocation));
  Record(UndoAllocate{key});
  return absl::OkStatus();
}

const Placement* NativeEngine::Find(const AllocationKey& key) const {
  const auto found = allocations_.find(key);
  return found == allocations_.end() ? nullptr : &found->second.placement;
}

std::vector<AllocationKey> NativeEngine::KeysOf(std::string_view job_id) const {
  std::vector<AllocationKey> keys;
  auto next = allocations_.lower_bound(AllocationKey{std::string(job_id), 0, 0});
  for (; next != allocations_.end() && next->first.job_id == job_id; ++next) {
    keys.push_back(next->first);
  }
  return keys;
}

// -------------------------------------------------------------------------------------------- undo

void NativeEngine::Record(Undo undo) {
  if (recording_) journal_.push_back(std::move(undo));
}

void NativeEngine::Checkpoint() {
  CHECK(!recording_, "Checkpoint within a checkpoint");
  recording_ = true;
}

void NativeEngine::Commit() {
  recording_ = false;
  journal_.clear();
}

void NativeEngine::Rollback() {
  recording_ = false;
  while (!journal_.empty()) {
    std::visit([this](auto& undo) { TakeBack(undo); }, journal_.back());
    journal_.pop_back();
  }
}

void NativeEngine::TakeBack(UndoPolicy& undo) {
  policy_ = std::move(undo.before);
  CHECK(graph_->SetPolicy(OnGraph(policy_)).ok());
}

void NativeEngine::TakeBack(UndoAdd& undo) {
  Node* node = table_.Find(undo.name);
  Uproot(node);
  table_.Take(node);
}

void NativeEngine::TakeBack(UndoUpdate& undo) {
  Node* node = table_.Find(undo.before.name);
  table_.Replace(node, std::move(undo.before));
  Tend(node);
}

void NativeEngine::TakeBack(UndoRemove& undo) {
  Node* node = undo.node.get();
  table_.PutBack(std::move(undo.node));
  Plant(node);
  std::set<AllocationKey> keys;
  for (const auto& [key, slot] : undo.slots) {
    Allocation& allocation = allocations_.at(key);
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    table_.Hold(node, allocation.needs, 1);
    keys.insert(key);
  }
  for (const AllocationKey& key : keys) HoldInGraph(allocations_.at(key));
  Reorder(*node);
}

void NativeEngine::TakeBack(UndoAllocate& undo) {
  const auto found = allocations_.find(undo.key);
  HoldLive(found->second, -1);
  allocations_.erase(found);
}

void NativeEngine::TakeBack(UndoRelease& undo) {
  HoldLive(undo.allocation, 1);
  allocations_.emplace(undo.key, std::move(undo.allocation));
}

void NativeEngine::TakeBack(UndoReleaseSlots& undo) {
  Allocation& allocation = allocations_.at(undo.key);
  for (const auto& [slot, node] : undo.slots) {
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    table_.Hold(node, allocation.needs, 1);
    Reorder(*node);
  }
  HoldInGraph(allocation);
}

}  // namespace fluxqueue::graph
