// The command line of a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

struct Options {
  uint64_t from = 1;
  uint64_t to = 1;
  // Of these seeds, those whose rest is `share`: so programs side by side have all of them.
  uint64_t share = 0;
  uint64_t shares = 1;
  Without without = Without::kNothing;
  bool commits_lost = false;
  bool cluster_back = false;
  bool story = false;
  bool mutations = false;
  std::optional<std::vector<size_t>> faults;  // only these of the plan
};

// Nothing: `exit` is what to end with.
std::optional<Options> ParseOptions(const Subject& subject, int argc, char** argv, int* exit);

}  // namespace fluxqueue::simulation
