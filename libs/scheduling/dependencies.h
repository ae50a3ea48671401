// Jobs that wait for the ends of others. Pure, thread-compatible.
//
//   afterok      the other has succeeded
//   afterany     the other has ended, however
//   afternotok   the other has ended otherwise
//
// The other is named by its id, or by its name in the namespace of the job that waits. A name is
// bound to the job that has it when it is looked up first: one that lives, before one that has
// ended, the latest of several; from then on it is that job, whoever takes the name later. One that
// is not known is waited for.
//
// When a condition can no longer come true, the job that has it is cancelled, like with Slurm's
// kill_invalid_depend: left waiting it would wait for ever, and those behind it, too.
//
// Ends are remembered, so that a job may be submitted after the end of what it waits for: the last
// kEndingsKept of a pool. They are numbered, and a number is as good a place in the history on
// every machine: what is older than that is not known, wherever a batch ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libs/base/journaled.h"

namespace fluxqueue::scheduling {

enum class Condition : uint8_t { kAfterOk, kAfterAny, kAfterNotOk };
// "afterok", "afterany", "afternotok".
std::string_view Name(Condition condition);
std::optional<Condition> FindCondition(std::string_view name);

enum class Fulfilment { kMet, kNever };
// Of a condition on a job that has ended.
Fulfilment Judge(Condition condition, bool succeeded);

struct Ending {
  uint64_t number = 0;
  std::string id;
  std::string name;  // "namespace/name"
  bool succeeded = false;

  friend bool operator==(const Ending&, const Ending&) = default;
};

inline constexpr uint64_t kEndingsKept = 10'000;

// The last endings. Add() and Remove() are provisional until Commit().
class Endings {
 public:
  // Numbers rise by one. REQUIRES: it is above the last.
  void Add(Ending ending);
  // The job has not ended after all. Its number is nobody else's. No matter if it is not known.
  void Remove(const std::string& id);
  // Null: not among the last ones. Of several of a name, the latest.
  const Ending* ById(const std::string& id) const { return Find(by_id_, id); }
  const Ending* ByName(const std::string& name) const { return Find(by_name_, name); }

  void Commit();
  void Rollback();
  void Clear();
  // As they were kept: no change. REQUIRES: it is above those that were restored before.
  void Restore(Ending ending);
  void RestoreLast(uint64_t last) { last_ = committed_last_ = last; }
  // The last of all, whether or not it is still known; 0: none.
  uint64_t last() const { return last_; }
  // By number; a few more than are kept, until Commit.
  const std::map<uint64_t, Ending>& all() const { return endings_.map(); }

 private:
  using Index = std::unordered_map<std::string, std::vector<uint64_t>>;  // rising

  const Ending* Find(const Index& index, const std::string& key) const;
  void Enter(const Ending& ending);
  void Forget(const Ending& ending);
  void Erase(uint64_t number);

  Journaled<std::map<uint64_t, Ending>> endings_;
  uint64_t last_ = 0;
  uint64_t committed_last_ = 0;
  Index by_id_;
  Index by_name_;
};

// Who waits for what. A target is an id or "namespace/name"; a dependent is its submission number.
class Dependents {
 public:
  void Add(const std::string& target, uint64_t dependent) { waiting_[target].insert(dependent); }
  void Remove(const std::string& target, uint64_t dependent);
  // In order of submission.
  std::vector<uint64_t> Of(const std::string& target) const;
  bool empty() const { return waiting_.empty(); }
  void Clear() { waiting_.clear(); }

 private:
  std::unordered_map<std::string, std::set<uint64_t>> waiting_;
};

// True when `to` is `from`, or one for which `from` waits, or one for which that one waits …
// `targets(id)`: the ids for which the job waits. Each job is looked at once, so it ends.
bool Reaches(const std::string& from,
             const std::string& to,
             const std::function<std::vector<std::string>(const std::string&)>& targets);

}  // namespace fluxqueue::scheduling
