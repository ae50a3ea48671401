// Replay: a partition of `fluxqueue.pool` from its start through the real cores, and each decision
// that stands in the logs compared with the one that the cores make now, byte for byte (stream,
// sequence, time_ms and traceparent aside, which belong to the transport).
//
//   log ─► StreamFilter ─┬─► QueueCore   ─┬─► expected CycleRequested, ReleaseRequested
//                        │                └─► expected JobFacts
//                        └─► MatcherCore ───► expected CycleAnswered, Released, …
//
// compared with those that follow in the log, and facts with those of the jobs topic.
//
// What is folded is decided as in the delivery loop (log_filter.h); a poison status is skipped.
// Ticks are inputs: when one was said is the queue's clock's word.
//
// A decision follows its cause in the log. So what the cores have decided and the log does not have
// (yet) is "in flight"; what the log has and the cores have not decided is a difference. Facts have
// to be read before the log, so that every one of them has its cause in it.
//
// A pool as it stands between two records can be saved, and the replay go on from there: with the
// same decisions as from the beginning, as a core that is restored from rows equals the one that
// wrote them.
//
// Pure: no clock, socket or database. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "libs/base/clock.h"
#include "libs/delivery/stream_filter.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/queue_core/queue_core.h"
#include "libs/verify/event_line.h"
#include "libs/verify/log_filter.h"

#include "absl/status/status.h"

namespace fluxqueue::verify {

class QueueTables;    // row_tables.h
class MatcherTables;  // the same

// A message without what belongs to its transport.
std::string Bare(events::v1::Envelope message);

// The jobs topic as it was read: every job's facts in order, and whether their versions are 1, 2, 3
// …
class FactLog {
 public:
  struct Recorded {
    int partition;
    int64_t offset;
    uint64_t version = 0;
    std::string bytes{};  // Bare
  };
  struct Trail {
    uint64_t first = 0;
    uint64_t last = 0;
    std::vector<std::string> faults{};  // gaps and repeats, in words
  };

  // What is held of each fact. kTrails: nothing, so that a month's log fits; Take and Left find
  // none.
  enum class Hold { kFacts, kTrails };
  explicit FactLog(Hold hold = Hold::kFacts) : hold_(hold) {}

  // `cut`: the partition's beginning is no longer kept, so a job may begin there at any version.
  void BeginPartition(int partition, bool cut);
  void Fold(const LogRecord& record);
  // Of a fact that was taken once and kept: none of its like is a duplicate. REQUIRES: it is a
  // fact.
  void Fold(const EventLine& line);
  // Called with each fact that is taken.
  void OnTaken(std::function<void(const EventLine&)> taken) { taken_ = std::move(taken); }

  const std::map<std::string, Trail>& trails() const { return trails_; }
  uint64_t facts() const { return facts_; }
  uint64_t duplicates() const { return duplicates_; }
  // Facts that a stream has said and the log has lost. So many missing versions, of whatever jobs,
  // are no faults.
  uint64_t lost() const;
  // What cannot be read as a fact, in words.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

  // The next fact of the job that was not taken yet, past those of versions before `version`.
  std::optional<Recorded> Take(const std::string& job_id, uint64_t version = 0);
  // Facts of these pools that were not taken.
  std::vector<std::pair<std::string, Recorded>> Left(const std::set<std::string>& pools) const;

 private:
  struct Partition {
    bool cut;
    delivery::StreamFilter filter;
    std::map<std::string, uint64_t> highest{};  // sequence of each stream
    uint64_t lost = 0;
    uint64_t missed = 0;  // of those that are lost, known by the versions that jobs lack

    // False: it was read before.
    bool Takes(const std::string& stream, uint64_t sequence);
  };
  struct Job {
    std::string pool{};
    std::deque<Recorded> facts{};
  };

  // Whether a fact's version may follow: it is the next one, or the log has lost those before it.
  static bool Follows(const Trail& trail, uint64_t version, Partition* partition);
  void Keep(const LogRecord& record, Partition* partition, events::v1::Envelope message);

  Hold hold_;
  std::function<void(const EventLine&)> taken_;
  std::map<int, Partition> partitions_;
  std::map<std::string, Trail> trails_;
  std::map<std::string, Job> jobs_;
  std::vector<std::string> unreadable_;
  uint64_t facts_ = 0;
  uint64_t duplicates_ = 0;
};

struct Difference {
  std::string what{};      // "cycle_requested at partition 0 offset 17"
  std::string recorded{};  // as text; empty: not there
  std::string replayed{};
};

// Lines of the two texts that differ, with '-' (recorded) and '+' (replayed) in front, and a few of
// what they share.
std::string DiffText(const Difference& difference);

struct Tally {
  uint64_t decisions = 0;  // compared
  uint64_t identical = 0;
  uint64_t in_flight = 0;

  uint64_t different() const { return decisions - identical; }
};

struct PoolReplay {
  std::string pool{};
  uint64_t records = 0;  // folded
  uint64_t skipped = 0;  // poison: dead letters
  Tally total{};
  std::map<std::string, Tally> kinds{};   // by event type
  std::vector<Difference> differences{};  // the first few
};

class Replayer {
 public:
  using Buried = LogFilter::Buried;

  // Takes the facts of its pools out of `facts`, which must outlive it. `make_engine`: where the
  // matchers' engines come from.
  Replayer(int partition,
           FactLog& facts,
           const Buried& buried,
           graph::MakeEngine make_engine = graph::MakeNativeOnly);
  ~Replayer();

  // Before the first record. The replay can be saved.
  void KeepRows() { keeps_rows_ = true; }
  // Before the first record, which is the snapshot's next one then. It can be saved again. Facts of
  // versions that were decided before are passed over. DataLoss: the snapshot contradicts itself.
  absl::Status Restore(const replay::v1::Snapshot& snapshot);

  // In the order of the log. FailedPrecondition: it was decided by rules that are not known here.
  // Anything else but OK: a core is broken (Internal, DataLoss).
  absl::Status Fold(const LogRecord& record);
  // The same with a record that was taken once and kept.
  absl::Status Fold(const EventLine& line);

  // Called with each fact when the queue's core decides it.
  void OnFact(std::function<void(const events::v1::JobFact&, Millis)> decided) {
    decided_ = std::move(decided);
  }

  // Called with each message that a core decides for the log, when it does.
  void OnDecision(std::function<void(const events::v1::Envelope&)> said) {
    said_ = std::move(said);
  }

  // A pool as it stands behind what was folded; null: nothing of it was. Valid until the next Fold.
  const queue_core::QueueCore* Queue(const std::string& pool) const;
  const matcher_core::MatcherCore* Matcher(const std::string& pool) const;
  // Its rows. REQUIRES: something of it was folded, and rows are kept.
  const QueueTables& queue_tables(const std::string& pool) const;
  const MatcherTables& matcher_tables(const std::string& pool) const;
  replay::v1::Snapshot Save(const std::string& pool_name) const;

  // After the last record: one entry for each pool of the partition, by name. `whole`: all that the
  // facts come from was folded, so that those which are left are differences.
  std::vector<PoolReplay> Finish(bool whole = true);

  // Nothing was folded yet.
  bool empty() const { return records_ == 0; }
  uint64_t duplicates() const { return filter_.duplicates(); }
  uint64_t gaps() const { return filter_.gaps(); }

 private:
  struct Pool;
  struct Expected {
    std::string kind{};
    std::string bytes{};
  };

  absl::Status FoldTaken(const EventLine& line);
  Pool& At(const std::string& name);
  absl::Status RunQueue(Pool& pool, const EventLine& line);
  absl::Status RunMatcher(Pool& pool, const EventLine& line);
  static void CompareDecision(Pool& pool, std::deque<Expected>& expected, const EventLine& line);
  void Expect(std::deque<Expected>& expected, events::v1::Envelope decision) const;
  void CompareFact(Pool& pool, const events::v1::Envelope& message);
  static void Count(Pool& pool, const std::string& kind, bool identical, Difference difference);

  const int partition_;
  FactLog& facts_;
  const graph::MakeEngine make_engine_;
  std::function<void(const events::v1::JobFact&, Millis)> decided_;
  std::function<void(const events::v1::Envelope&)> said_;
  LogFilter filter_;
  bool keeps_rows_ = false;
  bool restored_ = false;
  Millis now_{0};
  int64_t next_offset_ = 0;
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  uint64_t records_ = 0;
};

}  // namespace fluxqueue::verify
