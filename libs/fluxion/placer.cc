#include "libs/fluxion/placer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/graph/explanation.h"

namespace fluxqueue::fluxion {
namespace {

using graph::JobNumber;
using graph::Jobspec;
using graph::Need;
using graph::Node;
using graph::NodeTable;

constexpr std::array<std::string_view, 7> kPolicies = {
    "first", "high", "hinode", "locality", "lonode", "low", "variation"};

// For a context, with pauses of 1 ms, 2 ms …: two seconds in all.
constexpr int kTriesToOpen = 12;

}  // namespace

FluxionPlacer::FluxionPlacer(NodeTable* table, PlacerOptions options)
    : table_(*table), options_(std::move(options)), plan_(table, &expected_) {
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
  return plan_.SetPolicy(IsDescending() ? "hinode" : "lonode");
}

Jobspec FluxionPlacer::AsTaken(const Jobspec& jobspec) const {
  return Rounded(jobspec, options_.granules);
}

std::vector<std::vector<Need>> FluxionPlacer::AsTaken(
    std::span<const std::vector<Need>> needs) const {
  std::vector<std::vector<Need>> taken(needs.begin(), needs.end());
  for (std::vector<Need>& of_slot : taken) {
    for (Need& need : of_slot) {
      const std::string& name = NameOf(need.resource);
      need.amount = options_.granules.Needed(name, need.amount) * options_.granules.Of(name);
    }
  }
  return taken;
}

// ---- the graph

void FluxionPlacer::LevelsChanged() {
  plan_.LevelsChanged();
  Renew();
}

void FluxionPlacer::Add(Node* node) {
  plan_.Add(node);
  Renew();
}

bool FluxionPlacer::Update(Node* node, const graph::NodeSpec& before) {
  const graph::NodeSpec& now = node->spec;
  if (now.labels != before.labels || now.taints != before.taints ||
      now.resources != before.resources) {
    Renew();
  }
  unsettled_[now.ordinal] = node;
  return plan_.Update(node, before);
}

void FluxionPlacer::Reorder(Node* node) {
  plan_.Reorder(node);
  unsettled_[node->spec.ordinal] = node;
}

void FluxionPlacer::SetClosures(const std::vector<graph::Closure>& closures) {
  plan_.SetClosures(closures);
  closures_ = closures;
}

void FluxionPlacer::Remove(Node* node) {
  plan_.Remove(node);
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
        const bool whole = device < node.devices.size() &&
                           plan_.FreeDuring(node.devices[device], during_) == graph::kWholeDevice;
        if (uses[device] != Use::kHeld && !whole) piece.granules.push_back(device);
      }
    } else {
      const auto held = std::count(uses.begin(), uses.end(), Use::kHeld);
      const int64_t free =
          options_.granules.In(NameOf(resource), plan_.FreeDuring(node.leaves[resource], during_));
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
                         const Span& span) {
  Release(first, needs.size());
  plan_.Hold(first, shares, AsTaken(needs), span);
  if (span.reserved_s != 0) return NoteReserved(first, shares);
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

void FluxionPlacer::NoteReserved(JobNumber first, const Shares& shares) {
  std::vector<Node*>& nodes = reserved_[first];
  for (const Share& share : shares) nodes.push_back(share.node);
}

void FluxionPlacer::Release(JobNumber first, size_t groups) {
  plan_.Release(first, groups);
  if (const auto reserved = reserved_.extract(first)) {
    for (Node* node : reserved.mapped()) unsettled_[node->spec.ordinal] = node;
  }
  Withdraw(first, groups);
}

void FluxionPlacer::Withdraw(JobNumber first, size_t groups) {
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

}  // namespace fluxqueue::fluxion
