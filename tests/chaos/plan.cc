#include "tests/chaos/plan.h"

#include <algorithm>

namespace fluxqueue::chaos {
namespace {

constexpr int kPairEvery = 3;

bool Meet(const Fault& one, const Fault& other) {
  return std::find_first_of(
             one.targets.begin(), one.targets.end(), other.targets.begin(), other.targets.end()) !=
         one.targets.end();
}

}  // namespace

std::vector<Strike> EachOnce(const std::vector<Fault>& faults) {
  std::vector<Strike> strikes;
  for (const bool losing_log : {false, true}) {
    for (const Fault& fault : faults) {
      if (fault.loses_log == losing_log) strikes.push_back({&fault});
    }
  }
  return strikes;
}

Strike Decks::Next(bool losing_log) {
  Strike strike;
  const size_t wanted = ++strikes_ % kPairEvery == 0 ? 2 : 1;
  // Where nothing that is left of a deck suits, a fresh one follows.
  for (int decks = 0; decks < 2 && strike.size() < wanted; ++decks) {
    while (strike.size() < wanted) {
      const Fault* drawn = Draw(losing_log, strike);
      if (drawn == nullptr) break;
      strike.push_back(drawn);
    }
    if (strike.size() < wanted) Fill();
  }
  return strike;
}

const Fault* Decks::Draw(bool losing_log, const Strike& strike) {
  const auto suits = [&](const Fault* fault) {
    const auto meet = [fault](const Fault* other) { return Meet(*fault, *other); };
    return (losing_log || !fault->loses_log) && std::none_of(strike.begin(), strike.end(), meet);
  };
  const auto found = std::find_if(deck_.rbegin(), deck_.rend(), suits);
  if (found == deck_.rend()) return nullptr;
  const Fault* const fault = *found;
  deck_.erase(std::next(found).base());
  return fault;
}

void Decks::Fill() {
  deck_.clear();
  for (const Fault& fault : faults_) deck_.push_back(&fault);
  std::shuffle(deck_.begin(), deck_.end(), random_);
}

}  // namespace fluxqueue::chaos
