#include "libs/matcher_core/lenders.h"

#include <algorithm>
#include <limits>

namespace fluxqueue::matcher_core {
namespace {

constexpr int64_t kAnything = std::numeric_limits<int64_t>::max();

// Places are said + 1, and 0 is none, as is what is no place.
size_t PlaceOf(uint32_t said, int places) {
  return said == 0 || said > static_cast<uint32_t>(places) ? StopProblem::kNone : said - 1;
}

}  // namespace

bool HasBit(const std::string& bits, size_t place) {
  return place / 8 < bits.size() && (static_cast<unsigned char>(bits[place / 8]) >> place % 8 & 1);
}

Lenders::Lenders(const events::v1::CycleRequested& request) : request_(request) {
  for (const auto& stoppable : request.stoppable()) {
    resources_ = std::max(resources_, static_cast<size_t>(stoppable.holds_size()));
  }
  for (const auto& lender : request.lenders()) {
    StopProblem::Lender& added = lenders_.emplace_back();
    added.spare.assign(lender.spare().begin(), lender.spare().end());
    added.spare.resize(std::max(resources_, added.spare.size()), kAnything);
    added.above = PlaceOf(lender.above(), request.lenders_size());
  }
  // Ways up that have no end would be a defect of who wrote them; here they end.
  for (StopProblem::Lender& lender : lenders_) {
    size_t steps = 0;
    for (size_t at = lender.above; at != StopProblem::kNone; at = lenders_[at].above) {
      if (++steps <= lenders_.size()) continue;
      lender.above = StopProblem::kNone;
      break;
    }
  }
}

void Lenders::Describe(int stoppable, StopProblem::Holder* holder) const {
  const auto& one = request_.stoppable(stoppable);
  holder->lost = one.lost();
  holder->lender = PlaceOf(one.lender(), request_.lenders_size());
  holder->holds.assign(one.holds().begin(), one.holds().end());
}

void Lenders::DescribeSlot(int stoppable, uint32_t live, StopProblem::Holder* holder) const {
  Describe(stoppable, holder);
  holder->lost /= live;
  for (int64_t& amount : holder->holds) amount = (amount + live - 1) / live;
}

std::vector<StopProblem::Lender> Lenders::For(const events::v1::Candidate& candidate) const {
  std::vector<StopProblem::Lender> lenders = lenders_;
  for (size_t i = 0; i < lenders.size(); ++i) {
    if (!HasBit(candidate.lenders(), i))
      lenders[i].spare.assign(lenders[i].spare.size(), kAnything);
  }
  return lenders;
}

void Lenders::Stop(int stoppable) {
  if (!stopped_.insert(stoppable).second) return;
  StopProblem::Holder holder;
  Describe(stoppable, &holder);
  Take(holder, 1);
}

void Lenders::Vacate(int stoppable, const std::vector<uint32_t>& slots, uint32_t live) {
  std::set<uint32_t>& vacated = vacated_[stoppable];
  int64_t more = 0;
  for (const uint32_t slot : slots) more += vacated.insert(slot).second ? 1 : 0;
  StopProblem::Holder holder;
  DescribeSlot(stoppable, live, &holder);
  Take(holder, more);
}

std::set<uint32_t> Lenders::Vacated(int stoppable) const {
  const auto found = vacated_.find(stoppable);
  return found == vacated_.end() ? std::set<uint32_t>() : found->second;
}

void Lenders::Take(const StopProblem::Holder& holder, int64_t times) {
  for (size_t at = holder.lender; at != StopProblem::kNone; at = lenders_[at].above) {
    for (size_t i = 0; i < holder.holds.size(); ++i) {
      lenders_[at].spare[i] -= holder.holds[i] * times;
    }
  }
}

// Slots are counted like one more resource, of which the other lenders can spare anything.
size_t AddLenderOfSlots(uint32_t slots, StopProblem* problem) {
  size_t resources = 0;
  for (const StopProblem::Holder& holder : problem->holders) {
    resources = std::max(resources, holder.holds.size());
  }
  for (StopProblem::Lender& lender : problem->lenders) {
    lender.spare.resize(resources + 1, kAnything);
  }
  StopProblem::Lender& job = problem->lenders.emplace_back();
  job.spare.assign(resources, kAnything);
  job.spare.push_back(slots);
  return problem->lenders.size() - 1;
}

void LendSlot(size_t job, StopProblem* problem, StopProblem::Holder* holder) {
  StopProblem::Lender& lender = problem->lenders[job];
  lender.above = holder->lender;
  holder->lender = job;
  holder->holds.resize(lender.spare.size() - 1, 0);
  holder->holds.push_back(1);
}

}  // namespace fluxqueue::matcher_core
