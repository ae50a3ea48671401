// How a cycle goes about the candidates of a queue. Two things make a strategy: whether the cycle
// stops at the first candidate that cannot start now, and how many of those that cannot may have a
// reservation: the earliest time at which they can start beside what runs and what is reserved
// before them. Whoever stands behind may start at once if that delays no reservation (backfill).
//
//   fcfs           stops at the first that cannot start, reserves nothing
//   easy           reserves for the first that cannot start
//   conservative   reserves for all, or for as many as the reservation depth says
//   hybrid         reserves for as many as the reservation depth says
//   adaptive       orders them as easy would have started them, lets the very short pass, and
//                  reserves for many: adaptive.h
//
// After Lifka, "The ANL/IBM SP scheduling system" (1995), for easy, and Mu'alem and Feitelson,
// "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2
// with backfilling" (2001), for conservative. Pure; safe from every thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluxqueue::scheduling {

// Of hybrid, where the queue says nothing.
inline constexpr uint32_t kDefaultReservationDepth = 8;

struct Strategy {
  std::string_view name;
  bool stops_at_first_blocked = false;
  uint32_t most_reservations = 0;
  // A reservation depth above 0 stands in the place of that.
  bool takes_depth = false;
  // Keeps a virtual machine, and takes its order from it.
  bool is_adaptive = false;

  uint32_t Reservations(uint32_t depth) const {
    return takes_depth && depth > 0 ? depth : most_reservations;
  }
};

// The strategy of that name ("" is fcfs), which lives for ever; null: there is none.
const Strategy* FindStrategy(std::string_view name);

// The names that FindStrategy knows, for messages: "fcfs, easy, …".
std::string StrategyNames();

}  // namespace fluxqueue::scheduling
