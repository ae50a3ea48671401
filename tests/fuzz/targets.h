// What is fuzzed: each takes any bytes at all. It parses them, does with what came of it what
// callers do, and ends the process (CHECK) when a property does not hold.
//
// Pure functions of the bytes: the same input does the same on every run.
#pragma once

#include <array>
#include <string_view>

namespace fluxqueue::fuzz {

// A resource graph; an engine on it, a match, and what it holds written and found again.
void FuzzJgf(std::string_view text);
// A jobspec (YAML or JSON); the tree and the request written as JSON and read again; a match.
void FuzzRequest(std::string_view text);
// A jobspec of Kubernetes' shape, written and read again; a match.
void FuzzJobspec(std::string_view text);
// A constraint as JSON, and the laws of `and`, `or` and `not`.
void FuzzConstraint(std::string_view text);
// A hostlist, written and read again.
void FuzzHostlist(std::string_view text);
// An idset, written and read again.
void FuzzIdset(std::string_view text);
// Criteria for `find`, and the laws of their operators.
void FuzzFindCriteria(std::string_view text);
// An object of Kubernetes, a page of a list, a line of a watch: as the watches read them.
void FuzzObjects(std::string_view text);
// Lines: a match policy, prune filters, a traverser; an engine that has them.
void FuzzOptions(std::string_view text);

struct Target {
  std::string_view name;  // of its program and of its folder in corpus/
  void (*run)(std::string_view);
};

inline constexpr std::array<Target, 9> kTargets = {{
    {"constraint", FuzzConstraint},
    {"find_criteria", FuzzFindCriteria},
    {"hostlist", FuzzHostlist},
    {"idset", FuzzIdset},
    {"jgf", FuzzJgf},
    {"jobspec", FuzzJobspec},
    {"objects", FuzzObjects},
    {"options", FuzzOptions},
    {"request", FuzzRequest},
}};

}  // namespace fluxqueue::fuzz
