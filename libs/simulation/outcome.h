// What became of the jobs of a simulation. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/base/clock.h"

namespace fluxqueue::simulation {

// A slot's place.
struct Place {
  uint32_t node = 0;  // of the machine
  // Of the node's GPUs, where they are given out in parts.
  std::vector<uint32_t> devices{};

  friend bool operator==(const Place&, const Place&) = default;
};

// Of the job with the same index in the workload. Times since the Unix epoch.
struct Outcome {
  enum class End : uint8_t {
    kWaits,     // still, when the simulation was over
    kRuns,      // the same
    kEnded,     // it has run, whatever came of it
    kRejected,  // or cancelled before it started
  };
  End end = End::kWaits;
  // It started while a job that stood before it in its queue waited.
  bool backfilled = false;
  Millis submitted{0};
  Millis started{0};
  Millis ended{0};
  // One for each slot; none on a machine of processors, where nothing but their number counts.
  std::vector<Place> places{};
  // The earliest start that it was ever promised; 0: none was.
  Millis promised{0};

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace fluxqueue::simulation
