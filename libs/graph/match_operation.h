// What is asked for with a jobspec, in Fluxion's words and in the order of its numbers.
#pragma once

#include <array>
#include <string_view>

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

enum class MatchOperation {
  kAllocate,
  kAllocateWithSatisfiability,
  kAllocateOrElseReserve,
  kSatisfiability,
  kWithoutAllocating,
  kWithoutAllocatingFuture,
};

// Something is held afterwards, if there is a place.
constexpr bool Holds(MatchOperation operation) {
  return operation <= MatchOperation::kAllocateOrElseReserve;
}

// By operation.
inline constexpr std::array<std::string_view, 6> kMatchOperations = {"allocate",
                                                                     "allocate_with_satisfiability",
                                                                     "allocate_orelse_reserve",
                                                                     "satisfiability",
                                                                     "without_allocating",
                                                                     "without_allocating_future"};

// InvalidArgument names them.
absl::StatusOr<MatchOperation> ParseMatchOperation(std::string_view name);

}  // namespace fluxqueue::graph
