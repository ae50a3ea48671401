// How long a job will run: as long, on the average, as the last two of the same user and shape did.
// What people say is mostly far too much, and a plan made of it leaves holes that backfill could
// have filled (Tsafrir, Etsion and Feitelson 2007, from whom the two are). Used for plans only: a
// job is never stopped for what was predicted.
//
// A shape is whatever the caller hashes: slots and amounts. Runs that ended badly are not learnt,
// as they say nothing about those that end well. Of one run nothing is predicted.
//
// Not everybody's jobs repeat themselves, and some people say exactly how long theirs run; to plan
// with a guess instead does harm then. So both are held against each run that is learnt: the
// prediction that was there before it, and what had been declared. The error of a time that was
// said is 1 − min(said, ran) / max(said, ran), in thousandths; the errors are summed up, and a
// quarter of each sum is forgotten with each run. A prediction is trusted while its sum is the
// lesser. Before there was one to be judged, its sum is 0: it is trusted unless what was declared
// was exact.
//
// The kHistoriesKept that were learnt last are kept. Changes are provisional until Commit(). Pure,
// thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/journaled.h"

namespace fluxqueue::scheduling {

inline constexpr size_t kHistoriesKept = 20'000;

struct History {
  std::string user;
  uint64_t shape = 0;
  int64_t last_ms = 0;
  int64_t before_ms = 0;  // 0: there was only one
  uint64_t learnt = 0;    // rises with each run that is learnt
  // Decayed sums of errors, in thousandths: at most 4000.
  int64_t declared_error = 0;
  int64_t predicted_error = 0;

  friend bool operator==(const History&, const History&) = default;
};

struct Prediction {
  int64_t duration_ms = 0;  // at least 1
  // It has been nearer than what was declared.
  bool trusted = false;

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

class DurationPredictor {
 public:
  explicit DurationPredictor(size_t kept = kHistoriesKept) : kept_(kept) {}

  // `declared_ms`: what plans would have used without a prediction; 0: nothing, which is as wrong
  // as can be.
  void Learn(const std::string& user, uint64_t shape, int64_t run_ms, int64_t declared_ms);
  std::optional<Prediction> Predict(const std::string& user, uint64_t shape) const;

  // What changed since the last Commit, by user and shape.
  struct Change {
    History history;
    bool forgotten = false;
  };
  std::vector<Change> Changes() const;
  void Commit() { histories_.Commit(); }
  void Rollback();
  // One that was kept.
  void Set(const History& history);
  void Clear();
  // By user and shape.
  std::vector<History> All() const;

 private:
  using Key = std::pair<std::string, uint64_t>;

  const size_t kept_;
  Journaled<std::map<Key, History>> histories_;
  std::map<uint64_t, Key> by_learnt_;
};

}  // namespace fluxqueue::scheduling
