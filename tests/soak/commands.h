// An action of the soak as the commands that do it, and the objects as texts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/soak/plan.h"

namespace fluxqueue::soak {

inline constexpr std::string_view kNamespace = "e2e";
// In an input: what the command before it has printed.
inline constexpr std::string_view kOutputBefore = "@BEFORE@";

struct Command {
  enum class Program { kKubectl, kFluxqueue, kMakeNodes, kKillService };
  Program program = Program::kKubectl;
  std::vector<std::string> words{};
  std::string input{};
};

// One after the other, each if the one before has been done.
std::vector<Command> CommandsFor(const Action& action);

// The kinds JobSet and MPIJob, of which nothing is checked: their controllers are played.
std::string KindsYaml();
// A second line, of which jobs are stopped for urgent ones.
std::string QueuesYaml();

}  // namespace fluxqueue::soak
