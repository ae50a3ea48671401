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
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

// What criteria are asked of.
class FindSubject {
 public:
  virtual ~FindSubject() = default;

  virtual bool IsDown() const = 0;
  virtual bool IsAllocated() const = 0;
  virtual bool IsReserved() const = 0;
  virtual bool HeldBy(uint64_t job) const = 0;
  virtual bool ReservedBy(uint64_t job) const = 0;
  virtual bool PassedBy(uint64_t job) const = 0;
  virtual bool SummedUpFor(uint64_t job) const = 0;
  virtual std::string_view Name() const = 0;
  virtual bool HasProperty(std::string_view key) const = 0;
};

class FindCriteria {
 public:
  // InvalidArgument names the term and what is allowed.
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
    std::vector<std::string> names;  // sorted
    std::string property;
    std::vector<Term> group;
  };
  class Parser;

  static bool Evaluate(const std::vector<Term>& terms, const FindSubject& subject);
  static bool Holds(const Term& term, const FindSubject& subject);

  std::vector<Term> terms_;
};

}  // namespace fluxqueue::graph
