#include "libs/delivery/shard_loop.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/committer.h"
#include "libs/delivery/incarnation.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/quarantine_store.h"

namespace fluxqueue::delivery {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

// How long acknowledged outbox rows may stay when no batch takes them along, and the longest sleep.
constexpr Millis kIdle{500};
constexpr Millis kDrain{1000};

}  // namespace

class ShardLoop::Impl final : public BatchGuard {
 public:
  Impl(Options options, ShardHandler& handler, const Clock& clock, FaultInjector* faults)
      : options_(std::move(options)),
        stream_(options_.loop.service + "/" + options_.shard),
        handler_(handler),
        clock_(clock),
        ready_(Unavailable("the lease of {} was not asked for yet", stream_)),
        no_objects_(clock),
        quarantine_(options_.quarantine == nullptr ? no_objects_ : *options_.quarantine),
        progress_(clock, options_.loop.step_limit),
        faults_(faults),
        committer_(options_.loop, clock, stats_, ready_, progress_, faults),
        backoff_(options_.loop.retry_min, options_.loop.retry_max, options_.loop.seed) {}

  absl::Status Run(std::stop_token stop);
  absl::Status Prepare(std::stop_token stop);
  void Wake();
  absl::Status Ready() const { return ready_.Get(); }
  absl::Status Alive() const { return progress_.Check(); }
  bool Held() const { return held_; }
  const Stats& stats() const { return stats_; }
  Publisher& publisher() { return committer_.publisher(); }
  absl::StatusOr<int64_t> LogEnd(int partition) {
    return publisher().QueryEnd({options_.loop.topics.pool, partition});
  }

  absl::Status Lock(pqxx::transaction_base& tx) override;
  BatchRows Rows(const Batch& /*batch*/) override { return {}; }
  Outcome Settle(pqxx::transaction_base& tx) override;
  void Committed() override;

 private:
  absl::Status RunOnce(std::stop_token stop);
  // Sleeps until there is something to do, or Wake.
  void Wait(std::stop_token stop);
  bool Due() const;
  absl::Status Take();
  // Takes the lease, and reads what is kept of objects.
  std::optional<LeaseRow> TakeRows(pqxx::transaction_base& tx,
                                   std::vector<QuarantineRow>* objects,
                                   int* ends);
  absl::Status Work(std::stop_token stop);
  absl::Status Poll(Batch& batch);
  // A batch that has failed was rolled back. OK: one of its objects is to blame, or will be.
  absl::Status Blame(const absl::Status& status, bool in_poll);
  // The lease was taken from holders that did not give it back, `ends` times in a row.
  void BeCareful(int ends);
  absl::Status EndCare();
  // The handler's memory is in doubt, or it is to see everything again.
  absl::Status Reload(std::stop_token stop);
  // Commits what the handler has said, or (nullptr) only renews the lease.
  absl::Status CommitBatch(Batch& batch, BatchHandler* handler, std::stop_token stop);
  void Drop();
  void Release();
  Millis Ttl() const { return options_.loop.session_timeout; }

  const Options options_;
  const std::string stream_;
  ShardHandler& handler_;
  const Clock& clock_;
  Stats stats_;
  Readiness ready_;
  Quarantine no_objects_;
  Quarantine& quarantine_;
  Progress progress_;
  FaultInjector* const faults_;
  Committer committer_;
  Backoff backoff_;

  std::atomic<bool> held_ = false;
  bool reload_ = false;
  std::optional<TimePoint> careful_until_;
  std::vector<Quarantine::Key> retried_;  // by an operator; seen in the transaction under way
  LeaseRow lease_;
  bool taken_ = false;  // seen while locking: the lease is another's
  TimePoint next_try_;  // to take the lease, or after an error
  TimePoint renew_at_;

  Bell bell_;
};

absl::Status ShardLoop::Impl::Prepare(std::stop_token stop) {
  const auto waits = [this](const absl::Status& why) { ready_.Set(why); };
  return delivery::Prepare(options_.loop, options_.migrations, waits, std::move(stop), clock_);
}

absl::Status ShardLoop::Impl::Run(std::stop_token stop) {
  const absl::Status prepared = Prepare(stop);
  if (absl::IsCancelled(prepared)) return absl::OkStatus();
  RETURN_IF_ERROR(prepared);
  while (!stop.stop_requested()) {
    progress_.Step();
    const absl::Status status = RunOnce(stop);
    if (status.ok()) continue;
    if (absl::IsCancelled(status)) break;
    if (!IsTransient(status) && !postgres::IsOutcomeUnknown(status)) {
      ready_.Set(status);
      return Annotate(status, "delivery of " + stream_);
    }
    ready_.Set(status);
    next_try_ = clock_.Monotonic() + backoff_.Next();
  }
  committer_.publisher().Drain(kDrain);
  Release();
  return absl::OkStatus();
}

absl::Status ShardLoop::Impl::RunOnce(std::stop_token stop) {
  committer_.publisher().Pump(Millis{0});
  Wait(stop);
  if (stop.stop_requested() || clock_.Monotonic() < next_try_) return absl::OkStatus();
  if (!held_) return Take();
  if (reload_) return Reload(stop);
  RETURN_IF_ERROR(EndCare());
  if (backoff_.failures() == 0) ready_.Set(committer_.publisher().status());
  return Work(stop);
}

void ShardLoop::Impl::Wake() {
  bell_.Ring();
}

bool ShardLoop::Impl::Due() const {
  const std::optional<TimePoint> wake_at = handler_.WakeAt();
  return handler_.HasWork() || (wake_at.has_value() && *wake_at <= clock_.Monotonic());
}

void ShardLoop::Impl::Wait(std::stop_token stop) {
  const TimePoint now = clock_.Monotonic();
  TimePoint until = now + kIdle;
  // What waits for Kafka's acknowledgement is looked after between short sleeps.
  if (stats_.unpublished > 0) until = now + Millis{20};
  const bool may_work = held_ && now >= next_try_ && !committer_.publisher().Full();
  if (may_work) {
    const TimePoint paced = committer_.next_commit();
    if (handler_.HasWork()) {
      until = std::min(until, paced);
    } else if (const auto wake_at = handler_.WakeAt()) {
      until = std::min(until, std::max(*wake_at, paced));
    }
    until = std::min(until, renew_at_);
    if (quarantine_.HasPending()) return;
    if (const auto look_at = quarantine_.LookAt()) until = std::min(until, *look_at);
    if (until <= now || reload_) return;
  } else if (now < next_try_) {
    until = std::min(until, next_try_);
  }
  if (!held_ && now >= next_try_) return;
  // Woken while it must not work anyway: sleep on, and look when the time has come.
  if (may_work) {
    clock_.Wait(bell_, until, stop);
  } else {
    Pause(clock_, std::chrono::ceil<Millis>(until - now), stop);
  }
  bell_.Silence();
}

absl::Status ShardLoop::Impl::Take() {
  std::optional<LeaseRow> lease;
  std::vector<QuarantineRow> objects;
  int ends = 0;
  std::vector<OutboxRow> leftovers;
  const absl::Status status =
      committer_.store().Transact([&](pqxx::transaction_base& tx) -> absl::Status {
        lease = TakeRows(tx, &objects, &ends);
        if (!lease.has_value()) return absl::OkStatus();
        ASSIGN_OR_RETURN(leftovers, LoadOutbox(tx, stream_));
        return handler_.Load(tx);
      });
  if (!status.ok()) {
    handler_.Drop();
    return status;
  }
  ready_.Set(absl::OkStatus());
  backoff_.Reset();
  const TimePoint now = clock_.Monotonic();
  if (!lease.has_value()) {
    next_try_ = now + Ttl() / 4;
    return absl::OkStatus();
  }
  LogInfo("lease taken", {{"shard", stream_}, {"epoch", fmt::format("{}", lease->epoch)}});
  lease_ = *lease;
  held_ = true;
  quarantine_.Restore(std::move(objects));
  BeCareful(ends);
  ++stats_.gained;
  stats_.held = 1;
  renew_at_ = now + Ttl() / 3;
  committer_.stamper().AddSource(kShard, WithIncarnation(stream_, lease_.incarnation));
  for (OutboxRow& row : leftovers) committer_.publisher().Add(std::move(row));
  committer_.publisher().Pump(Millis{0});
  return absl::OkStatus();
}

std::optional<LeaseRow> ShardLoop::Impl::TakeRows(pqxx::transaction_base& tx,
                                                  std::vector<QuarantineRow>* objects,
                                                  int* ends) {
  const std::optional<LeaseRow> last = LockLease(tx, options_.shard);
  std::optional<LeaseRow> lease = TakeLease(tx, options_.shard, options_.loop.instance, Ttl());
  if (!lease.has_value()) return lease;
  *ends = CountEnd(tx, options_.shard, last.has_value() && !last->given_back);
  *objects = LoadQuarantine(tx, options_.shard);
  return lease;
}

void ShardLoop::Impl::BeCareful(int ends) {
  quarantine_.MarkWith(nullptr);
  careful_until_.reset();
  if (ends == 0) return;
  careful_until_ = clock_.Monotonic() + kCarefulFor;
  if (ends < kManyEnds) return;
  LogWarning("processes that held the lease ended again and again: objects go one by one",
             {{"shard", stream_}, {"ends", fmt::format("{}", ends)}});
  quarantine_.MarkWith([this](const ObjectRef* object) {
    return committer_.store().Query([&](pqxx::transaction_base& tx) {
      MarkUnderWay(tx, options_.shard, object);
      return absl::OkStatus();
    });
  });
}

absl::Status ShardLoop::Impl::EndCare() {
  const TimePoint now = clock_.Monotonic();
  if (!careful_until_.has_value() || now < *careful_until_) return absl::OkStatus();
  if (handler_.HasWork() && now < *careful_until_ + (kCarefulAtMost - kCarefulFor)) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(committer_.store().Query([&](pqxx::transaction_base& tx) {
    ForgetEnds(tx, options_.shard, lease_.epoch);
    return absl::OkStatus();
  }));
  if (quarantine_.marks()) LogInfo("objects go together again", {{"shard", stream_}});
  if (!handler_.HasWork()) quarantine_.ForgetSuspects();
  BeCareful(/*ends=*/0);
  return absl::OkStatus();
}

absl::Status ShardLoop::Impl::Reload(std::stop_token stop) {
  if (quarantine_.HasPending()) {
    Batch none;
    RETURN_IF_ERROR(CommitBatch(none, nullptr, stop));
  }
  if (!held_) return absl::OkStatus();
  handler_.Drop();
  const absl::Status status =
      committer_.store().Transact([&](pqxx::transaction_base& tx) { return handler_.Load(tx); });
  if (!status.ok()) {
    handler_.Drop();
    return status;
  }
  reload_ = false;
  return absl::OkStatus();
}

absl::Status ShardLoop::Impl::Poll(Batch& batch) {
  try {
    return handler_.Poll(batch.outbox);
  } catch (const std::exception& error) {
    return InvalidArgument("it threw: {}", error.what());
  }
}

absl::Status ShardLoop::Impl::Blame(const absl::Status& status, bool in_poll) {
  const size_t objects = quarantine_.admitted();
  const bool lacks = faults_ != nullptr && faults_->Lacks(Safety::kQuarantine);
  if (!IsPoison(status) || objects == 0 || lacks) {
    quarantine_.Rollback();
    return status;
  }
  if (in_poll || (quarantine_.careful() && objects == 1)) {
    quarantine_.Condemn(Message(status));
    if (in_poll) reload_ = true;
    return absl::OkStatus();
  }
  LogWarning("a batch of objects cannot be written: they go one by one",
             {{"shard", stream_}, {"because", Message(status)}});
  quarantine_.Rollback();
  quarantine_.OneByOne(objects);
  return absl::OkStatus();
}

absl::Status ShardLoop::Impl::Work(std::stop_token stop) {
  if (const auto look_at = quarantine_.LookAt();
      look_at.has_value() && *look_at <= clock_.Monotonic()) {
    reload_ = true;
    return absl::OkStatus();
  }
  Batch batch;
  if (quarantine_.HasPending()) return CommitBatch(batch, nullptr, stop);
  if (Due() && !committer_.publisher().Full() && clock_.Monotonic() >= committer_.next_commit()) {
    if (const absl::Status polled = Poll(batch); !polled.ok()) {
      handler_.Rollback();
      return Blame(polled, /*in_poll=*/true);
    }
    if (batch.outbox.empty() && !handler_.HasRows() && clock_.Monotonic() < renew_at_) {
      handler_.Commit();
      return quarantine_.Handled();
    }
    return CommitBatch(batch, &handler_, stop);
  }
  const TimePoint now = clock_.Monotonic();
  const bool tidy =
      now - committer_.last_commit() > kIdle && !committer_.publisher().Prefixes().empty();
  if (now < renew_at_ && !tidy) return absl::OkStatus();
  return CommitBatch(batch, nullptr, stop);
}

absl::Status ShardLoop::Impl::CommitBatch(Batch& batch,
                                          BatchHandler* handler,
                                          std::stop_token stop) {
  taken_ = false;
  for (const QuarantineRow& row : quarantine_.Untold()) {
    batch.letters.push_back(MakeLetter(row, stream_));
  }
  const absl::Status status = committer_.Commit(batch, *this, handler, stop);
  if (status.ok()) {
    backoff_.Reset();
    renew_at_ = clock_.Monotonic() + Ttl() / 3;
    return handler == nullptr ? absl::OkStatus() : quarantine_.Handled();
  }
  if (handler != nullptr) handler->Rollback();
  if (!taken_) return handler == nullptr ? status : Blame(status, /*in_poll=*/false);
  LogWarning("lease lost to another", {{"shard", stream_}});
  Drop();
  return absl::OkStatus();
}

absl::Status ShardLoop::Impl::Lock(pqxx::transaction_base& tx) {
  retried_.clear();
  if (RenewLease(tx, options_.shard, lease_, Ttl())) {
    if (!quarantine_.empty()) retried_ = TakeRetried(tx, options_.shard);
    WriteQuarantine(tx, options_.shard, quarantine_.Pending(retried_));
    if (quarantine_.marks()) ClearUnderWay(tx, options_.shard);
    return absl::OkStatus();
  }
  taken_ = true;
  return MakeStatus(absl::StatusCode::kAborted, "the lease of {} is another's", stream_);
}

void ShardLoop::Impl::Committed() {
  ++lease_.commits;
  quarantine_.Saved();
  if (retried_.empty()) return;
  quarantine_.Retried(std::exchange(retried_, {}));
  reload_ = true;
}

BatchGuard::Outcome ShardLoop::Impl::Settle(pqxx::transaction_base& tx) {
  const std::optional<LeaseRow> row = LockLease(tx, options_.shard);
  if (row.has_value() && row->epoch == lease_.epoch && row->incarnation == lease_.incarnation) {
    if (row->commits == lease_.commits) return Outcome::kNotCommitted;
    if (row->commits == lease_.commits + 1) return Outcome::kCommitted;
  }
  // Another's, or of a database that has gone back.
  taken_ = true;
  return Outcome::kTaken;
}

void ShardLoop::Impl::Drop() {
  handler_.Drop();
  quarantine_.Rollback();
  held_ = false;
  reload_ = false;
  ++stats_.lost;
  stats_.held = 0;
  committer_.stamper().DropSource(kShard);
  committer_.publisher().DropStream(stream_);
  next_try_ = clock_.Monotonic() + Ttl() / 4;
}

// Whoever waits for the lease need not wait until it runs out.
void ShardLoop::Impl::Release() {
  if (!held_) return;
  const absl::Status status = committer_.store().Transact([&](pqxx::transaction_base& tx) {
    ReleaseLease(tx, options_.shard, lease_);
    if (quarantine_.marks()) ClearUnderWay(tx, options_.shard);
    return absl::OkStatus();
  });
  if (!status.ok()) LogWarning("lease not given back", {{"because", Message(status)}});
  Drop();
}

ShardLoop::ShardLoop(Options options,
                     ShardHandler& handler,
                     const Clock& clock,
                     FaultInjector* faults)
    : impl_(std::make_unique<Impl>(std::move(options), handler, clock, faults)) {}
ShardLoop::~ShardLoop() = default;
absl::Status ShardLoop::Run(std::stop_token stop) {
  return impl_->Run(std::move(stop));
}
void ShardLoop::Wake() {
  impl_->Wake();
}
absl::Status ShardLoop::Ready() const {
  return impl_->Ready();
}
absl::Status ShardLoop::Alive() const {
  return impl_->Alive();
}
bool ShardLoop::Held() const {
  return impl_->Held();
}
const Stats& ShardLoop::stats() const {
  return impl_->stats();
}
uint64_t ShardLoop::Said() const {
  return impl_->publisher().added();
}
uint64_t ShardLoop::Acknowledged() const {
  return impl_->publisher().acknowledged();
}
absl::StatusOr<int64_t> ShardLoop::LogEnd(int partition) {
  return impl_->LogEnd(partition);
}

}  // namespace fluxqueue::delivery
