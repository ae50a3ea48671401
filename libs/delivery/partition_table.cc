#include "libs/delivery/partition_table.h"

#include <algorithm>
#include <optional>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::delivery {
namespace {

// Nobody has claimed it since.
bool IsSameHold(const InboxRow& row, const InboxRow& ours) {
  return row.epoch == ours.epoch && row.incarnation == ours.incarnation;
}

}  // namespace

void PartitionTable::Add(const InboxRow& row, StreamFilter::Positions seen) {
  const Place place{row.next_offset, row.append_time, row.log_time};
  held_.insert_or_assign(
      row.partition, Partition{row, place, place, StreamFilter(std::move(seen), row.truncated)});
}

PartitionTable::Partition* PartitionTable::Find(int partition) {
  const auto found = held_.find(partition);
  return found == held_.end() ? nullptr : &found->second;
}

std::vector<int> PartitionTable::Partitions() const {
  std::vector<int> partitions;
  for (const auto& [partition, state] : held_) partitions.push_back(partition);
  return partitions;
}

std::vector<int> PartitionTable::TakeForeign() {
  const std::set<int> foreign = std::exchange(foreign_, {});
  return {foreign.begin(), foreign.end()};
}

void PartitionTable::Rollback() {
  for (auto& [partition, state] : held_) {
    state.now = state.kept;
    state.filter.Rollback();
  }
}

void PartitionTable::Keep() {
  for (auto& [partition, state] : held_) {
    state.kept = state.now;
    state.filter.Keep();
  }
}

bool PartitionTable::Ahead() const {
  return std::any_of(held_.begin(), held_.end(), [](const auto& held) {
    return held.second.kept.next_offset != held.second.row.next_offset;
  });
}

absl::Status PartitionTable::Lock(pqxx::transaction_base& tx) {
  foreign_.clear();
  const std::vector<int> partitions = Partitions();
  // A row that is not there is not ours either.
  std::set<int> foreign(partitions.begin(), partitions.end());
  for (const InboxRow& row : LockPartitions(tx, partitions)) {
    const InboxRow& ours = held_.at(row.partition).row;
    if (IsSameHold(row, ours) && row.commits == ours.commits &&
        row.next_offset == ours.next_offset) {
      foreign.erase(row.partition);
    }
  }
  foreign_ = std::move(foreign);
  if (foreign_.empty()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAborted,
                    "partition {} of topic {} is another's",
                    *foreign_.begin(),
                    topic_);
}

BatchRows PartitionTable::Rows(const Batch& batch) {
  touched_.clear();
  BatchRows rows;
  for (const Outbox::Message& message : batch.outbox.messages()) touched_.insert(message.source);
  for (const DeadLetter& letter : batch.letters) touched_.insert(letter.source);
  for (const auto& [partition, state] : held_) {
    if (state.now.next_offset != state.row.next_offset) touched_.insert(partition);
    for (const auto& [stream, position] : state.filter.unsaved()) {
      rows.raised.push_back({partition, stream, position});
    }
  }
  // At least one row must tell whether the commit happened.
  if (touched_.empty()) touched_.insert(held_.begin()->first);
  for (const int partition : touched_) {
    const auto state = held_.find(partition);
    CHECK(state != held_.end(), "a message for source {}, which is not held", partition);
    InboxRow moved = state->second.row;
    moved.next_offset = state->second.now.next_offset;
    moved.append_time = state->second.now.append_time;
    moved.log_time = state->second.now.log_time;
    rows.moved.push_back(moved);
  }
  return rows;
}

BatchGuard::Outcome PartitionTable::Settle(pqxx::transaction_base& tx) {
  foreign_.clear();
  const std::vector<int> partitions = Partitions();
  std::optional<Outcome> outcome;
  std::set<int> taken;
  for (const InboxRow& row : LockPartitions(tx, partitions)) {
    const InboxRow& ours = held_.at(row.partition).row;
    const bool touched = touched_.contains(row.partition);
    const int64_t since = row.commits - ours.commits;
    // A database that has gone back does not know the times that our memory is of.
    if (!IsSameHold(row, ours) || since < 0 || since > (touched ? 1 : 0)) {
      taken.insert(row.partition);
    } else if (touched) {
      outcome = since == 0 ? Outcome::kNotCommitted : Outcome::kCommitted;
    }
  }
  if (outcome == Outcome::kCommitted) return *outcome;
  foreign_ = taken;
  if (outcome.has_value()) return *outcome;
  // None of the rows that could tell is ours any more: what the others' memory should be is in
  // doubt too.
  foreign_.insert(partitions.begin(), partitions.end());
  return Outcome::kTaken;
}

void PartitionTable::Committed() {
  for (const int partition : touched_) ++held_.at(partition).row.commits;
  for (auto& [partition, state] : held_) {
    state.kept = state.now;
    state.row.next_offset = state.now.next_offset;
    state.row.append_time = state.now.append_time;
    state.row.log_time = state.now.log_time;
    state.filter.Commit();
  }
}

}  // namespace fluxqueue::delivery
