// How far to believe what users declare: by their own record. Of each user it is kept how long jobs
// ran beside what was declared for them, on the average, and how far single jobs are from that
// average. A job is then priced at
//
//   declared · (ratio + deviation)
//
// which not many of the user's jobs exceed. Who declares well pays what is declared. Who declares
// too much pays less. Who is often too short pays for the longest of what was hidden, with every
// job.
//
// New users start neutral: they pay what is declared. The first run sets the average, with a
// deviation that is 1 / kDoubt of what it was off. From then on a run counts for 1 / kRuns of the
// averages at least, so old ones decay. Runs that ended badly are not learnt: a crash says nothing
// of how long a job takes.
//
// The kUsersKept that were learnt last are kept. Integers; changes are provisional until Commit().
// Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "libs/base/journaled.h"

namespace fluxqueue::scheduling {

class Reliability {
 public:
  static constexpr int64_t kRuns = 16;
  static constexpr int64_t kDoubt = 4;
  static constexpr size_t kUsersKept = 10'000;
  // In this unit ratios are kept.
  static constexpr int64_t kOne = int64_t{1} << 16;

  struct Record {
    int64_t ratio = kOne;
    int64_t deviation = 0;
    int64_t runs = 0;     // at most kRuns
    uint64_t learnt = 0;  // rises with each run that is learnt

    friend bool operator==(const Record&, const Record&) = default;
  };

  explicit Reliability(size_t kept = kUsersKept) : kept_(kept) {}

  // At least 1. REQUIRES: declared_ms > 0.
  int64_t PriceOf(const std::string& user, int64_t declared_ms) const;
  // REQUIRES: declared_ms > 0.
  void Learn(const std::string& user, int64_t declared_ms, int64_t run_ms);

  const std::map<std::string, Record>& records() const { return records_.map(); }
  auto Changes() const { return records_.Changes(); }
  void Commit() { records_.Commit(); }
  void Rollback();
  // All are forgotten.
  void Forget();
  // As it was kept.
  void Set(const std::string& user, const Record& record);

 private:
  const size_t kept_;
  Journaled<std::map<std::string, Record>> records_;
  std::map<uint64_t, std::string> by_learnt_;
};

}  // namespace fluxqueue::scheduling
