// What a run of a simulation is told, and what it tells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/fault.h"

namespace fluxqueue::simulation {

// A safety that is taken out.
enum class Without {
  kNothing,
  kEpoch,
  kSequence,
  kIncarnation,
  kSettle,
  kUndo,
  kRow,
  kSweep,
  kVersion,
  kUid,
  kQuarantine,
};
std::string_view Name(Without without);

using Counts = std::map<std::string, uint64_t>;
// A line of the story.
using Tell = std::function<void(const std::string& line)>;

struct Trial {
  uint64_t seed = 0;
  std::vector<Fault> faults;
  Without without = Without::kNothing;
  Tell tell;  // may be empty
};

struct Outcome {
  std::string error;  // empty: all is well
  Counts counts;
  uint64_t hash = 0;  // of all records and steps
};

constexpr uint64_t kHashBegin = 1469598103934665603ULL;
constexpr uint64_t HashOf(uint64_t hash, uint64_t next) {
  return (hash ^ next) * 1099511628211ULL;
}

struct Subject;
// Nothing: it is none of the subject's.
std::optional<Without> WithoutOf(const Subject& subject, std::string_view name);
std::string ListOfSafeties(const Subject& subject);

// What a program simulates. The same trial has the same outcome, always.
struct Subject {
  std::string program;
  uint64_t seeds = 0;               // where the command names none
  uint64_t mutation_seeds = 0;      // for each safety taken out
  std::vector<std::string> places;  // names of the processes
  // That can be taken out, and what is simulated must notice.
  std::vector<Without> safeties = {
      Without::kEpoch, Without::kSequence, Without::kIncarnation, Without::kSettle, Without::kUndo};
  bool commits_may_be_lost = false;
  bool cluster_may_go_back = false;
  std::function<std::vector<Fault>(uint64_t seed)> plan;
  std::function<Outcome(const Trial&)> run;
  // Counts that many seeds cannot leave at zero, or a part of what is simulated is not reached any
  // more: those of the loops, and the program's own.
  std::vector<std::string> reached = {"doubts",
                                      "duplicates",
                                      "partitions lost",
                                      "producer restarts",
                                      "repeats in logs",
                                      "rollbacks"};
};

}  // namespace fluxqueue::simulation
