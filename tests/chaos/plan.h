// Which faults strike, and in which order. Pure; the same seed gives the same order.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {

// Faults that are there at the same time.
using Strike = std::vector<const Fault*>;

// Each fault once and alone; those that lose the log after all others.
std::vector<Strike> EachOnce(const std::vector<Fault>& faults);

// Deck after deck of all faults, shuffled; every third strike is of two at once.
class Decks {
 public:
  // `faults` outlives this, and is not empty.
  Decks(uint64_t seed, const std::vector<Fault>& faults) : faults_(faults), random_(seed) {}

  // `losing_log`: those that do may be among them.
  Strike Next(bool losing_log);

 private:
  // Nothing: none is left in the deck that could be with `strike`.
  const Fault* Draw(bool losing_log, const Strike& strike);
  void Fill();

  const std::vector<Fault>& faults_;
  std::mt19937_64 random_;
  std::vector<const Fault*> deck_;
  int strikes_ = 0;
};

}  // namespace fluxqueue::chaos
