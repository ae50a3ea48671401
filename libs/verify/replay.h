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
// The same rules as in the delivery loop (libs/delivery/partition_loop.cc) decide what is folded:
// duplicates and what stands behind a gap are dropped by stream and sequence, a poison status and
// what does not decode is skipped, `now` is the greatest append time of the partition so far. Ticks
// are inputs: when one was said is the queue's clock's word.
//
// A decision follows its cause in the log. So what the cores have decided and the log does not have
// (yet) is "in flight"; what the log has and the cores have not decided is a difference. Facts have
// to be read before the log, so that every one of them has its cause in it.
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

#include "libs/base/clock.h"
#include "libs/delivery/stream_filter.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/queue_core/queue_core.h"
#include "libs/verify/event_line.h"

#include "absl/status/status.h"

namespace fluxqueue::verify {

// A record as it was read; `value` needs to live during the call only.
struct LogRecord {
  int partition = 0;
  int64_t offset = 0;
  Millis append_time{0};
  std::string_view value{};
  // Its place in its stream as its headers name it, for a value that does not decode: whoever read
  // it passed it by. Empty: they name none.
  std::string stream{};
  uint64_t sequence = 0;
};

// A message without what belongs to its transport.
std::string Bare(events::v1::Envelope message);

// The jobs topic as it was read: every job's facts in order, and whether their versions are 1, 2, 3
// …
class FactLog {
 public:
  struct Recorded {
    int partition;
    int64_t offset;
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

  // The next fact of the job that was not taken yet.
  std::optional<Recorded> Take(const std::string& job_id);
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
  // (service, offset) of the partition's records that a service has put into the dead letter: it
  // has not folded them, even where a core would. The service is empty where the message is not of
  // whom it says: no service has even judged its place in the stream.
  using Buried = std::set<std::pair<std::string, int64_t>>;

  // Takes the facts of its pools out of `facts`, which must outlive it. `make_engine`: where the
  // matchers' engines come from.
  Replayer(int partition,
           FactLog& facts,
           Buried buried,
           graph::MakeEngine make_engine = graph::MakeNativeOnly);
  ~Replayer();

  // In the order of the log. Anything but OK: a core is broken (Internal, DataLoss).
  absl::Status Fold(const LogRecord& record);
  // The same with a record that was taken once and kept. Who has buried it stands in `buried`.
  absl::Status Fold(const EventLine& line);

  // Called with each record that is taken, before it is folded, and with each fact when the queue's
  // core decides it.
  void OnTaken(std::function<void(const EventLine&)> taken) { taken_ = std::move(taken); }
  void OnFact(std::function<void(const events::v1::JobFact&, Millis)> decided) {
    decided_ = std::move(decided);
  }
  // After the last record: one entry for each pool of the partition, by name.
  std::vector<PoolReplay> Finish();

  // Nothing was folded yet.
  bool empty() const { return records_ == 0; }
  uint64_t duplicates() const { return duplicates_; }
  uint64_t gaps() const { return gaps_; }

 private:
  struct Pool;
  struct Expected {
    std::string kind{};
    std::string bytes{};
  };

  absl::Status FoldTaken(const LogRecord& record, const events::v1::Envelope& message);
  std::vector<std::string> BuriedBy(int64_t offset) const;
  Pool& At(const std::string& name);
  absl::Status RunQueue(Pool& pool, const LogRecord& record, const events::v1::Envelope& message);
  absl::Status RunMatcher(Pool& pool, const LogRecord& record, const events::v1::Envelope& message);
  static void CompareDecision(Pool& pool,
                              std::deque<Expected>& expected,
                              const LogRecord& record,
                              const events::v1::Envelope& message);
  void CompareFact(Pool& pool, const events::v1::Envelope& message);
  static void Count(Pool& pool, const std::string& kind, bool identical, Difference difference);

  const int partition_;
  FactLog& facts_;
  const Buried buried_;
  const graph::MakeEngine make_engine_;
  std::function<void(const EventLine&)> taken_;
  std::function<void(const events::v1::JobFact&, Millis)> decided_;
  delivery::StreamFilter filter_{{}, false};
  Millis now_{0};
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  uint64_t records_ = 0;
  uint64_t duplicates_ = 0;
  uint64_t gaps_ = 0;
};

}  // namespace fluxqueue::verify
