#include "libs/matcher_core/answer_size.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fluxqueue::matcher_core {

using events::v1::CycleAnswered;
using events::v1::Outcome;

namespace {

constexpr char kTooLong[] = "it does not start now; the reason is too long to be said";

// Reasons up to this length stay.
constexpr size_t kShortReason = 256;

// The longest first; of equals the first.
std::vector<Outcome*> ByReason(CycleAnswered* answer) {
  std::vector<Outcome*> outcomes;
  for (Outcome& outcome : *answer->mutable_outcomes()) {
    if (outcome.reason().size() > kShortReason) outcomes.push_back(&outcome);
  }
  std::stable_sort(outcomes.begin(), outcomes.end(), [](const Outcome* a, const Outcome* b) {
    return a->reason().size() > b->reason().size();
  });
  return outcomes;
}

}  // namespace

bool Fit(CycleAnswered* answer) {
  size_t bytes = answer->ByteSizeLong();
  if (bytes <= kMostAnswerBytes) return false;
  for (Outcome* outcome : ByReason(answer)) {
    if (bytes <= kMostAnswerBytes) return true;
    const size_t before = outcome->reason().size();
    outcome->set_reason(kTooLong);
    bytes -= before - outcome->reason().size();
  }
  // What an outcome takes besides, a tag and its length, only makes the answer shorter.
  while (bytes > kMostAnswerBytes && answer->outcomes_size() > 0) {
    bytes -= answer->outcomes(answer->outcomes_size() - 1).ByteSizeLong();
    answer->mutable_outcomes()->RemoveLast();
  }
  return true;
}

}  // namespace fluxqueue::matcher_core
