// The faults that chaos knows: a row each (services.cc, parts.cc). How to add one: README.md.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "libs/testing/mini_system.h"

#include "absl/status/status.h"

namespace fluxqueue::chaos {

// Done to the system. Returns when it is done, not when the system has noticed.
using Deed = std::function<absl::Status(testing::MiniSystem&)>;

struct Fault {
  std::string name{};    // "queue-1 is killed"
  std::string target{};  // what it strikes; no two faults strike it at once
  Deed strike{};
  Deed heal{};
  // There is time between the two; else one follows the other.
  bool held = false;
  // Pods may be lost by it, and be made and bound again.
  bool loses_pods = false;
  // What was said and acknowledged may be in no log after it: there is nothing to be replayed.
  bool loses_log = false;
  // For so long at most nothing is bound, once it has healed.
  std::chrono::seconds recovery{5};
};

std::vector<Fault> ServiceFaults();
std::vector<Fault> PartFaults();

}  // namespace fluxqueue::chaos
