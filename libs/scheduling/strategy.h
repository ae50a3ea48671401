// How a cycle goes about its candidates. A strategy is stateless and decides two things: whether
// the cycle stops at the first candidate that does not fit, and how many of the candidates, counted
// from the head, may reserve what they cannot have now. With that:
//
//   fcfs           stops at the first that does not fit, reserves nothing
//   easy           goes on (backfill), reserves for 1
//   conservative   goes on, reserves for all
//   hybrid         goes on, reserves for the first k
//
// Only fcfs exists yet. Pure; safe from every thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluxqueue::scheduling {

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string_view name() const = 0;
  virtual bool StopsAtFirstBlocked() const = 0;
  // `depth`: the queue's reservation depth.
  virtual uint32_t Reservations(uint32_t depth) const = 0;
};

// The strategy of that name ("" is fcfs), which lives for ever; null: there is none.
const Strategy* FindStrategy(std::string_view name);

// The names that FindStrategy knows, for messages: "fcfs".
std::string StrategyNames();

}  // namespace fluxqueue::scheduling
