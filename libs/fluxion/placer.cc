#include "libs/fluxion/placer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/fluxion/slot_jobspec.h"
#include "libs/graph/cluster_graph.h"
#include "libs/graph/explanation.h"
#include "libs/graph/slot_requests.h"

namespace fluxqueue::fluxion {
namespace {

using graph::Constraint;
using graph::JobNumber;
using graph::Jobspec;
using graph::Need;
using graph::Node;
using graph::NodeTable;
using graph::SlotGroup;

constexpr std::array<std::string_view, 7> kPolicies = {
    "first", "high", "hinode", "locality", "lonode", "low", "variation"};

// For a context, with pauses of 1 ms, 2 ms …: two seconds in all.
constexpr int kTriesToOpen = 12;
// A call that ends the library's process so often will do so again.
constexpr int kTriesToCall = 3;
// Of jobspecs, that something is kept of.
constexpr size_t kMaxShapes = 1024;

size_t DepthOf(const graph::Level& level, const std::vector<graph::Level>& in_use) {
  return static_cast<size_t>(std::find(in_use.begin(), in_use.end(), level) - in_use.begin());
}

}  // namespace

FluxionPlacer::FluxionPlacer(NodeTable* table, PlacerOptions options)
    : table_(*table), options_(std::move(options)) {
  remark_ = fmt::format("the fluxion engine gives cpu and memory in whole granules of {} and {}",
                        graph::FormatAmount("cpu", options_.granules.cpu),
                        graph::FormatAmount("memory", options_.granules.bytes));
}

absl::Status FluxionPlacer::SetPolicy(std::string_view policy) {
  if (std::find(kPolicies.begin(), kPolicies.end(), policy) == kPolicies.end()) {
    return InvalidArgument(
        "policy \"{}\": the fluxion engine knows {}", policy, fmt::join(kPolicies, ", "));
  }
  if (policy != policy_) Renew();
  policy_ = policy;
  return absl::OkStatus();
}

Jobspec FluxionPlacer::AsTaken(const Jobspec& jobspec) const {
  return Rounded(jobspec, options_.granules);
}

// ---- the graph

void FluxionPlacer::Add(Node* /*node*/) {
  Renew();
}

bool FluxionPlacer::Update(Node* node, const graph::NodeSpec& before) {
  const graph::NodeSpec& now = node->spec;
  if (now.labels != before.labels || now.taints != before.taints ||
      now.resources != before.resources) {
    Renew();
  }
  Reorder(node);
  return false;
}

void FluxionPlacer::Remove(Node* node) {
  for (auto& [number, parts] : jobs_) {
    for (Part& part : parts) {
      std::erase_if(part.pieces, [node](const Piece& piece) { return piece.node == node; });
    }
  }
  nodes_.erase(node);
  unsettled_.erase(node->spec.ordinal);
  Renew();
}

void FluxionPlacer::Lose(const absl::Status& why) {
  LogWarning("Fluxion's library is started again", {{"why", Message(why)}});
  options_.lost(why);
  context_.reset();
}

Context* FluxionPlacer::Ready() {
  for (int tries = 1; !given_up_; ++tries) {
    absl::Status status = context_ == nullptr ? Open() : absl::OkStatus();
    if (status.ok()) status = Settle();
    if (status.ok()) return context_.get();
    Lose(status);
    if (tries == kTriesToOpen || options_.abandoned()) {
      given_up_ = true;
      options_.failed(status);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1 << tries) / 2);
    }
  }
  return nullptr;
}

absl::Status FluxionPlacer::Open() {
  vertices_.emplace(table_, resources_, options_.granules);
  nodes_.clear();
  for (auto& [number, parts] : jobs_) {
    for (Part& part : parts) {
      Trim(&part);
      Mark(part.pieces, Use::kHeld);
    }
  }
  ASSIGN_OR_RETURN(context_,
                   options_.open(vertices_->Jgf(), {.policy = policy_, .traverser = "simple"}));
  for (const auto& [number, parts] : jobs_) {
    for (const Part& part : parts) {
      if (part.pieces.empty()) continue;
      const absl::Status restored =
          context_->Restore(part.id, vertices_->ResourceSetOf(part.pieces));
      if (absl::IsUnavailable(restored)) return restored;
      if (!restored.ok()) ShutNodesOf(part, restored);
    }
  }
  for (const auto& [ordinal, node] : table_.nodes()) unsettled_[ordinal] = node;
  return absl::OkStatus();
}

void FluxionPlacer::ShutNodesOf(const Part& part, const absl::Status& why) {
  for (const Piece& piece : part.pieces) {
    NodeState& state = nodes_[piece.node];
    if (state.shut) continue;
    LogError("Fluxion's library refuses what is held on a node, which gets nothing more",
             {{"node", piece.node->spec.name}, {"why", Message(why)}});
    state.shut = true;
  }
}

void FluxionPlacer::Trim(Part* part) const {
  for (Piece& piece : part->pieces) {
    const int64_t there =
        options_.granules.In(NameOf(piece.resource), piece.node->capacity[piece.resource]);
    std::erase_if(piece.granules, [there](uint32_t granule) { return granule >= there; });
  }
  std::erase_if(part->pieces, [](const Piece& piece) { return piece.granules.empty(); });
}

std::vector<FluxionPlacer::Use>& FluxionPlacer::UsesOf(const Node& node, size_t resource) {
  const auto [uses, added] = nodes_[&node].uses.try_emplace(resource);
  if (added) {
    const int64_t there = options_.granules.In(NameOf(resource), node.capacity[resource]);
    uses->second.assign(static_cast<size_t>(there), Use::kFree);
  }
  return uses->second;
}

void FluxionPlacer::Mark(const std::vector<Piece>& pieces, Use use) {
  for (const Piece& piece : pieces) {
    std::vector<Use>& uses = UsesOf(*piece.node, piece.resource);
    for (const uint32_t granule : piece.granules) {
      if (granule < uses.size()) uses[granule] = use;
    }
  }
}

absl::Status FluxionPlacer::Settle() {
  while (!unsettled_.empty()) {
    RETURN_IF_ERROR(SettleNode(*unsettled_.begin()->second));
    unsettled_.erase(unsettled_.begin());
  }
  return absl::OkStatus();
}

absl::Status FluxionPlacer::SettleNode(const Node& node) {
  for (const size_t resource : resources_) UsesOf(node, resource);
  NodeState& state = nodes_[&node];
  const bool up = node.spec.schedulable && !state.shut;
  if (state.up != up) {
    RETURN_IF_ERROR(context_->SetUp(vertices_->PathOf(node), up));
    state.up = up;
  }
  // What nobody is given need not be kept.
  std::vector<Piece> keep = up ? ToKeep(node, state) : state.kept.pieces;
  if (keep == state.kept.pieces) return absl::OkStatus();
  if (!state.kept.pieces.empty()) {
    RETURN_IF_ERROR(context_->Cancel(state.kept.id));
    Mark(std::exchange(state.kept.pieces, {}), Use::kFree);
  }
  if (keep.empty()) return absl::OkStatus();
  state.kept = {next_id_++, std::move(keep)};
  Mark(state.kept.pieces, Use::kKept);
  const absl::Status kept =
      context_->Restore(state.kept.id, vertices_->ResourceSetOf(state.kept.pieces));
  if (kept.ok() || absl::IsUnavailable(kept)) return kept;
  ShutNodesOf(state.kept, kept);
  Mark(std::exchange(state.kept.pieces, {}), Use::kFree);
  state.up = false;
  return context_->SetUp(vertices_->PathOf(node), false);
}

std::vector<Piece> FluxionPlacer::ToKeep(const Node& node, const NodeState& state) const {
  std::vector<Piece> keep;
  for (const auto& [resource, uses] : state.uses) {
    Piece piece{&node, resource};
    if (resource == NodeTable::kGpus) {
      for (uint32_t device = 0; device < uses.size(); ++device) {
        const bool whole =
            device < node.device_free.size() && node.device_free[device] == graph::kWholeDevice;
        if (uses[device] != Use::kHeld && !whole) piece.granules.push_back(device);
      }
    } else {
      const auto held = std::count(uses.begin(), uses.end(), Use::kHeld);
      const int64_t free = options_.granules.In(NameOf(resource), node.free[resource]);
      int64_t beyond = static_cast<int64_t>(uses.size()) - held -
                       std::max<int64_t>(0, free - UnbookedOn(node, resource));
      for (auto i = static_cast<uint32_t>(uses.size()); beyond > 0; --beyond) {
        do --i;
        while (uses[i] == Use::kHeld);
        piece.granules.push_back(i);
      }
      std::reverse(piece.granules.begin(), piece.granules.end());
    }
    if (!piece.granules.empty()) keep.push_back(std::move(piece));
  }
  return keep;
}

// ---- what is held

void FluxionPlacer::Hold(JobNumber first,
                         const Shares& shares,
                         std::span<const std::vector<Need>> needs,
                         const Span& /*span*/) {
  Release(first, needs.size());
  for (uint32_t group = 0; group < needs.size(); ++group) {
    Know(needs[group]);
    Part part{next_id_++};
    for (const Share& share : shares) {
      if (share.group != group) continue;
      std::vector<Piece> pieces = Choose(share, needs[group]);
      std::move(pieces.begin(), pieces.end(), std::back_inserter(part.pieces));
    }
    if (part.pieces.empty()) continue;
    if (context_ != nullptr) {
      const absl::Status held = context_->Restore(part.id, vertices_->ResourceSetOf(part.pieces));
      if (!held.ok()) Lose(held);
    }
    jobs_[first + group].push_back(std::move(part));
  }
}

// Fewer where there are not so many: what is missing is kept from others instead (ToKeep).
std::vector<Piece> FluxionPlacer::Choose(const Share& share, std::span<const Need> needs) {
  std::vector<Piece> pieces;
  for (const Need& need : needs) {
    Piece piece{share.node, need.resource, ChooseGranules(share, need)};
    if (!piece.granules.empty()) pieces.push_back(std::move(piece));
  }
  Mark(pieces, Use::kHeld);
  return pieces;
}

std::vector<uint32_t> FluxionPlacer::ChooseGranules(const Share& share, const Need& need) {
  const std::vector<Use>& uses = UsesOf(*share.node, need.resource);
  NodeState& state = nodes_[share.node];
  std::vector<uint32_t> granules;
  if (need.resource == NodeTable::kGpus) {
    Unkeep(*share.node, &state);
    const std::set<uint32_t> devices(share.devices.begin(), share.devices.end());
    for (const uint32_t device : devices) {
      if (device < uses.size() && uses[device] == Use::kFree) granules.push_back(device);
    }
    return granules;
  }
  const auto wanted = static_cast<size_t>(
      options_.granules.Needed(NameOf(need.resource), need.amount) * share.slots);
  if (static_cast<size_t>(std::count(uses.begin(), uses.end(), Use::kFree)) < wanted) {
    Unkeep(*share.node, &state);
  }
  for (uint32_t i = 0; i < uses.size() && granules.size() < wanted; ++i) {
    if (uses[i] == Use::kFree) granules.push_back(i);
  }
  return granules;
}

int64_t FluxionPlacer::UnbookedOn(const Node& node, size_t resource) const {
  int64_t granules = 0;
  if (!matching_.has_value()) return granules;
  for (auto job = jobs_.lower_bound(*matching_); job != jobs_.end(); ++job) {
    for (const Part& part : job->second) {
      for (const Piece& piece : part.pieces) {
        if (piece.node != &node || piece.resource != resource) continue;
        granules += static_cast<int64_t>(piece.granules.size());
      }
    }
  }
  return granules;
}

void FluxionPlacer::Unkeep(const Node& node, NodeState* state) {
  if (state->kept.pieces.empty()) return;
  Mark(std::exchange(state->kept.pieces, {}), Use::kFree);
  unsettled_[node.spec.ordinal] = table_.Find(node.spec.name);
  if (context_ == nullptr) return;
  const absl::Status cancelled = context_->Cancel(state->kept.id);
  if (!cancelled.ok()) Lose(cancelled);
}

void FluxionPlacer::Release(JobNumber first, size_t groups) {
  for (JobNumber number = first; number < first + groups; ++number) {
    const auto found = jobs_.find(number);
    if (found == jobs_.end()) continue;
    const std::vector<Part> parts = std::move(found->second);
    jobs_.erase(found);
    for (const Part& part : parts) {
      Mark(part.pieces, Use::kFree);
      if (context_ == nullptr || part.pieces.empty()) continue;
      const absl::Status cancelled = context_->Cancel(part.id);
      if (!cancelled.ok()) Lose(cancelled);
    }
  }
}

// ---- the match

void FluxionPlacer::Know(std::span<const Need> needs) {
  for (const Need& need : needs) {
    if (resources_.insert(need.resource).second) Renew();
  }
}

bool FluxionPlacer::TooLarge(std::span<const Need> needs) const {
  return std::any_of(needs.begin(), needs.end(), [this](const Need& need) {
    const std::string& name = NameOf(need.resource);
    return options_.granules.In(name, table_.Largest(name)) <
           options_.granules.Needed(name, need.amount);
  });
}

std::optional<graph::Placer::Place> FluxionPlacer::Match(JobNumber first,
                                                         const Jobspec& jobspec,
                                                         const When& when) {
  const std::optional<Jobspec> on_open = OnOpenNodes(jobspec, when);
  if (!on_open.has_value()) return std::nullopt;
  matching_ = first;
  hopeless_ = false;
  std::optional<Shares> shares = MatchWays(first, *on_open);
  matching_.reset();
  if (!shares.has_value()) return std::nullopt;
  return Place{*std::move(shares), when.now_s};
}

std::optional<Jobspec> FluxionPlacer::OnOpenNodes(const Jobspec& jobspec, const When& when) const {
  const int64_t end = when.now_s + (when.duration_s == 0 ? graph::kForever : when.duration_s);
  std::vector<std::string> closed;
  for (const auto& [ordinal, node] : table_.nodes()) {
    const bool meets =
        std::any_of(closures_.begin(), closures_.end(), [&](const graph::Closure& closure) {
          return closure.Meets(when.now_s, end) && closure.nodes.Matches(node->spec);
        });
    if (meets) closed.push_back(node->spec.name);
  }
  if (closed.empty()) return jobspec;
  if (closed.size() == table_.size()) return std::nullopt;
  Jobspec on_open = jobspec;
  on_open.constraint = Constraint::And(
      {jobspec.constraint, Constraint::Not(Constraint::IsAnyHost(std::move(closed)))});
  return on_open;
}

std::optional<graph::Placer::Shares> FluxionPlacer::MatchWays(JobNumber first,
                                                              const Jobspec& jobspec) {
  for (const SlotGroup& group : jobspec.groups) {
    const std::optional<std::vector<Need>> needs = table_.NeedsOf(group.request);
    if (!needs || TooLarge(*needs)) return std::nullopt;
    Know(*needs);
  }
  if (Ready() == nullptr) return std::nullopt;
  const std::vector<graph::Level> in_use = table_.LevelsInUse();
  // To go from node to node is dear when it cannot end well.
  if (jobspec.slots > 1 && jobspec.groups.size() == 1 &&
      graph::ExplainShortfall(AsTaken(jobspec), table_, table_.levels(), in_use).slots_now <
          jobspec.slots) {
    return std::nullopt;
  }
  for (const graph::SlotRequests& way : graph::WaysToMeet(jobspec, table_.levels(), in_use)) {
    for (const std::vector<uint32_t>& order : graph::OrdersOf(jobspec, table_)) {
      if (TryWay(first, jobspec, way.level, order)) return SharesOf(first, jobspec);
    }
  }
  return std::nullopt;
}

bool FluxionPlacer::TryWay(JobNumber first,
                           const Jobspec& jobspec,
                           const std::optional<graph::Level>& level,
                           const std::vector<uint32_t>& order) {
  const Constraint usable = vertices_->Usable(jobspec.constraint, jobspec.tolerations);
  if (!level.has_value()) return TryTogether(first, jobspec, order, usable);
  const std::vector<graph::Level> in_use = table_.LevelsInUse();
  const size_t depth = DepthOf(*level, in_use);
  std::vector<const Node*> groups = vertices_->OneOfEach(depth);
  if (IsDescending()) std::reverse(groups.begin(), groups.end());
  return std::any_of(groups.begin(), groups.end(), [&](const Node* node) {
    const Constraint inside = graph::InGroupOf(node->spec, std::span(in_use).first(depth + 1));
    return TryTogether(first, jobspec, order, Constraint::And({usable, inside}));
  });
}

bool FluxionPlacer::TryTogether(JobNumber first,
                                const Jobspec& jobspec,
                                const std::vector<uint32_t>& order,
                                const Constraint& where) {
  const bool all = std::all_of(order.begin(), order.end(), [&](uint32_t group) {
    return Fill(first + group, jobspec.groups[group], where);
  });
  if (!all) Release(first, jobspec.groups.size());
  return all;
}

bool FluxionPlacer::Fill(JobNumber number, const SlotGroup& group, const Constraint& where) {
  for (int64_t missing = group.slots; missing > 0;) {
    std::optional<Part> part = Ask(SlotJobspec(group.request, missing, where, options_.granules));
    if (!part) return false;
    const int64_t got = SharesOf({*part}, group).front().slots;
    if (got < 1 || got > missing) {
      Lose(
          MakeStatus(absl::StatusCode::kInternal, "R has {} slots, of {} asked for", got, missing));
      return false;
    }
    missing -= got;
    Mark(part->pieces, Use::kHeld);
    jobs_[number].push_back(*std::move(part));
  }
  return true;
}

std::optional<FluxionPlacer::Part> FluxionPlacer::Ask(const std::string& jobspec) {
  for (int tries = 0; tries < kTriesToCall && !hopeless_; ++tries) {
    Part part{next_id_++};
    Context* context = Ready();
    if (context == nullptr) return std::nullopt;
    const absl::StatusOr<Context::Placed> placed =
        context->Match(graph::MatchOperation::kAllocate, jobspec, part.id);
    absl::Status status = placed.status();
    if (status.ok()) {
      absl::StatusOr<std::vector<Piece>> pieces = vertices_->PiecesOf(placed->resources);
      status = pieces.ok() ? CheckFree(*pieces) : pieces.status();
      if (status.ok()) {
        part.pieces = *std::move(pieces);
        return part;
      }
    } else if (!absl::IsUnavailable(status)) {
      if (absl::IsInvalidArgument(status)) {
        LogError("Fluxion's library refuses a jobspec",
                 {{"why", Message(status)}, {"jobspec", jobspec}});
      }
      return std::nullopt;
    }
    Lose(status);
  }
  if (!hopeless_) {
    LogError("Fluxion's library fails on a jobspec whenever it is asked; it is taken as not now",
             {{"jobspec", jobspec}});
  }
  hopeless_ = true;
  return std::nullopt;
}

absl::Status FluxionPlacer::CheckFree(const std::vector<Piece>& pieces) {
  if (pieces.empty()) return MakeStatus(absl::StatusCode::kInternal, "R names no resource");
  for (const Piece& piece : pieces) {
    const std::vector<Use>& uses = UsesOf(*piece.node, piece.resource);
    for (const uint32_t granule : piece.granules) {
      if (piece.node == pieces.front().node && uses[granule] == Use::kFree) continue;
      return MakeStatus(absl::StatusCode::kInternal,
                        "R names {} {} of node {}, which is held already or another node's",
                        TypeOf(NameOf(piece.resource)),
                        granule,
                        piece.node->spec.name);
    }
  }
  return absl::OkStatus();
}

graph::Placer::Shares FluxionPlacer::SharesOf(JobNumber first, const Jobspec& jobspec) const {
  Shares all;
  for (uint32_t group = 0; group < jobspec.groups.size(); ++group) {
    Shares shares = SharesOf(jobs_.at(first + group), jobspec.groups[group]);
    for (Share& share : shares) {
      share.group = group;
      all.push_back(std::move(share));
    }
  }
  return all;
}

graph::Placer::Shares FluxionPlacer::SharesOf(const std::vector<Part>& parts,
                                              const SlotGroup& slots) const {
  const graph::Amount& counted = slots.request.front();
  const int64_t each = options_.granules.Needed(counted.resource, counted.amount);
  std::map<uint64_t, Share> by_node;
  for (const Part& part : parts) {
    for (const Piece& piece : part.pieces) {
      Share& share = by_node[piece.node->spec.ordinal];
      share.node = table_.Find(piece.node->spec.name);
      if (NameOf(piece.resource) == counted.resource) {
        share.slots += static_cast<int64_t>(piece.granules.size()) / each;
      }
      if (piece.resource != NodeTable::kGpus) continue;
      share.devices.insert(share.devices.end(), piece.granules.begin(), piece.granules.end());
    }
  }
  Shares shares;
  for (auto& [ordinal, share] : by_node) {
    std::sort(share.devices.begin(), share.devices.end());
    shares.push_back(std::move(share));
  }
  std::stable_sort(shares.begin(), shares.end(), [this](const Share& a, const Share& b) {
    return vertices_->AboveOf(*a.node) < vertices_->AboveOf(*b.node);
  });
  if (IsDescending()) std::reverse(shares.begin(), shares.end());
  return shares;
}

bool FluxionPlacer::CouldEver(const Jobspec& jobspec) {
  if (ever_.size() >= kMaxShapes) ever_.clear();
  Ever& ever = ever_[jobspec.shape];
  if (ever.version != table_.version()) {
    ever = {table_.version(), graph::FitsEmptyCluster(table_, AsTaken(jobspec))};
  }
  return ever.could;
}

}  // namespace fluxqueue::fluxion
