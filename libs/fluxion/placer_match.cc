// Where the slots of a jobspec go: when by the plan, where by Fluxion's library.
#include <algorithm>
#include <set>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/fluxion/placer.h"
#include "libs/fluxion/slot_jobspec.h"
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

// A call that ends the library's process so often will do so again.
constexpr int kTriesToCall = 3;

}  // namespace

std::vector<std::vector<Need>> FluxionPlacer::NeedsOf(const Jobspec& jobspec) const {
  std::vector<std::vector<Need>> needs;
  for (const SlotGroup& group : jobspec.groups) needs.push_back(*table_.NeedsOf(group.request));
  return needs;
}

void FluxionPlacer::Know(std::span<const Need> needs) {
  for (const Need& need : needs) {
    if (resources_.insert(need.resource).second) Renew();
  }
}

std::optional<graph::Placer::Place> FluxionPlacer::Match(JobNumber first,
                                                         const Jobspec& jobspec,
                                                         const When& when) {
  std::optional<Place> planned = plan_.Match(first, AsTaken(jobspec), when);
  if (!planned || planned->at_s == kNever) return planned;
  if (planned->at_s > when.now_s) {
    NoteReserved(first, planned->shares);
    return planned;
  }
  plan_.Release(first, jobspec.groups.size());
  const std::vector<std::vector<Need>> needs = NeedsOf(AsTaken(jobspec));
  during_ = when;
  matching_ = first;
  hopeless_ = false;
  std::optional<Shares> shares = MatchNow(first, OnNodesWithRoom(jobspec, needs));
  matching_.reset();
  if (!shares) return std::nullopt;
  const int64_t end_s = when.duration_s == 0 ? 0 : when.now_s + when.duration_s;
  plan_.Hold(first, *shares, needs, {.end_s = end_s});
  return Place{*std::move(shares), when.now_s};
}

Jobspec FluxionPlacer::OnNodesWithRoom(const Jobspec& jobspec,
                                       std::span<const std::vector<Need>> needs) {
  const int64_t duration_s = during_.duration_s == 0 ? graph::kForever : during_.duration_s;
  std::set<std::string> excluded;
  for (const auto& [ordinal, node] : table_.nodes()) {
    const bool meets =
        std::any_of(closures_.begin(), closures_.end(), [&](const graph::Closure& closure) {
          return closure.Meets(during_.now_s, during_.now_s + duration_s) &&
                 closure.nodes.Matches(node->spec);
        });
    if (meets) excluded.insert(node->spec.name);
  }
  for (const auto& [number, nodes] : reserved_) {
    for (Node* node : nodes) {
      if (HasRoom(*node, needs)) {
        unsettled_[node->spec.ordinal] = node;
      } else {
        excluded.insert(node->spec.name);
      }
    }
  }
  if (excluded.empty()) return jobspec;
  Jobspec with_room = jobspec;
  with_room.constraint =
      Constraint::And({jobspec.constraint,
                       Constraint::Not(Constraint::IsAnyHost({excluded.begin(), excluded.end()}))});
  return with_room;
}

bool FluxionPlacer::HasRoom(const Node& node, std::span<const std::vector<Need>> needs) const {
  return std::any_of(needs.begin(), needs.end(), [&](const std::vector<Need>& of_slot) {
    return std::all_of(of_slot.begin(), of_slot.end(), [&](const Need& need) {
      // Devices are not looked at one by one.
      return need.resource == NodeTable::kGpus ||
             plan_.FreeDuring(node.leaves[need.resource], during_) >= need.amount;
    });
  });
}

std::optional<graph::Placer::Shares> FluxionPlacer::MatchNow(JobNumber first,
                                                             const Jobspec& jobspec) {
  for (const std::vector<Need>& of_slot : NeedsOf(jobspec)) Know(of_slot);
  if (Ready() == nullptr) return std::nullopt;
  const std::vector<graph::Level> in_use = table_.LevelsInUse();
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
  const size_t depth = graph::DepthOf(level->name, in_use);
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
    return jobspec.one_per_node ? FillNodes(first, jobspec, where)
                                : Fill(first + group, jobspec.groups[group], where);
  });
  if (!all) Withdraw(first, jobspec.groups.size());
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

bool FluxionPlacer::FillNodes(JobNumber number, const Jobspec& jobspec, const Constraint& where) {
  const SlotGroup one{.slots = 1, .request = jobspec.groups[0].request};
  std::vector<std::string> taken;
  while (taken.size() < jobspec.slots) {
    const Constraint elsewhere =
        taken.empty() ? where
                      : Constraint::And({where, Constraint::Not(Constraint::IsAnyHost(taken))});
    if (!Fill(number, one, elsewhere)) return false;
    taken.push_back(SharesOf({jobs_[number].back()}, one).front().node->spec.name);
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

}  // namespace fluxqueue::fluxion
