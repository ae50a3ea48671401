#include "libs/delivery/partition_loop.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/delivery/committer.h"
#include "libs/delivery/partition_table.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/stream_filter.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/envelope.h"
#include "libs/model/job_of.h"

namespace fluxqueue::delivery {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

// The longest sleep.
constexpr Millis kIdle{100};
// How long an offset may lag and acknowledged outbox rows may stay when no batch takes them along.
constexpr Millis kTidy{500};
constexpr Millis kDrain{1000};
// So many messages are worth a commit at any time.
constexpr size_t kLargeBatch = 50;
// Of what a stranger has written.
constexpr size_t kMostReasonBytes = 500;
constexpr Millis kLagInterval{1000};
constexpr Millis kWatermarksTimeout{2000};

// What a claim found in the tables.
struct Claimed {
  InboxRow row;
  StreamFilter::Positions seen;
  Stamper::Sequences sequences;
  std::vector<OutboxRow> leftovers;
  Skips skips;
};

// A message that failed alone: not to be handled again.
struct Condemned {
  int partition;
  int64_t offset;
  std::string reason;
};

std::optional<kafka::EventPosition> PositionOf(const events::v1::Envelope& envelope) {
  if (envelope.stream().empty() || envelope.sequence() == 0) return std::nullopt;
  return kafka::EventPosition{envelope.stream(), envelope.sequence()};
}

}  // namespace

class PartitionLoop::Impl {
 public:
  Impl(Options options, PartitionHandler& handler, const Clock& clock, FaultInjector* faults)
      : options_(std::move(options)),
        group_("fluxqueue." + options_.loop.service),
        handler_(handler),
        clock_(clock),
        ready_(NotJoined()),
        committer_(options_.loop, clock, stats_, ready_, faults),
        table_(options_.topic),
        backoff_(options_.loop.retry_min, options_.loop.retry_max) {
    if (options_.loop.keys != nullptr) verifier_.emplace(*options_.loop.keys);
  }

  absl::Status Run(std::stop_token stop);
  absl::Status Prepare(std::stop_token stop);
  void Wake();
  absl::Status Ready() const { return ready_.Get(); }
  const Stats& stats() const { return stats_; }

 private:
  absl::Status NotJoined() const {
    return Unavailable(
        "Kafka at {}: group {} has not been joined yet", options_.loop.brokers.bootstrap, group_);
  }
  // One turn: publish, receive, see to the assignment, work. A status that is transient backs off.
  absl::Status RunOnce(std::stop_token stop);
  absl::Status EnsureConsumer();
  void DropConsumer(const absl::Status& why);

  // Waits for messages, Wake, a change of the assignment, or what the handler wants.
  void Receive(std::stop_token stop);
  Millis ReceiveTimeout() const;
  void NoteKafka(const absl::Status& status);
  bool Due() const;
  // The next batch is to gather yet.
  bool Paced() const {
    return inbox_.size() < kLargeBatch && clock_.Monotonic() < committer_.next_commit();
  }

  absl::Status ServeAssignment();
  absl::Status Reclaim();
  // What an operator wants left out, in the partitions held.
  absl::Status ReadSkips();
  absl::Status Claim(const std::vector<int>& partitions);
  absl::Status ClaimRow(pqxx::transaction_base& tx,
                        kafka::Watermarks marks,
                        bool anew,
                        Claimed* claimed);
  // Which of the partitions, and the places up to which they were handled, have a log that was made
  // anew: a record that was appended later than what was handled stands before its end. The log's
  // length does not tell, once it has grown again.
  absl::StatusOr<std::set<int>> MadeAnew(const std::map<int, PartitionTable::Place>& handled);
  // Kafka was away: it may have come back with another log, or with none.
  absl::Status CheckLogs();
  absl::StatusOr<std::map<int, kafka::Watermarks>> Ends(const std::vector<int>& partitions);
  std::vector<kafka::Position> Positions(const std::vector<int>& partitions) const;
  void Drop(int partition);
  std::string StreamOf(int partition) const {
    return fmt::format("{}/{}", options_.loop.service, partition);
  }

  absl::Status Work(std::stop_token stop);
  bool MayKeep(const Batch& batch) const;
  void Keep(const Batch& batch);
  absl::Status Tidy(std::stop_token stop);
  // librdkafka 2.0 may never join again after a broker that was restarted has forgotten the member:
  // then the consumer is made anew. A member for whom there are no partitions is told so with an
  // empty assignment.
  Millis RejoinPatience() const { return 2 * options_.loop.session_timeout + kIdle; }
  // A commit went through: what had been in the way is so no more.
  void NoteWorked();
  // Folds inbox_ into the batch; `*folded` is how many of its messages were looked at.
  absl::Status Fold(Batch* batch, size_t* folded);
  absl::Status FoldOne(const kafka::Message& message,
                       PartitionTable::Partition& partition,
                       Batch* batch);
  void Rollback();
  // After a failed commit: what to do next.
  absl::Status Recover(const absl::Status& status, const Batch& batch, size_t folded);
  // Drops what another has taken; false: nothing was.
  bool GiveUpForeign();
  void UpdateLag();

  const Options options_;
  const std::string group_;
  PartitionHandler& handler_;
  const Clock& clock_;
  Stats stats_;
  Readiness ready_;
  Committer committer_;
  PartitionTable table_;
  Backoff backoff_;

  std::mutex consumer_mutex_;  // guards the pointer against Wake
  std::unique_ptr<kafka::Consumer> consumer_;
  absl::Status kafka_status_;

  std::optional<std::vector<int>> starting_;  // gained, and not claimed yet
  std::optional<TimePoint> rejoin_by_;        // a new assignment is due by then
  std::map<int, TimePoint> reclaim_;          // assigned to us, dropped, to be taken again then
  std::map<int, Skips> skips_;                // of the partitions held

  std::optional<signing::BatchVerifier> verifier_;
  std::vector<kafka::Message> inbox_;  // received, not committed
  // A batch failed for a reason that one of its messages may be: so many of the inbox go one by
  // one.
  size_t single_ = 0;
  std::optional<Condemned> condemned_;
  TimePoint retry_at_;
  TimePoint lag_at_;
};

absl::Status PartitionLoop::Impl::Prepare(std::stop_token stop) {
  const auto waits = [this](const absl::Status& why) { ready_.Set(why); };
  return delivery::Prepare(options_.loop, options_.migrations, waits, std::move(stop));
}

absl::Status PartitionLoop::Impl::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { Wake(); });
  const absl::Status prepared = Prepare(stop);
  if (absl::IsCancelled(prepared)) return absl::OkStatus();
  RETURN_IF_ERROR(prepared);
  ready_.Set(NotJoined());
  while (!stop.stop_requested()) {
    const absl::Status status = RunOnce(stop);
    if (status.ok()) continue;
    if (absl::IsCancelled(status)) break;
    ready_.Set(status);
    if (!IsTransient(status) && !postgres::IsOutcomeUnknown(status)) {
      return Annotate(status, "delivery from topic " + options_.topic);
    }
    retry_at_ = clock_.Monotonic() + backoff_.Next();
  }
  committer_.publisher().Drain(kDrain);
  return absl::OkStatus();
}

absl::Status PartitionLoop::Impl::RunOnce(std::stop_token stop) {
  committer_.publisher().Pump(Millis{0});
  RETURN_IF_ERROR(EnsureConsumer());
  Receive(stop);
  if (consumer_ == nullptr) return absl::OkStatus();
  UpdateLag();
  if (clock_.Monotonic() < retry_at_ || stop.stop_requested()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckLogs());
  RETURN_IF_ERROR(ServeAssignment());
  RETURN_IF_ERROR(Reclaim());
  if (backoff_.failures() > 0) RETURN_IF_ERROR(ReadSkips());
  return Work(stop);
}

void PartitionLoop::Impl::Wake() {
  const std::scoped_lock lock(consumer_mutex_);
  if (consumer_ != nullptr) consumer_->Wake();
}

absl::Status PartitionLoop::Impl::EnsureConsumer() {
  if (consumer_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto consumer,
                   kafka::Consumer::Create({.brokers = options_.loop.brokers,
                                            .topic = options_.topic,
                                            .group = group_,
                                            .instance = options_.loop.instance,
                                            .session_timeout = options_.loop.session_timeout}));
  const std::scoped_lock lock(consumer_mutex_);
  consumer_ = std::move(consumer);
  return absl::OkStatus();
}

void PartitionLoop::Impl::DropConsumer(const absl::Status& why) {
  LogWarning("consumer made anew", {{"topic", options_.topic}, {"because", Message(why)}});
  while (!table_.held().empty()) Drop(table_.held().begin()->first);
  starting_.reset();
  rejoin_by_.reset();
  reclaim_.clear();
  inbox_.clear();
  single_ = 0;
  condemned_.reset();
  {
    const std::scoped_lock lock(consumer_mutex_);
    consumer_.reset();
  }
  ready_.Set(why);
  retry_at_ = clock_.Monotonic() + backoff_.Next();
}

// ---- receiving

bool PartitionLoop::Impl::Due() const {
  const std::optional<TimePoint> wake_at = handler_.WakeAt();
  return handler_.HasWork() || (wake_at.has_value() && *wake_at <= clock_.Monotonic());
}

Millis PartitionLoop::Impl::ReceiveTimeout() const {
  if (starting_.has_value()) return Millis{0};
  if (table_.held().empty()) return inbox_.empty() ? kIdle : Millis{0};
  const TimePoint now = clock_.Monotonic();
  TimePoint until = now + kIdle;
  if (!inbox_.empty() || handler_.HasWork()) {
    until = now;
  } else if (const std::optional<TimePoint> wake_at = handler_.WakeAt()) {
    until = std::min(until, *wake_at);
  }
  if (Paced()) until = std::max(until, committer_.next_commit());
  return std::max(Millis{0}, std::chrono::ceil<Millis>(until - now));
}

void PartitionLoop::Impl::Receive(std::stop_token stop) {
  const TimePoint now = clock_.Monotonic();
  absl::Status status;
  if (now < retry_at_) {
    // Only so much is received while nothing can be done with it, that the group keeps us.
    Pause(std::chrono::ceil<Millis>(retry_at_ - now), stop);
    status = consumer_->Poll(Millis{0}, 1, &inbox_);
  } else if (committer_.publisher().Full()) {
    committer_.publisher().Pump(kIdle);
    status = consumer_->Poll(Millis{0}, 1, &inbox_);
  } else {
    const size_t room = std::max<size_t>(
        1, options_.loop.max_batch - std::min(inbox_.size(), options_.loop.max_batch));
    status = consumer_->Poll(ReceiveTimeout(), room, &inbox_);
  }
  if (absl::IsFailedPrecondition(status)) {
    DropConsumer(status);
    return;
  }
  NoteKafka(status);
  for (const int partition : consumer_->TakeOutOfRange()) {
    if (table_.Holds(partition)) Drop(partition);
    reclaim_[partition] = now;
  }
}

void PartitionLoop::Impl::NoteKafka(const absl::Status& status) {
  if (status.ok()) return;
  kafka_status_ = status;
  ready_.Set(status);
}

// librdkafka goes on by itself when Kafka is back, and does not say so: we ask.
absl::Status PartitionLoop::Impl::CheckLogs() {
  if (kafka_status_.ok()) return absl::OkStatus();
  if (absl::IsNotFound(kafka_status_)) {
    const absl::Status made = MakeTopics(options_.loop);
    if (!made.ok()) return Unavailable("{}: {}", Message(kafka_status_), Message(made));
  }
  std::map<int, PartitionTable::Place> handled = {{0, {}}};
  for (const auto& [partition, state] : table_.held()) handled[partition] = state.kept;
  const auto anew = MadeAnew(handled);
  if (!anew.ok()) return Unavailable("{}", Message(kafka_status_));
  for (const int partition : *anew) {
    Drop(partition);
    reclaim_[partition] = clock_.Monotonic();
  }
  kafka_status_ = absl::OkStatus();
  if (!table_.held().empty()) ready_.Set(absl::OkStatus());
  return absl::OkStatus();
}

absl::StatusOr<std::set<int>> PartitionLoop::Impl::MadeAnew(
    const std::map<int, PartitionTable::Place>& handled) {
  std::map<int, Millis> times;
  for (const auto& [partition, place] : handled) times[partition] = place.append_time;
  const auto later = consumer_->FirstAfter(times, kWatermarksTimeout);
  // Also a topic that is not there may come.
  if (!later.ok()) return Unavailable("{}", Message(later.status()));
  std::set<int> anew;
  for (const auto& [partition, offset] : *later) {
    if (offset < handled.at(partition).next_offset) anew.insert(partition);
  }
  return anew;
}

void PartitionLoop::Impl::UpdateLag() {
  const TimePoint now = clock_.Monotonic();
  if (now < lag_at_) return;
  lag_at_ = now + kLagInterval;
  int64_t lag = 0;
  for (const auto& [partition, state] : table_.held()) {
    lag += std::max<int64_t>(0, consumer_->CachedEnd(partition) - state.kept.next_offset);
  }
  stats_.lag = static_cast<uint64_t>(lag);
}

// ---- gaining, losing, claiming

absl::Status PartitionLoop::Impl::ServeAssignment() {
  if (auto change = consumer_->TakeAssignment()) {
    if (change->lost.empty()) {
      starting_ = std::move(change->gained);
      rejoin_by_.reset();
    } else {
      for (const int partition : change->lost) {
        if (table_.Holds(partition)) Drop(partition);
        reclaim_.erase(partition);
      }
      starting_.reset();
      if (const absl::Status status = consumer_->Stop(change->lost); !status.ok()) {
        DropConsumer(status);
        return absl::OkStatus();
      }
      if (table_.held().empty()) rejoin_by_ = clock_.Monotonic() + RejoinPatience();
    }
  }
  if (rejoin_by_.has_value() && *rejoin_by_ <= clock_.Monotonic()) {
    DropConsumer(Unavailable("the group has not given any partitions since it took all of ours"));
    return absl::OkStatus();
  }
  if (!starting_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(Claim(*starting_));
  const std::vector<int> started = *std::exchange(starting_, std::nullopt);
  const absl::Status status = consumer_->Start(Positions(started));
  if (status.ok()) {
    ready_.Set(absl::OkStatus());
  } else {
    DropConsumer(status);  // the group has moved on meanwhile
  }
  return absl::OkStatus();
}

absl::Status PartitionLoop::Impl::Reclaim() {
  std::vector<int> due;
  const TimePoint now = clock_.Monotonic();
  for (const auto& [partition, at] : reclaim_) {
    if (at <= now) due.push_back(partition);
  }
  if (due.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Claim(due));
  for (const int partition : due) reclaim_.erase(partition);
  // What was received meanwhile is older or newer than the position: the consumer begins anew
  // there.
  std::erase_if(inbox_, [&](const kafka::Message& message) {
    return std::find(due.begin(), due.end(), message.partition) != due.end();
  });
  absl::Status status = consumer_->Stop(due);
  if (status.ok()) status = consumer_->Start(Positions(due));
  if (!status.ok()) DropConsumer(status);
  return absl::OkStatus();
}

std::vector<kafka::Position> PartitionLoop::Impl::Positions(
    const std::vector<int>& partitions) const {
  std::vector<kafka::Position> positions;
  for (const int partition : partitions) {
    positions.push_back({partition, table_.held().at(partition).kept.next_offset});
  }
  return positions;
}

absl::StatusOr<std::map<int, kafka::Watermarks>> PartitionLoop::Impl::Ends(
    const std::vector<int>& partitions) {
  std::map<int, kafka::Watermarks> ends;
  for (const int partition : partitions) {
    auto marks = consumer_->QueryWatermarks(partition, kWatermarksTimeout);
    // Also a topic that is not there may come.
    if (!marks.ok()) return Unavailable("{}", Message(marks.status()));
    ends[partition] = *marks;
  }
  return ends;
}

absl::Status PartitionLoop::Impl::ClaimRow(pqxx::transaction_base& tx,
                                           kafka::Watermarks marks,
                                           bool anew,
                                           Claimed* claimed) {
  InboxRow& row = claimed->row;
  anew |= row.next_offset > marks.high;
  if (anew || row.next_offset < marks.low) {
    if (row.next_offset > 0) {
      ++stats_.resets;
      LogWarning(anew ? "topic made anew: its log is not the one that was handled"
                      : "messages lost: the log was cut before they were handled",
                 {{"topic", options_.topic},
                  {"partition", fmt::format("{}", row.partition)},
                  {"offset", fmt::format("{}", row.next_offset)},
                  {"log", fmt::format("{}-{}", marks.low, marks.high)}});
    }
    row.next_offset = marks.low;
    row.truncated = true;
    ResetPartition(tx, row);
  }
  claimed->seen = LoadStreams(tx, row.partition);
  claimed->sequences = LoadSequences(tx, StreamOf(row.partition));
  ASSIGN_OR_RETURN(claimed->leftovers, LoadOutbox(tx, StreamOf(row.partition)));
  DeleteSkips(tx, row.partition, row.next_offset);
  claimed->skips = LoadSkips(tx, row.partition);
  return handler_.Load(tx, row.partition);
}

absl::Status PartitionLoop::Impl::Claim(const std::vector<int>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto ends, Ends(partitions));
  std::map<int, Claimed> claims;
  const absl::Status status =
      committer_.connection().Transact([&](pqxx::transaction_base& tx) -> absl::Status {
        std::map<int, PartitionTable::Place> handled;
        for (const int partition : partitions) {
          InboxRow& row = claims[partition].row;
          row = ClaimPartition(tx, partition, options_.loop.instance, options_.loop.address);
          handled[partition] = {row.next_offset, row.append_time};
        }
        ASSIGN_OR_RETURN(const std::set<int> anew, MadeAnew(handled));
        for (auto& [partition, claimed] : claims) {
          RETURN_IF_ERROR(ClaimRow(tx, ends.at(partition), anew.contains(partition), &claimed));
        }
        return absl::OkStatus();
      });
  if (!status.ok()) {
    for (const int partition : partitions) handler_.Drop(partition);
    return status;
  }
  for (auto& [partition, claimed] : claims) {
    const InboxRow& row = claimed.row;
    table_.Add(row, std::move(claimed.seen));
    skips_[partition] = std::move(claimed.skips);
    committer_.stamper().AddSource(partition, StreamOf(partition), std::move(claimed.sequences));
    for (OutboxRow& left : claimed.leftovers) committer_.publisher().Add(std::move(left));
    ++stats_.gained;
    LogInfo("partition gained",
            {{"topic", options_.topic},
             {"partition", fmt::format("{}", partition)},
             {"epoch", fmt::format("{}", row.epoch)},
             {"offset", fmt::format("{}", row.next_offset)}});
  }
  stats_.held = table_.held().size();
  committer_.publisher().Pump(Millis{0});
  backoff_.Reset();
  return absl::OkStatus();
}

absl::Status PartitionLoop::Impl::ReadSkips() {
  return committer_.connection().Query([this](pqxx::transaction_base& tx) {
    for (auto& [partition, skips] : skips_) skips = LoadSkips(tx, partition);
    return absl::OkStatus();
  });
}

void PartitionLoop::Impl::Drop(int partition) {
  LogInfo("partition dropped",
          {{"topic", options_.topic}, {"partition", fmt::format("{}", partition)}});
  handler_.Drop(partition);
  table_.Remove(partition);
  skips_.erase(partition);
  committer_.stamper().DropSource(partition);
  committer_.publisher().DropStream(StreamOf(partition));
  ++stats_.lost;
  stats_.held = table_.held().size();
}

// ---- working

absl::Status PartitionLoop::Impl::FoldOne(const kafka::Message& message,
                                          PartitionTable::Partition& partition,
                                          Batch* batch) {
  partition.now.next_offset = message.offset + 1;
  partition.now.append_time = std::max(partition.now.append_time, message.append_time);
  Record record{message.partition, message.offset, partition.now.append_time, {}};
  events::v1::Envelope& envelope = record.envelope;
  const auto bury = [&](std::string reason, bool unproven = false) {
    LogWarning("dead letter",
               {{"job", model::JobOf(envelope)},
                {"topic", options_.topic},
                {"partition", fmt::format("{}", message.partition)},
                {"offset", fmt::format("{}", message.offset)},
                {"reason", reason}});
    batch->letters.push_back(
        {message.partition, std::move(reason), options_.topic, message, unproven});
    return absl::OkStatus();
  };
  const bool decodes = envelope.ParseFromString(message.value);
  // What cannot be read has its place in its stream all the same: without it all that follows would
  // stand behind a gap for ever.
  const std::optional<kafka::EventPosition> position =
      decodes ? PositionOf(envelope) : kafka::PositionOf(message.headers);
  const char* const unreadable = "it does not decode as an Envelope";
  if (!position.has_value()) return bury(decodes ? "it has no event id" : unreadable);
  if (verifier_.has_value()) {
    const absl::Status proven =
        CheckRecord(options_.topic, message, position->stream, envelope.event_case(), &*verifier_);
    if (!proven.ok()) return bury(Clean(Message(proven), kMostReasonBytes), /*unproven=*/true);
  }
  switch (partition.filter.Judge(position->stream, position->sequence)) {
    case StreamFilter::Verdict::kDuplicate:
      ++batch->duplicates;
      return absl::OkStatus();
    case StreamFilter::Verdict::kGap:
      ++batch->gaps;
      return absl::OkStatus();
    case StreamFilter::Verdict::kTake:
      break;
  }
  ++batch->received;
  const auto bury_ours = [&](std::string reason) {
    handler_.Buried(record, batch->outbox);
    return bury(std::move(reason));
  };
  const Skips& skips = skips_.at(message.partition);
  if (const auto skip = skips.find(message.offset); skip != skips.end()) {
    return bury_ours(skip->second);
  }
  if (!decodes) return bury_ours(unreadable);
  if (envelope.event_case() == events::v1::Envelope::EVENT_NOT_SET) {
    return bury_ours("its event is of a kind that this version does not know");
  }
  if (condemned_.has_value() && condemned_->partition == message.partition &&
      condemned_->offset == message.offset) {
    return bury_ours(condemned_->reason);
  }
  const size_t said = batch->outbox.size();
  const absl::Status status = handler_.Handle(record, batch->outbox);
  if (!IsPoison(status)) return status;
  batch->outbox.Truncate(said);
  return bury_ours(Message(status));
}

absl::Status PartitionLoop::Impl::Fold(Batch* batch, size_t* folded) {
  *folded = 0;
  for (const kafka::Message& message : inbox_) {
    ++*folded;
    PartitionTable::Partition* partition = table_.Find(message.partition);
    if (partition == nullptr || message.offset < partition->now.next_offset) continue;
    RETURN_IF_ERROR(FoldOne(message, *partition, batch));
    if (single_ > 0) break;
  }
  return absl::OkStatus();
}

absl::Status PartitionLoop::Impl::Work(std::stop_token stop) {
  if (table_.held().empty()) {
    inbox_.clear();
    return absl::OkStatus();
  }
  const bool due = Due() && !committer_.publisher().Full();
  if (inbox_.empty() && !due) return Tidy(stop);
  if (Paced()) return absl::OkStatus();

  Batch batch;
  size_t folded = 0;
  absl::Status status = Fold(&batch, &folded);
  const bool idle = batch.received + batch.duplicates + batch.gaps + batch.letters.size() == 0;
  // One by one: what the handler has to say besides comes after the messages, in a batch of its
  // own.
  if (status.ok() && single_ == 0 && (due || !idle)) {
    status = handler_.Poll(batch.outbox);
    if (IsPoison(status)) status = Internal("Poll: {}", Message(status));
  }
  if (!status.ok()) {
    Rollback();
    return status;
  }
  if (MayKeep(batch)) {
    Keep(batch);
  } else if (due || !idle) {
    status = committer_.Commit(batch, table_, &handler_, stop);
    if (!status.ok()) {
      Rollback();
      return Recover(status, batch, folded);
    }
  }
  inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(folded));
  condemned_.reset();
  single_ -= std::min(single_, folded);
  NoteWorked();
  return absl::OkStatus();
}

// No row would change but the offset's, which need not be exact; the tables were there last time.
bool PartitionLoop::Impl::MayKeep(const Batch& batch) const {
  return batch.outbox.empty() && batch.letters.empty() && !handler_.HasRows() &&
         backoff_.failures() == 0 &&
         (!table_.Ahead() || clock_.Monotonic() - committer_.last_commit() < kTidy);
}

void PartitionLoop::Impl::Keep(const Batch& batch) {
  table_.Keep();
  handler_.Commit();
  stats_.received += batch.received;
  stats_.duplicates += batch.duplicates;
  stats_.gaps += batch.gaps;
}

// Offsets, and outbox rows whose messages are in Kafka, go with the next batch; when none comes,
// alone.
absl::Status PartitionLoop::Impl::Tidy(std::stop_token stop) {
  if (clock_.Monotonic() - committer_.last_commit() < kTidy ||
      (committer_.publisher().Prefixes().empty() && !table_.Ahead())) {
    return absl::OkStatus();
  }
  Batch none;
  const absl::Status status = committer_.Commit(none, table_, nullptr, stop);
  if (!status.ok()) return Recover(status, none, 0);
  NoteWorked();
  return absl::OkStatus();
}

void PartitionLoop::Impl::NoteWorked() {
  backoff_.Reset();
  ready_.Set(kafka_status_.ok() ? committer_.publisher().status() : kafka_status_);
}

void PartitionLoop::Impl::Rollback() {
  table_.Rollback();
  handler_.Rollback();
}

absl::Status PartitionLoop::Impl::Recover(const absl::Status& status,
                                          const Batch& batch,
                                          size_t folded) {
  if (GiveUpForeign()) return absl::OkStatus();
  if (!IsPoison(status)) return status;
  if (folded == 0 || batch.received == 0) return Internal("{}", Message(status));
  if (single_ == 0) {
    LogWarning("a batch cannot be written: its messages one by one",
               {{"because", Message(status)}});
    single_ = folded;
    return absl::OkStatus();
  }
  if (condemned_.has_value()) return Internal("{}", Message(status));
  const kafka::Message& last = inbox_[folded - 1];
  condemned_ = Condemned{last.partition, last.offset, Message(status)};
  return absl::OkStatus();
}

// Who took them has them by the group's word; if it is us after all, we shall still have them a
// session timeout later.
bool PartitionLoop::Impl::GiveUpForeign() {
  const std::vector<int> foreign = table_.TakeForeign();
  for (const int partition : foreign) {
    if (!table_.Holds(partition)) continue;
    LogWarning("partition taken by another",
               {{"topic", options_.topic}, {"partition", fmt::format("{}", partition)}});
    Drop(partition);
    reclaim_[partition] = clock_.Monotonic() + options_.loop.session_timeout;
  }
  return !foreign.empty();
}

PartitionLoop::PartitionLoop(Options options,
                             PartitionHandler& handler,
                             const Clock& clock,
                             FaultInjector* faults)
    : impl_(std::make_unique<Impl>(std::move(options), handler, clock, faults)) {}
PartitionLoop::~PartitionLoop() = default;
absl::Status PartitionLoop::Run(std::stop_token stop) {
  return impl_->Run(std::move(stop));
}
void PartitionLoop::Wake() {
  impl_->Wake();
}
absl::Status PartitionLoop::Ready() const {
  return impl_->Ready();
}
const Stats& PartitionLoop::stats() const {
  return impl_->stats();
}

}  // namespace fluxqueue::delivery
