#include "libs/matcher_core/stop_rooms.h"

#include <algorithm>

#include "libs/base/int128.h"

namespace fluxqueue::matcher_core {
namespace {

constexpr int64_t kUnit = 1 << 16;

}  // namespace

Rooms::Rooms(const StopProblem& problem)
    : problem_(problem),
      nodes_(problem.nodes),
      fit_(problem.nodes.size(), 0),
      gone_(problem.holders.size(), false) {
  for (const StopProblem::Lender& lender : problem.lenders) spare_.push_back(lender.spare);
}

void Rooms::Count(const StopProblem::Ask& ask, size_t domain, const std::vector<size_t>& nodes) {
  ask_ = &ask;
  domain_ = domain;
  total_ = 0;
  for (const size_t node : nodes) total_ += fit_[node] = Fit(node);
}

int64_t Rooms::lacking() const {
  return std::max<int64_t>(0, ask_->slots - total_);
}

bool Rooms::MayGo(size_t holder) const {
  const StopProblem::Holder& one = problem_.holders[holder];
  for (size_t at = one.lender; at != StopProblem::kNone; at = problem_.lenders[at].above) {
    for (size_t i = 0; i < one.holds.size(); ++i) {
      if (one.holds[i] > spare_[at][i]) return false;
    }
  }
  return true;
}

void Rooms::Set(size_t holder, bool gone) {
  if (gone_[holder] == gone) return;
  gone_[holder] = gone;
  const StopProblem::Holder& one = problem_.holders[holder];
  const int64_t sign = gone ? 1 : -1;
  for (const StopProblem::Share& share : one.shares) {
    StopProblem::Node& node = nodes_[share.node];
    for (size_t i = 0; i < share.rooms; ++i) {
      StopProblem::Room& room = node.rooms[i];
      for (size_t r = 0; r < share.amounts.size(); ++r) room.amounts[r] += sign * share.amounts[r];
      for (const auto& [device, amount] : share.gpus) {
        if (device < room.gpus.size()) room.gpus[device] += sign * amount;
      }
    }
    if (ask_ == nullptr || node.domain != domain_) continue;
    total_ -= fit_[share.node];
    total_ += fit_[share.node] = Fit(share.node);
  }
  for (size_t at = one.lender; at != StopProblem::kNone; at = problem_.lenders[at].above) {
    for (size_t i = 0; i < one.holds.size(); ++i) spare_[at][i] -= sign * one.holds[i];
  }
}

int64_t Rooms::Gives(size_t holder, const StopProblem::Share& share, int64_t slots) const {
  if (gone_[holder]) return 0;
  int64_t given = 0;
  const StopProblem::Node& node = nodes_[share.node];
  for (size_t i = 0; i < share.rooms; ++i) {
    for (size_t r = 0; r < ask_->needs.size(); ++r) {
      const Int128 wanted = static_cast<Int128>(ask_->needs[r]) * slots;
      const Int128 lacks = wanted - node.rooms[i].amounts[r];
      if (lacks <= 0 || wanted == 0) continue;
      given += static_cast<int64_t>(std::min<Int128>(share.amounts[r], lacks) * kUnit / lacks);
    }
  }
  return ask_->gpus.devices == 0 ? given : given + GivesOfGpus(node, share);
}

// A device that can be had counts whole, and one that is nearer to it than others more than these.
int64_t Rooms::GivesOfGpus(const StopProblem::Node& node, const StopProblem::Share& share) const {
  int64_t given = 0;
  for (const auto& [device, amount] : share.gpus) {
    if (device >= node.rooms[0].gpus.size()) continue;
    const int64_t before = LeastFree(node, device);
    const int64_t after = before + amount;
    const int64_t gained = after / ask_->gpus.of_each - before / ask_->gpus.of_each;
    given += gained > 0 ? kUnit * gained : kUnit / 2 * after / graph::kWholeDevice;
  }
  return given;
}

void Rooms::Place(size_t number, int64_t slots) {
  StopProblem::Node& node = nodes_[number];
  for (StopProblem::Room& room : node.rooms) {
    for (size_t r = 0; r < ask_->needs.size(); ++r) room.amounts[r] -= ask_->needs[r] * slots;
  }
  int64_t parts = slots * static_cast<int64_t>(ask_->gpus.devices);
  for (size_t device = 0; parts > 0; ++device) {
    const int64_t here = std::min(parts, LeastFree(node, device) / ask_->gpus.of_each);
    for (StopProblem::Room& room : node.rooms) room.gpus[device] -= here * ask_->gpus.of_each;
    parts -= here;
  }
}

int64_t Rooms::Fit(size_t number) const {
  const StopProblem::Node& node = nodes_[number];
  int64_t slots = ask_->slots;
  for (const StopProblem::Room& room : node.rooms) {
    for (size_t r = 0; r < ask_->needs.size(); ++r) {
      if (ask_->needs[r] == 0) continue;
      slots = std::min(slots, std::max<int64_t>(0, room.amounts[r]) / ask_->needs[r]);
    }
  }
  if (ask_->gpus.devices == 0 || slots == 0) return slots;
  int64_t parts = 0;
  for (size_t device = 0; device < node.rooms[0].gpus.size(); ++device) {
    parts += LeastFree(node, device) / ask_->gpus.of_each;
  }
  return std::min(slots, parts / static_cast<int64_t>(ask_->gpus.devices));
}

int64_t Rooms::LeastFree(const StopProblem::Node& node, size_t device) {
  int64_t least = node.rooms[0].gpus[device];
  for (const StopProblem::Room& room : node.rooms) least = std::min(least, room.gpus[device]);
  return std::max<int64_t>(0, least);
}

}  // namespace fluxqueue::matcher_core
