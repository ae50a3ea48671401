// Objects that a shard's handler could not handle: they are left out, so that all others go on
// (shard_loop.h). This is the memory, and what of it is to be written (quarantine_store.h).
//
//   handled ──────────────────────────────────────────────────► nothing is kept of it
//   it threw, or what came of it can never be written ────────► held
//   its text could not be read, when it was seen ─────────────► held
//   it was under way when the process ended ──► suspected ──again──► held
//                                                   └──it never comes again──► nothing is kept
//
// What is held is left out until it has another version, or an operator retries it. One that fails
// in each of its versions is looked at less and less often: 2 s, 4 s … an hour after it failed
// last. What is handled in the end is forgotten.
//
// Bounded: when more than kMostOfNamespace of one kind in one namespace are held, one row stands
// for the namespace, and everything of that kind in it is left out until an operator retries it;
// only that an object was deleted is still heard. When kMost rows are full, the one that has failed
// longest ago goes; its object is tried again when it is seen again.
//
// Confined to the loop's thread, save Totals().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::delivery {

struct ObjectRef {
  std::string kind;     // "Pod"
  std::string space{};  // its namespace; empty: it has none, or it is not known
  std::string name{};
  std::string uid;
  std::string version{};  // resourceVersion; kDeleted
};
inline constexpr const char* kDeleted = "deleted";

struct QuarantineRow {
  ObjectRef object;      // as it was when it failed last
  std::string reason{};  // at most kMostReasonBytes
  int64_t times = 0;     // that it has failed
  int ends = 0;          // of the process, while it was under way
  bool held = false;     // else it is suspected
  bool told = false;     // a dead letter has gone out
};

class Quarantine {
 public:
  static constexpr size_t kMost = 1000;
  static constexpr size_t kMostOfNamespace = 50;
  static constexpr size_t kMostReasonBytes = 500;
  static constexpr int kEnds = 2;

  using TimePoint = std::chrono::steady_clock::time_point;
  using Key = std::pair<std::string, std::string>;  // kind, uid
  static Key KeyOf(const ObjectRef& object) { return {object.kind, object.uid}; }

  // `kinds`: those that Totals() has from the start.
  explicit Quarantine(const Clock& clock, const std::vector<std::string>& kinds = {});

  // ---- for the handler, in Poll

  // True: a batch with an object has nothing else in it.
  bool careful() const { return one_by_one_ > 0 || mark_; }
  // Before an object is handled. False: leave it out. A status: end Poll with it.
  absl::StatusOr<bool> Admit(const ObjectRef& object);
  // Those that were admitted are through, and what fails from here on comes of none of them. The
  // loop calls it after each batch. A handler may call it before, when it has yet to do what comes
  // of the whole picture. A status: end Poll with it.
  absl::Status Handled();
  // It could not even be read, for which there is `reason`. Unless it is left out already, it is
  // put into quarantine, whatever becomes of the batch.
  void HoldUnread(const ObjectRef& object, const std::string& reason);

  // ---- for the loop

  void Restore(std::vector<QuarantineRow> rows);
  // The next `objects` are to be handled one by one.
  void OneByOne(size_t objects) { one_by_one_ = objects; }
  // All are, and `mark` is called with each before, and with null after it. Null: no longer.
  using Mark = std::function<absl::Status(const ObjectRef*)>;
  void MarkWith(Mark mark) { mark_ = std::move(mark); }
  bool marks() const { return mark_ != nullptr; }

  // How many objects the batch under way has.
  size_t admitted() const { return admitted_.size(); }
  // The object that was admitted last could not be handled. REQUIRES: one was.
  void Condemn(const std::string& reason);
  // The batch failed, and will be handled again.
  void Rollback() { admitted_.clear(); }
  // All that there are have been handled since Restore(): what is still suspected is gone.
  void ForgetSuspects();
  // An operator has retried them.
  void Retried(const std::vector<Key>& keys);

  // What is to be written, and said; it stays until Saved().
  struct Changes {
    std::vector<QuarantineRow> upserts;
    std::vector<Key> deletes;
    bool empty() const { return upserts.empty() && deletes.empty(); }
  };
  bool HasPending() const { return !dirty_.empty() || !erased_.empty(); }
  // `retried`: their rows have just gone, and are not to be written again.
  Changes Pending(const std::vector<Key>& retried) const;
  std::vector<QuarantineRow> Untold() const;
  // All of Pending() is committed, and Untold() said.
  void Saved();

  bool empty() const { return rows_.empty(); }
  // When something that was left out for a time is to be looked at again.
  std::optional<TimePoint> LookAt() const;

  // Thread-safe. How often an object was put in, by kind.
  std::map<std::string, uint64_t> Totals() const;

 private:
  struct Entry {
    QuarantineRow row;
    TimePoint failed{};   // last, in this process
    TimePoint until{};    // a new version is not looked at before
    bool missed = false;  // there was one
  };

  // It is held in this version, or not to be looked at yet, or all of its namespace is held.
  bool IsLeftOut(const ObjectRef& object);
  void Hold(const ObjectRef& object, const std::string& reason);
  void Erase(const Key& key);
  void SumUp(const std::string& kind, const std::string& space);
  void MakeRoom();
  void Count(const std::string& kind);

  const Clock& clock_;
  std::map<Key, Entry> rows_;
  std::set<Key> dirty_;
  std::set<Key> erased_;
  std::vector<ObjectRef> admitted_;
  size_t one_by_one_ = 0;
  Mark mark_;

  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> totals_;  // guarded by mutex_
};

}  // namespace fluxqueue::delivery
