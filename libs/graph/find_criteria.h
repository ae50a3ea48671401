// Criteria for looking vertices up, in Fluxion's words:
//
//   status=up|down                 of the vertex or, for down, of any above it
//   sched-now=allocated|free       likewise
//   sched-future=reserved|free     likewise
//   jobid-alloc=N, jobid-reserved=N, jobid-tag=N, jobid-span=N
//                                  held by the job; reserved; held at or below; summed up there
//   names=HOSTLIST, property=KEY
//
// joined by `and`, `or` (from left to right; white space alone is `and`) and parentheses.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/hostlist.h"
#include "libs/graph/types.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

// What criteria are asked of; the sets and properties outlive it.
struct FindSubject {
  std::string_view name;
  bool down = false;
  bool allocated = false;
  bool reserved = false;
  bool sums_up = false;  // it has prune filters
  const Labels& properties;
  const std::set<uint64_t>& allocations;
  const std::set<uint64_t>& reservations;
  const std::set<uint64_t>& passing;  // jobs that hold it or something below
};

class FindCriteria {
 public:
  // InvalidArgument names the term and what is allowed. The names of all `names=` together are
  // 65,536 at most.
  static absl::StatusOr<FindCriteria> Parse(std::string_view text);

  bool Matches(const FindSubject& subject) const;

 private:
  enum class Key {
    kStatus,
    kNow,
    kFuture,
    kHeldBy,
    kReservedBy,
    kPassedBy,
    kSummedUpFor,
    kNames,
    kProperty,
    kGroup,
  };
  struct Term {
    Key key = Key::kGroup;
    bool or_before = false;  // joined to what stands before it by `or`
    bool wanted = true;      // kStatus: down; kNow: allocated; kFuture: reserved
    uint64_t job = 0;
    HostSet names;
    std::string property;
    std::vector<Term> group;
  };
  class Parser;

  static bool Evaluate(const std::vector<Term>& terms, const FindSubject& subject);
  static bool Holds(const Term& term, const FindSubject& subject);

  std::vector<Term> terms_;
};

}  // namespace fluxqueue::graph
