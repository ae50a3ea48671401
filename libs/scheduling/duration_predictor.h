// How long a job will run: as long, on the average, as the last two of the same user and shape did.
// What people say is mostly far too much, and a plan made of it leaves holes that backfill could
// have filled (Tsafrir, Etsion and Feitelson 2007, from whom the two are). Used for plans only: a
// job is never stopped for what was predicted.
//
// A shape is whatever the caller hashes: slots and amounts. Runs that ended badly are not learnt,
// as they say nothing about those that end well. Of one run nothing is predicted.
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

namespace fluxqueue::scheduling {

inline constexpr size_t kHistoriesKept = 20'000;

struct History {
  std::string user;
  uint64_t shape = 0;
  int64_t last_ms = 0;
  int64_t before_ms = 0;  // 0: there was only one
  uint64_t learnt = 0;    // rises with each run that is learnt

  friend bool operator==(const History&, const History&) = default;
};

class DurationPredictor {
 public:
  explicit DurationPredictor(size_t kept = kHistoriesKept) : kept_(kept) {}

  void Learn(const std::string& user, uint64_t shape, int64_t run_ms);
  std::optional<int64_t> Predict(const std::string& user, uint64_t shape) const;

  // What changed since the last Commit, by user and shape.
  struct Change {
    History history;
    bool forgotten = false;
  };
  std::vector<Change> Changes() const;
  void Commit() { before_.clear(); }
  void Rollback();
  // One that was kept.
  void Set(const History& history);
  void Clear();
  // By user and shape.
  std::vector<History> All() const;

 private:
  using Key = std::pair<std::string, uint64_t>;

  void Remember(const Key& key);
  void Put(const Key& key, std::optional<History> history);

  const size_t kept_;
  std::map<Key, History> histories_;
  std::map<uint64_t, Key> by_learnt_;
  std::map<Key, std::optional<History>> before_;
};

}  // namespace fluxqueue::scheduling
