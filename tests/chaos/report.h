// What strikes did to a system, for eyes and for programs. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace fluxqueue::chaos {

using Millis = std::chrono::milliseconds;

struct Outcome {
  std::string faults{};  // "kafka is killed", "queue-1 is killed + etcd …"
  int in_flight = 0;     // jobs, at the strike
  Millis held{};         // from the strike until it had healed
  Millis recovery{};     // from the strike until a job that was made after it was bound
  std::vector<std::string> violations{};
};

// A line while it goes on, and what was wrong below it.
std::string Line(const Outcome& outcome);

// A row for each fault: how often, the recoveries, the violations.
std::string Table(const std::vector<Outcome>& outcomes);

// The same as JSON. `violations`: those that belong to no strike.
std::string Json(uint64_t seed,
                 const std::vector<Outcome>& outcomes,
                 const std::vector<std::string>& violations);

}  // namespace fluxqueue::chaos
