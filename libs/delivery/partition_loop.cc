#include "libs/delivery/partition_loop.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/committer.h"
#include "libs/delivery/message_folder.h"
#include "libs/delivery/partition_holder.h"
#include "libs/delivery/partition_table.h"
#include "libs/delivery/partition_worker.h"
#include "libs/delivery/prepare.h"
#include "libs/kafka/bus.h"

namespace fluxqueue::delivery {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr Millis kDrain{1000};
constexpr Millis kLagInterval{1000};

}  // namespace

class PartitionLoop::Impl {
 public:
  Impl(Options options, PartitionHandler& handler, const Clock& clock, FaultInjector* faults)
      : options_(std::move(options)),
        group_("fluxqueue." + options_.loop.service),
        handler_(handler),
        clock_(clock),
        ready_(NotJoined()),
        progress_(clock, options_.loop.step_limit),
        committer_(options_.loop, clock, stats_, ready_, progress_, faults),
        table_(options_.topic),
        folder_(options_.topic, options_.loop.keys.get(), handler, faults),
        holder_({.options = options_.loop,
                 .topic = options_.topic,
                 .handler = handler,
                 .committer = committer_,
                 .table = table_,
                 .folder = folder_,
                 .stats = stats_}),
        worker_({.clock = clock,
                 .handler = handler,
                 .committer = committer_,
                 .table = table_,
                 .folder = folder_,
                 .stats = stats_,
                 .progress = progress_}),
        backoff_(options_.loop.retry_min, options_.loop.retry_max, options_.loop.seed) {}

  absl::Status Run(std::stop_token stop);
  absl::Status Prepare(std::stop_token stop);
  void Wake();
  absl::Status Ready() const { return ready_.Get(); }
  absl::Status Alive() const { return progress_.Check(); }
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

  absl::Status ServeAssignment();
  absl::Status Reclaim();
  absl::Status Claim(const std::vector<int>& partitions);
  // Kafka was away: it may have come back with another log, or with none.
  absl::Status CheckLogs();

  absl::Status Work(std::stop_token stop);
  // librdkafka 2.0 may never join again after a broker that was restarted has forgotten the member:
  // then the consumer is made anew. A member for whom there are no partitions is told so with an
  // empty assignment.
  Millis RejoinPatience() const { return 2 * options_.loop.session_timeout + options_.loop.idle; }
  // A commit went through: what had been in the way is so no more.
  void NoteWorked();
  // Drops what another has taken; false: nothing was.
  bool GiveUpForeign();
  void UpdateLag();

  const Options options_;
  const std::string group_;
  PartitionHandler& handler_;
  const Clock& clock_;
  Stats stats_;
  Readiness ready_;
  Progress progress_;
  Committer committer_;
  PartitionTable table_;
  MessageFolder folder_;
  PartitionHolder holder_;
  PartitionWorker worker_;
  Backoff backoff_;

  std::mutex consumer_mutex_;  // guards the pointer against Wake
  std::unique_ptr<kafka::Subscription> consumer_;
  absl::Status kafka_status_;

  std::optional<std::vector<int>> starting_;  // gained, and not claimed yet
  std::optional<TimePoint> rejoin_by_;        // a new assignment is due by then
  std::map<int, TimePoint> reclaim_;          // assigned to us, dropped, to be taken again then

  TimePoint retry_at_;
  TimePoint lag_at_;
};

absl::Status PartitionLoop::Impl::Prepare(std::stop_token stop) {
  const auto waits = [this](const absl::Status& why) { ready_.Set(why); };
  return delivery::Prepare(options_.loop, options_.migrations, waits, std::move(stop), clock_);
}

absl::Status PartitionLoop::Impl::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { Wake(); });
  const absl::Status prepared = Prepare(stop);
  if (absl::IsCancelled(prepared)) return absl::OkStatus();
  RETURN_IF_ERROR(prepared);
  ready_.Set(NotJoined());
  while (!stop.stop_requested()) {
    progress_.Step();
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
  if (table_.held().empty()) RETURN_IF_ERROR(handler_.Idle());
  if (clock_.Monotonic() < retry_at_ || stop.stop_requested()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckLogs());
  RETURN_IF_ERROR(ServeAssignment());
  RETURN_IF_ERROR(Reclaim());
  if (backoff_.failures() > 0) RETURN_IF_ERROR(holder_.ReadSkips());
  return Work(stop);
}

void PartitionLoop::Impl::Wake() {
  const std::scoped_lock lock(consumer_mutex_);
  if (consumer_ != nullptr) consumer_->Wake();
}

absl::Status PartitionLoop::Impl::EnsureConsumer() {
  if (consumer_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto consumer,
                   options_.loop.bus->Join({.brokers = options_.loop.brokers,
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
  while (!table_.held().empty()) holder_.Drop(table_.held().begin()->first);
  starting_.reset();
  rejoin_by_.reset();
  reclaim_.clear();
  worker_.Forget();
  {
    const std::scoped_lock lock(consumer_mutex_);
    consumer_.reset();
  }
  ready_.Set(why);
  retry_at_ = clock_.Monotonic() + backoff_.Next();
}

// ---- receiving

Millis PartitionLoop::Impl::ReceiveTimeout() const {
  if (starting_.has_value()) return Millis{0};
  if (table_.held().empty()) return worker_.inbox().empty() ? options_.loop.idle : Millis{0};
  const TimePoint now = clock_.Monotonic();
  TimePoint until = now + options_.loop.idle;
  if (!worker_.inbox().empty() || handler_.HasWork()) {
    until = now;
  } else if (const std::optional<TimePoint> wake_at = handler_.WakeAt()) {
    until = std::min(until, *wake_at);
  }
  if (worker_.Paced()) until = std::max(until, committer_.next_commit());
  return std::max(Millis{0}, std::chrono::ceil<Millis>(until - now));
}

void PartitionLoop::Impl::Receive(std::stop_token stop) {
  const TimePoint now = clock_.Monotonic();
  std::vector<kafka::Message>& inbox = worker_.inbox();
  absl::Status status;
  if (now < retry_at_) {
    // Only so much is received while nothing can be done with it, that the group keeps us.
    Pause(clock_, std::chrono::ceil<Millis>(retry_at_ - now), stop);
    status = consumer_->Poll(Millis{0}, 1, &inbox);
  } else if (committer_.publisher().Full()) {
    committer_.publisher().Pump(options_.loop.idle);
    status = consumer_->Poll(Millis{0}, 1, &inbox);
  } else {
    const size_t room = std::max<size_t>(
        1, options_.loop.max_batch - std::min(inbox.size(), options_.loop.max_batch));
    status = consumer_->Poll(ReceiveTimeout(), room, &inbox);
  }
  if (absl::IsFailedPrecondition(status)) {
    DropConsumer(status);
    return;
  }
  NoteKafka(status);
  for (const int partition : consumer_->TakeOutOfRange()) {
    // Those that the group has taken since are told of, too; to stop them is refused.
    if (!table_.Holds(partition) && !reclaim_.contains(partition)) continue;
    if (table_.Holds(partition)) holder_.Drop(partition);
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
  const auto logs = PartitionHolder::ReadLogs(*consumer_, handled);
  if (!logs.ok()) return Unavailable("{}", Message(kafka_status_));
  for (const auto& [partition, log] : *logs) {
    if (log.next_offset >= handled.at(partition).next_offset) continue;
    holder_.Drop(partition);
    reclaim_[partition] = clock_.Monotonic();
  }
  kafka_status_ = absl::OkStatus();
  if (!table_.held().empty()) ready_.Set(absl::OkStatus());
  return absl::OkStatus();
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
        if (table_.Holds(partition)) holder_.Drop(partition);
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
  const absl::Status status = consumer_->Start(holder_.Positions(started));
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
  std::erase_if(worker_.inbox(), [&](const kafka::Message& message) {
    return std::find(due.begin(), due.end(), message.partition) != due.end();
  });
  absl::Status status = consumer_->Stop(due);
  if (status.ok()) status = consumer_->Start(holder_.Positions(due));
  if (status.ok()) {
    ready_.Set(absl::OkStatus());
  } else {
    DropConsumer(status);
  }
  return absl::OkStatus();
}

absl::Status PartitionLoop::Impl::Claim(const std::vector<int>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  const std::string doing =
      fmt::format("take partitions {} of topic {}", fmt::join(partitions, ", "), options_.topic);
  // Who holds others is ready until it fails; after that the reason stands until it goes through.
  if (table_.held().empty() && backoff_.failures() == 0) {
    ready_.Begin(Unavailable("{}: reading what lives there", doing));
  }
  RETURN_IF_ERROR(Annotate(holder_.Claim(*consumer_, partitions), doing));
  backoff_.Reset();
  return absl::OkStatus();
}

// ---- working

absl::Status PartitionLoop::Impl::Work(std::stop_token stop) {
  const absl::StatusOr<bool> worked = worker_.Work(/*settled=*/backoff_.failures() == 0, stop);
  if (GiveUpForeign()) return absl::OkStatus();
  RETURN_IF_ERROR(worked.status());
  if (*worked) NoteWorked();
  return absl::OkStatus();
}

void PartitionLoop::Impl::NoteWorked() {
  backoff_.Reset();
  ready_.Set(kafka_status_.ok() ? committer_.publisher().status() : kafka_status_);
}

// Who took them has them by the group's word; if it is us after all, we shall still have them a
// session timeout later.
bool PartitionLoop::Impl::GiveUpForeign() {
  const std::vector<int> foreign = table_.TakeForeign();
  for (const int partition : foreign) {
    if (!table_.Holds(partition)) continue;
    LogWarning("partition taken by another",
               {{"topic", options_.topic}, {"partition", fmt::format("{}", partition)}});
    holder_.Drop(partition);
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
absl::Status PartitionLoop::Alive() const {
  return impl_->Alive();
}
const Stats& PartitionLoop::stats() const {
  return impl_->stats();
}

}  // namespace fluxqueue::delivery
