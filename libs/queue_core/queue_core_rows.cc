// The core as rows, and from rows.
#include <bit>

#include "libs/base/status_macros.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using model::JobState;

namespace {

absl::Status DataLoss(const std::string& pool, std::string_view what) {
  return MakeStatus(
      absl::StatusCode::kDataLoss,
      "pool {}: the rows of schema queue contradict each other: {}; restore them from "
      "a backup, or replay the pool's log into empty tables",
      pool,
      what);
}

// FNV-1a, so that it is the same in every build.
class Hasher {
 public:
  void Add(std::string_view bytes) {
    Add(bytes.size());
    for (const char c : bytes) Step(static_cast<unsigned char>(c));
  }
  void Add(uint64_t number) {
    for (int i = 0; i < 8; ++i) Step(static_cast<unsigned char>(number >> (8 * i)));
  }
  uint64_t value() const { return hash_; }

 private:
  void Step(unsigned char byte) { hash_ = (hash_ ^ byte) * 1099511628211ULL; }
  uint64_t hash_ = 14695981039346656037ULL;
};

}  // namespace

std::string QueueCore::Impl::PoolRow() const {
  if (!state_.begun) return "";
  queue::v1::PoolRow row;
  row.set_pool(pool_);
  row.set_now_ms(state_.now_ms);
  row.set_beginning_ms(state_.beginning_ms);
  *row.mutable_config() = config();
  row.set_synced(state_.synced);
  row.set_last_submission(state_.last_submission);
  row.set_last_cycle_id(state_.last_cycle_id);
  row.set_cycle_in_flight(state_.cycle == nullptr ? 0 : state_.cycle->cycle_id());
  row.set_cycle_asked_ms(state_.cycle_asked_ms);
  row.set_room_changed(state_.room_changed);
  row.set_ask_again(state_.ask_again);
  row.set_blocked_head(state_.blocked_head);
  row.set_window(state_.window);
  row.set_line_changed(state_.line_changed);
  row.set_due_ms(state_.due_ms);
  row.set_nodes_up(state_.nodes_up);
  row.set_lost_node(state_.lost_node);
  if (state_.capacity != nullptr) *row.mutable_capacity() = ToAmounts(*state_.capacity);
  row.set_limits_due_ms(state_.limits_due_ms);
  if (state_.windows != nullptr) {
    *row.mutable_windows() = {state_.windows->begin(), state_.windows->end()};
  }
  row.set_window_set(state_.window_set);
  row.set_growth(static_cast<uint32_t>(state_.growth));
  row.set_replace_ms(state_.replace_ms);
  row.set_replace_after(state_.replace_after);
  row.set_replace_left(state_.replace_left);
  row.set_replace_paused_ms(state_.replace_paused_ms);
  row.set_last_ending(book_.endings().last());
  if (state_.suspects != nullptr) {
    row.mutable_suspects()->Assign(state_.suspects->begin(), state_.suspects->end());
    row.set_suspects_at_once(state_.suspects_at_once);
  }
  for (const auto& [id, attempt] : book_.ended()) {
    events::v1::AllocationKey* key = row.add_ended();
    key->set_job_id(id);
    key->set_attempt(attempt);
  }
  return row.SerializeAsString();
}

Changes QueueCore::Impl::Describe() const {
  Changes changes;
  if (!before_.has_value()) return changes;
  book_.Describe(pool_, &changes);
  adaptive_.Describe(&changes);
  changes.events = events_;
  changes.attempts = attempts_;
  changes.promises = promise_entries_;
  changes.cycles_requested = cycles_requested_;
  changes.cycles_answered = cycles_answered_;
  changes.pool = PoolRow();
  return changes;
}

absl::Status QueueCore::Impl::RestorePool(const Rows& rows) {
  queue::v1::PoolRow row;
  if (!row.ParseFromString(rows.pool) || row.pool() != pool_) {
    return DataLoss(pool_, "pools.row does not decode as that of the pool");
  }
  state_.begun = true;
  state_.now_ms = row.now_ms();
  state_.beginning_ms = row.beginning_ms();
  state_.config = std::make_shared<const events::v1::PoolConfigured>(row.config());
  state_.synced = row.synced();
  state_.last_submission = row.last_submission();
  state_.last_cycle_id = row.last_cycle_id();
  state_.cycle_asked_ms = row.cycle_asked_ms();
  state_.room_changed = row.room_changed();
  state_.ask_again = row.ask_again();
  state_.blocked_head = row.blocked_head();
  state_.window = row.window();
  state_.line_changed = row.line_changed();
  state_.due_ms = row.due_ms();
  state_.nodes_up = row.nodes_up();
  state_.lost_node = row.lost_node();
  if (!row.capacity().empty()) {
    state_.capacity = std::make_shared<const scheduling::Resources>(ToResources(row.capacity()));
  }
  state_.limits_due_ms = row.limits_due_ms();
  if (!row.windows().empty()) {
    state_.windows = std::make_shared<const Windows>(row.windows().begin(), row.windows().end());
  }
  state_.window_set = row.window_set();
  state_.growth = static_cast<Growth>(row.growth());
  state_.replace_ms = row.replace_ms();
  state_.replace_after = row.replace_after();
  state_.replace_left = row.replace_left();
  state_.replace_paused_ms = row.replace_paused_ms();
  if (!row.suspects().empty()) {
    SetSuspects({row.suspects().begin(), row.suspects().end()}, row.suspects_at_once());
  }
  book_.tree().CountOthers(view_.HasAccounts());
  book_.Clear(state_.now_ms);
  book_.SetLastEnding(row.last_ending());
  for (const events::v1::AllocationKey& key : row.ended()) {
    book_.AddEnded(key.job_id(), key.attempt());
  }
  for (const std::string& bytes : rows.cycles_unanswered) {
    auto cycle = std::make_shared<events::v1::CycleRequested>();
    if (!cycle->ParseFromString(bytes)) return DataLoss(pool_, "cycles.requested does not decode");
    if (cycle->cycle_id() == row.cycle_in_flight()) state_.cycle = std::move(cycle);
  }
  if (row.cycle_in_flight() != 0 && state_.cycle == nullptr) {
    return DataLoss(
        pool_,
        fmt::format("cycle {} is in flight, but not in queue.cycles", row.cycle_in_flight()));
  }
  return absl::OkStatus();
}

absl::Status QueueCore::Impl::RestoreJobs(const Rows& rows) {
  for (const std::string& bytes : rows.queues) {
    queue::v1::QueueRow row;
    if (!row.ParseFromString(bytes)) return DataLoss(pool_, "queues.row does not decode");
    book_.Configure(row.config().queue(),
                    std::make_shared<const events::v1::QueueConfigured>(row.config()));
  }
  for (const std::string& bytes : rows.jobs) {
    queue::v1::JobRow row;
    if (!row.ParseFromString(bytes)) return DataLoss(pool_, "jobs.row does not decode");
    Job job = FromRow(row);
    const bool known = book_.Find(job.id) != nullptr || book_.EndedAttempt(job.id).has_value();
    if (known || !model::kLiveStates.Has(job.state)) {
      return DataLoss(pool_,
                      fmt::format("job {} is {} and {} known already",
                                  job.id,
                                  model::Name(job.state),
                                  known ? "is" : "is not"));
    }
    if (job.state == JobState::kPending && !book_.Exists(job.queue)) {
      return DataLoss(
          pool_,
          fmt::format("job {} is Pending in queue {}, which does not exist", job.id, job.queue));
    }
    if (job.reason == reason::kReserved) promised_.insert(job.id);
    job.expires_ms = planning_.ExpiryOf(job);
    book_.Place(book_.Add(std::move(job)));
  }
  uint64_t last = 0;
  for (const std::string& bytes : rows.endings) {
    queue::v1::JobRow row;
    if (!row.ParseFromString(bytes)) return DataLoss(pool_, "jobs.row does not decode");
    if (row.ending() <= last) {
      return DataLoss(pool_, fmt::format("ending {} stands twice", row.ending()));
    }
    last = row.ending();
    book_.AddEnding(FromRow(row));
  }
  for (const std::string& bytes : rows.usage) {
    queue::v1::UsageRow row;
    if (!row.ParseFromString(bytes) || !(adaptive_.AddRow(row) || book_.AddUsage(row))) {
      return DataLoss(pool_, "usage.row does not decode");
    }
  }
  return absl::OkStatus();
}

absl::Status QueueCore::Impl::Restore(const Rows& rows) {
  Commit();
  state_ = Impl(pool_).state_;
  book_.Clear(0);
  book_.tree().CountOthers(view_.HasAccounts());
  adaptive_.Clear();
  promised_.clear();
  if (rows.pool.empty()) {
    if (rows.jobs.empty() && rows.queues.empty()) return absl::OkStatus();
    return DataLoss(pool_, "there are jobs or queues, but no row in queue.pools");
  }
  RETURN_IF_ERROR(RestorePool(rows));
  RETURN_IF_ERROR(RestoreJobs(rows));
  book_.TakeEntered();
  book_.TakeLeft();
  MarkCandidates(true);
  Commit();
  return absl::OkStatus();
}

uint64_t QueueCore::Impl::Fingerprint() const {
  Hasher hash;
  hash.Add(PoolRow());
  if (state_.cycle != nullptr) hash.Add(state_.cycle->SerializeAsString());
  for (const Entry* entry : book_.Jobs()) {
    hash.Add(ToRow(entry->job, pool_).SerializeAsString());
    hash.Add(entry->job.in_cycle ? 1 : 0);
  }
  for (const auto& [order, queue] : book_.served()) {
    hash.Add(queue->config->SerializeAsString());
    for (const auto& [key, entry] : queue->line) hash.Add(entry->job.submission);
  }
  for (const auto* times : {&book_.alarms(), &book_.expiries()}) {
    for (const auto& [when, entry] : *times) {
      hash.Add(static_cast<uint64_t>(when.first));
      hash.Add(when.second);
    }
    hash.Add(times->size());
  }
  for (const scheduling::PastRow& row : book_.tree().Pasts()) {
    hash.Add(row.queue);
    hash.Add(row.name);
    hash.Add(static_cast<uint64_t>(row.level));
    hash.Add(static_cast<uint64_t>(row.past.at_ms));
    for (const double used : row.past.used) hash.Add(std::bit_cast<uint64_t>(used));
    for (const auto& [resource, used] : row.past.others) {
      hash.Add(resource);
      hash.Add(std::bit_cast<uint64_t>(used));
    }
    for (const scheduling::Spent& spent : row.past.spent) {
      hash.Add(spent.resource);
      hash.Add(static_cast<uint64_t>(spent.period));
      hash.Add(static_cast<uint64_t>(spent.since_ms));
      hash.Add(std::bit_cast<uint64_t>(spent.used));
    }
  }
  for (const scheduling::History& history : book_.predictor().All()) {
    hash.Add(history.user);
    for (const uint64_t number : {history.shape,
                                  static_cast<uint64_t>(history.last_ms),
                                  static_cast<uint64_t>(history.before_ms),
                                  static_cast<uint64_t>(history.declared_error),
                                  static_cast<uint64_t>(history.predicted_error),
                                  history.learnt}) {
      hash.Add(number);
    }
  }
  for (const auto& [number, ending] : book_.endings().all()) {
    hash.Add(ending.number);
    hash.Add(ending.id);
    hash.Add(ending.name);
    hash.Add(ending.succeeded ? 1 : 0);
  }
  for (const std::string& row : adaptive_.Rows()) hash.Add(row);
  for (const auto& [name, queue] : book_.queues()) {
    for (size_t i = 0; i < queue->counts.size(); ++i) {
      if (queue->counts[i] == 0) continue;
      hash.Add(name);
      hash.Add(i);
      hash.Add(queue->counts[i]);
    }
  }
  return hash.value();
}

}  // namespace fluxqueue::queue_core
