#include "libs/graph/cluster_graph.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

// What others use of a node is held by a job with this bit and the node's ordinal.
constexpr JobNumber kForeign = JobNumber{1} << 63;
// Unique ids: nodes' are their ordinals, groups' and resources' are behind them.
constexpr int64_t kFirstGroup = int64_t{1} << 40;
constexpr int64_t kFirstLeaf = int64_t{1} << 60;
// Groups of nodes without the label come behind those that a label names.
constexpr int64_t kFirstOwn = int64_t{1} << 32;
// A node can have so much of a resource, whatever it says: sums over all nodes have room.
constexpr int64_t kMostOfOne = int64_t{1} << 46;

// Those that tell nodes apart, and do not hold more of them than is asked for.
constexpr std::array<std::string_view, 6> kPolicies = {
    "first", "lonode", "hinode", "packed", "packed-3", "packed-4"};

// `first`, but which node a slot is on does not count: what was found first is taken.
constexpr std::string_view kFirst =
    "policy=high node_centric=false node_exclusive=false stop_on_1_matches=true";

std::string_view OnGraph(std::string_view policy) {
  return policy == "first" ? kFirst : policy;
}

// A cluster without nodes.
std::unique_ptr<GeneralEngine> EmptyCluster(std::string_view policy) {
  ResourceGraph graph;
  Vertex cluster;
  cluster.type = graph.InternType("cluster");
  cluster.basename = "cluster";
  cluster.name = "cluster0";
  cluster.paths.emplace_back(ResourceGraph::kContainment, "/cluster0");
  CHECK(graph.AddVertex(std::move(cluster)).ok());
  auto engine = GeneralEngine::Make(
      std::move(graph),
      {.policy = OnGraph(policy), .prune_filters = "ALL:cpu", .remembers_use = false});
  CHECK(engine.ok());
  return *std::move(engine);
}

int64_t OrderOfOwn(const Node& node) {
  return kFirstOwn + static_cast<int64_t>(node.spec.ordinal);
}

int64_t SizeOf(const Node& node, size_t resource) {
  return std::min(node.capacity[resource], kMostOfOne);
}

}  // namespace

std::unique_ptr<Placer> MakeClusterGraph(NodeTable* table, ExpectedWork* expected) {
  return std::make_unique<ClusterGraph>(table, expected);
}

ClusterGraph::ClusterGraph(NodeTable* table, ExpectedWork* expected)
    : table_(*table), expected_(*expected), engine_(EmptyCluster(policy_)) {}

absl::Status ClusterGraph::SetPolicy(std::string_view policy) {
  if (std::find(kPolicies.begin(), kPolicies.end(), policy) == kPolicies.end()) {
    return InvalidArgument(
        "policy \"{}\": the native engine knows {}", policy, fmt::join(kPolicies, ", "));
  }
  RETURN_IF_ERROR(engine_->SetPolicy(OnGraph(policy)));
  policy_ = policy;
  return absl::OkStatus();
}

// ---- levels

bool ClusterGraph::FindGroup(const Node& node, Group** group) {
  *group = nullptr;
  if (table_.LevelsInUse() != in_use_) return false;
  for (size_t depth = 0; depth < in_use_.size(); ++depth) {
    const std::string name = GroupOf(node.spec, std::span(in_use_).first(depth + 1));
    const auto known = groups_.find(name);
    const bool labelled = LabelOf(node.spec, in_use_[depth].label) != nullptr;
    if (known != groups_.end()) {
      // Of an earlier node of this name.
      if (!labelled && known->second->order != OrderOfOwn(node)) return false;
      *group = known->second.get();
      continue;
    }
    // The order of those with a label follows from all of them.
    if (labelled) return false;
    *group = AddGroup(name, depth, *group, OrderOfOwn(node));
  }
  return true;
}

ClusterGraph::Group* ClusterGraph::AddGroup(const std::string& name,
                                            size_t depth,
                                            Group* above,
                                            int64_t order) {
  auto group = std::make_unique<Group>();
  group->above = above;
  group->order = order;
  Vertex vertex;
  vertex.type = engine_->InternType(in_use_[depth].name);
  vertex.name = name.substr(name.rfind('/') + 1);
  vertex.id = order;
  vertex.uniq_id = kFirstGroup + order;
  const VertexId parent = above != nullptr ? above->vertex : engine_->graph().root();
  group->vertex = AddVertex(std::move(vertex), "/cluster0/" + name, parent);
  group->edge = engine_->graph().vertex(group->vertex).in.front();
  return groups_.emplace(name, std::move(group)).first->second.get();
}

void ClusterGraph::AddGroups() {
  std::vector<int64_t> next(in_use_.size(), 0);
  for (const LevelGroup& group : table_.Groups()) {
    const auto above = groups_.find(group.name.substr(0, group.name.rfind('/')));
    AddGroup(group.name,
             group.depth,
             above == groups_.end() ? nullptr : above->second.get(),
             group.own == nullptr ? next[group.depth]++ : OrderOfOwn(*group.own));
  }
}

void ClusterGraph::Rebuild() {
  stale_ = false;
  in_use_ = table_.LevelsInUse();
  groups_.clear();
  planted_.clear();
  by_vertex_.clear();
  ways_.clear();
  closed_.clear();
  next_leaf_ = 0;
  engine_ = EmptyCluster(policy_);
  engine_->SetWorkload(expected_.Shapes());
  AddGroups();
  for (const auto& [ordinal, node] : table_.nodes()) {
    Group* group = nullptr;
    CHECK(FindGroup(*node, &group), "node {}", node->spec.name);
    Plant(node, group);
  }
}

uint64_t ClusterGraph::Group::weight() const {
  return live_slots == 0 ? GraphState::kUntouched : static_cast<uint64_t>(free_cpu);
}

// ---- nodes

void ClusterGraph::Add(Node* node) {
  if (stale_) return;
  Group* group = nullptr;
  if (FindGroup(*node, &group)) {
    Plant(node, group);
  } else {
    stale_ = true;
  }
}

bool ClusterGraph::Update(Node* node, const NodeSpec& /*before*/) {
  if (stale_) return false;
  Group* group = nullptr;
  if (!FindGroup(*node, &group) || planted_.at(node).group != group) {
    stale_ = true;
    return false;
  }
  if (node->devices.size() == node->device_free.size()) {
    Tend(node);
    return false;
  }
  Uproot(node);
  Plant(node, group);
  return true;
}

void ClusterGraph::Remove(Node* node) {
  if (stale_) return;
  Uproot(node);
  if (table_.LevelsInUse() != in_use_) stale_ = true;
}

void ClusterGraph::Uproot(Node* node) {
  OpenNodes();
  engine_->Cancel(kForeign | node->spec.ordinal);
  const Planted planted = planted_.at(node);
  const Vertex& vertex = engine_->graph().vertex(node->here.vertex);
  CHECK(engine_->RemoveSubgraph(std::string(vertex.paths.front().second)).ok());
  by_vertex_.erase(node->here.vertex);
  planted_.erase(node);
  CountAbove(planted.group, -planted.free_cpu, -planted.live_slots);
}

VertexId ClusterGraph::AddVertex(Vertex vertex, std::string_view path, VertexId parent) {
  vertex.basename = engine_->graph().types()[vertex.type];
  vertex.paths.emplace_back(ResourceGraph::kContainment, path);
  const auto added = engine_->AddVertex(std::move(vertex), parent);
  CHECK(added.ok(), "{}", Message(added.status()));
  return *added;
}

std::string ClusterGraph::PathOf(const Node& node) const {
  const std::string group = GroupOf(node.spec, in_use_);
  return "/cluster0/" + group + (group.empty() ? "" : "/") + node.spec.name;
}

void ClusterGraph::Plant(Node* node, Group* group) {
  Vertex vertex;
  vertex.type = engine_->InternType("node");
  vertex.name = node->spec.name;
  vertex.id = static_cast<int64_t>(node->spec.ordinal);
  vertex.rank = vertex.id;
  vertex.uniq_id = vertex.id + 1;
  const VertexId parent = group != nullptr ? group->vertex : engine_->graph().root();
  const VertexId v = AddVertex(std::move(vertex), PathOf(*node), parent);
  node->here = {v, engine_->graph().vertex(v).in.front()};
  node->leaves.assign(table_.resources().size(), {});
  by_vertex_[v] = node;
  planted_[node].group = group;
  AddDevices(node);
  Tend(node);
}

Node::Leaf ClusterGraph::LeafOf(Node* node, size_t resource) {
  Node::Leaf& leaf = node->leaves[resource];
  if (leaf.edge != kNoEdge) return leaf;
  leaf = AddLeaf(node, resource, 0, table_.resources()[resource], SizeOf(*node, resource));
  return leaf;
}

void ClusterGraph::AddDevices(Node* node) {
  node->devices.clear();
  for (size_t i = 0; i < node->device_free.size(); ++i) {
    // No resource has such a name.
    const std::string name = fmt::format("{}#{}", kGpuMilli, i);
    node->devices.push_back(
        AddLeaf(node, NodeTable::kGpus, static_cast<int64_t>(i), name, kWholeDevice));
  }
}

Node::Leaf ClusterGraph::AddLeaf(
    Node* node, size_t resource, int64_t id, const std::string& name, int64_t size) {
  Vertex vertex;
  vertex.type = engine_->InternType(table_.resources()[resource]);
  vertex.name = name;
  vertex.id = id;
  vertex.uniq_id = kFirstLeaf + next_leaf_++;
  vertex.rank = static_cast<int64_t>(node->spec.ordinal);
  vertex.size = size;
  vertex.divisible = true;
  const VertexId v = AddVertex(std::move(vertex), PathOf(*node) + "/" + name, node->here.vertex);
  return {v, engine_->graph().vertex(v).in.front()};
}

void ClusterGraph::Tend(Node* node) {
  engine_->SetUp(node->here.vertex, node->spec.schedulable);
  engine_->SetProperties(node->here.vertex, node->spec.labels);
  engine_->SetTaints(node->here.vertex, node->spec.taints);
  for (const Amount& amount : node->spec.resources) {
    if (amount.resource != kGpuMilli) LeafOf(node, table_.Number(amount.resource));
  }
  for (size_t resource = 0; resource < node->leaves.size(); ++resource) {
    const Node::Leaf& leaf = node->leaves[resource];
    const int64_t size = SizeOf(*node, resource);
    if (leaf.edge == kNoEdge || engine_->graph().vertex(leaf.vertex).size == size) continue;
    engine_->Resize(leaf.vertex, size);
  }
  HoldForeign(node);
  Reorder(node);
}

void ClusterGraph::HoldForeign(Node* node) {
  const JobNumber number = kForeign | node->spec.ordinal;
  engine_->Cancel(number);
  Holding holding;
  holding.duration_s = kForever;
  for (size_t resource = 0; resource < node->leaves.size(); ++resource) {
    const Node::Leaf& leaf = node->leaves[resource];
    const int64_t amount = std::min(node->foreign[resource], kMostOfOne);
    if (leaf.edge == kNoEdge || amount == 0) continue;
    holding.vertices.push_back({leaf.vertex, leaf.edge, amount, true});
  }
  for (size_t i = 0; i < node->devices.size(); ++i) {
    const int64_t amount = node->device_foreign[i];
    const Node::Leaf& device = node->devices[i];
    if (amount > 0) holding.vertices.push_back({device.vertex, device.edge, amount, true});
  }
  if (holding.vertices.empty()) return;
  holding.vertices.push_back({node->here.vertex, node->here.edge, 1, false});
  for (const Group* group = planted_.at(node).group; group != nullptr; group = group->above) {
    holding.vertices.push_back({group->vertex, group->edge, 1, false});
  }
  holding.vertices.push_back({engine_->graph().root(), kNoEdge, 1, false});
  CHECK(engine_->Restore(number, holding).ok());
}

void ClusterGraph::CountAbove(Group* group, int64_t free_cpu, int64_t live_slots) {
  for (; group != nullptr; group = group->above) {
    group->free_cpu += free_cpu;
    group->live_slots += live_slots;
    if (engine_->graph().vertex(group->vertex).out.empty()) continue;
    engine_->SetTryOrder(group->vertex, group->weight());
  }
}

void ClusterGraph::Reorder(Node* node) {
  if (stale_) return;
  Planted& planted = planted_.at(node);
  const int64_t free = node->free[NodeTable::kCpu];
  const int64_t more_free = free - std::exchange(planted.free_cpu, free);
  const int64_t more_slots = node->live_slots - std::exchange(planted.live_slots, node->live_slots);
  CountAbove(planted.group, more_free, more_slots);
  // Others have what we leave them.
  if (!node->devices.empty() && node->foreign[NodeTable::kGpus] > 0) HoldForeign(node);
  if (engine_->graph().vertex(node->here.vertex).out.empty()) return;
  engine_->SetTryOrder(
      node->here.vertex,
      node->live_slots == 0 ? GraphState::kUntouched : static_cast<uint64_t>(free));
}

// ---- what is held

void ClusterGraph::Hold(JobNumber first,
                        const Shares& shares,
                        std::span<const std::vector<Need>> needs,
                        const Span& span) {
  if (stale_) return;
  Release(first, needs.size());
  for (uint32_t slots = 0; slots < needs.size(); ++slots) {
    Holding holding;
    holding.at_s = span.reserved_s;
    holding.duration_s = span.end_s == 0 ? kForever : span.end_s - span.reserved_s;
    holding.reserved = span.reserved_s != 0;
    Above above;
    for (const Share& share : shares) {
      if (share.group != slots) continue;
      for (const Need& need : needs[slots]) {
        if (need.resource == NodeTable::kGpus) continue;
        const Node::Leaf leaf = LeafOf(share.node, need.resource);
        holding.vertices.push_back({leaf.vertex, leaf.edge, need.amount * share.slots, true});
      }
      HoldDevices(share, needs[slots], &holding);
      holding.vertices.push_back({share.node->here.vertex, share.node->here.edge, 1, false});
      NoteAbove(*share.node, &above);
    }
    if (holding.vertices.empty()) continue;
    AddAbove(above, &holding);
    CHECK(engine_->Restore(first + slots, holding).ok());
  }
}

void ClusterGraph::NoteAbove(const Node& node, Above* above) const {
  size_t depth = in_use_.size();
  for (const Group* group = planted_.at(&node).group; group != nullptr; group = group->above) {
    (*above)[depth--].emplace(group->vertex, group->edge);
  }
}

void ClusterGraph::AddAbove(const Above& above, Holding* holding) const {
  for (const auto& [depth, groups] : above) {
    for (const auto& [vertex, edge] : groups) {
      holding->vertices.push_back({vertex, edge, 1, false});
    }
  }
  holding->vertices.push_back({engine_->graph().root(), kNoEdge, 1, false});
}

void ClusterGraph::HoldDevices(const Share& share,
                               const std::vector<Need>& needs,
                               Holding* holding) {
  for (const Need& need : needs) {
    if (need.resource != NodeTable::kGpus) continue;
    std::map<uint32_t, int64_t> amounts;
    for (const uint32_t device : share.devices) amounts[device] += DevicesFor(need.amount).of_each;
    for (const auto& [device, amount] : amounts) {
      // The node may have lost some of them.
      if (device >= share.node->devices.size()) continue;
      const Node::Leaf& leaf = share.node->devices[device];
      holding->vertices.push_back({leaf.vertex, leaf.edge, amount, true});
    }
  }
}

void ClusterGraph::Replan(JobNumber first, size_t groups, int64_t end_s) {
  if (stale_) return;
  for (JobNumber number = first; number < first + groups; ++number) {
    const Holding* held = engine_->Find(number);
    if (held == nullptr) continue;
    Holding replanned = *held;
    replanned.duration_s = end_s - replanned.at_s;
    engine_->Cancel(number);
    CHECK(engine_->Restore(number, replanned).ok());
  }
}

void ClusterGraph::Release(JobNumber first, size_t groups) {
  if (stale_) return;
  for (size_t group = 0; group < groups; ++group) engine_->Cancel(first + group);
}

int64_t ClusterGraph::FreeDuring(const Node::Leaf& leaf, const When& when) const {
  if (leaf.edge == kNoEdge) return 0;
  const int64_t duration_s = when.duration_s == 0 ? kForever : when.duration_s;
  return engine_->FreeDuring(leaf.vertex, when.now_s, duration_s);
}

}  // namespace fluxqueue::graph
