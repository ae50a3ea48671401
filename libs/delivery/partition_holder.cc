#include "libs/delivery/partition_holder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"

namespace fluxqueue::delivery {
namespace {

constexpr Millis kWatermarksTimeout{2000};
// What is kept of a large pool is much for one statement, and is put together between two: other
// limits than those of a batch. Who dies meanwhile is known at once by his connection; who freezes
// keeps his successor waiting for so long.
constexpr postgres::Limits kClaimLimits{.statement_timeout = std::chrono::minutes(2),
                                        .idle_in_transaction_timeout = std::chrono::minutes(1)};
// What an owner said longer ago than this is not sent again.
constexpr Millis kStreamsKept = std::chrono::days(7);

}  // namespace

std::string PartitionHolder::StreamOf(int partition) const {
  return fmt::format("{}/{}", deps_.options.service, partition);
}

absl::StatusOr<std::map<int, PartitionHolder::Log>> PartitionHolder::ReadLogs(
    kafka::Subscription& consumer, const std::map<int, PartitionTable::Place>& handled) {
  std::map<int, Log> logs;
  std::map<int, Millis> times;
  std::vector<int> partitions;
  for (const auto& [partition, place] : handled) {
    times[partition] = place.append_time;
    partitions.push_back(partition);
  }
  const auto marks = consumer.QueryWatermarks(partitions, kWatermarksTimeout);
  // Also a topic that is not there may come.
  if (!marks.ok()) return Unavailable("{}", Message(marks.status()));
  for (const int partition : partitions) logs[partition].marks = marks->at(partition);
  const auto later = consumer.FirstAfter(times, kWatermarksTimeout);
  if (!later.ok()) return Unavailable("{}", Message(later.status()));
  for (auto& [partition, log] : logs) {
    const auto newer = later->find(partition);
    const int64_t end = newer == later->end() ? log.marks.high : newer->second;
    log.next_offset = std::max(log.marks.low, std::min(end, handled.at(partition).next_offset));
  }
  return logs;
}

std::vector<kafka::Position> PartitionHolder::Positions(const std::vector<int>& partitions) const {
  std::vector<kafka::Position> positions;
  for (const int partition : partitions) {
    positions.push_back({partition, deps_.table.held().at(partition).kept.next_offset});
  }
  return positions;
}

absl::Status PartitionHolder::ClaimRow(pqxx::transaction_base& tx,
                                       const Log& log,
                                       Claimed* claimed) {
  InboxRow& row = claimed->row;
  if (log.next_offset != row.next_offset) {
    if (row.next_offset > 0) {
      ++deps_.stats.resets;
      LogWarning(log.next_offset < row.next_offset
                     ? "messages may be lost: the log is not the one that was handled"
                     : "messages lost: the log was cut before they were handled",
                 {{"topic", deps_.topic},
                  {"partition", fmt::format("{}", row.partition)},
                  {"handled", fmt::format("{}", row.next_offset)},
                  {"log", fmt::format("{}-{}", log.marks.low, log.marks.high)},
                  {"next", fmt::format("{}", log.next_offset)}});
    }
    row.next_offset = log.next_offset;
    row.truncated = true;
    ResetPartition(tx, row);
  }
  DeleteStreams(tx, row.partition, kStreamsKept);
  claimed->seen = LoadStreams(tx, row.partition);
  ASSIGN_OR_RETURN(claimed->leftovers, LoadOutbox(tx, StreamOf(row.partition)));
  DeleteSkips(tx, row.partition, row.next_offset);
  claimed->skips = LoadSkips(tx, row.partition);
  return deps_.handler.Load(tx, row.partition);
}

absl::Status PartitionHolder::Claim(kafka::Subscription& consumer,
                                    const std::vector<int>& partitions) {
  std::map<int, Claimed> claims;
  const absl::Status status = deps_.committer.store().Transact(
      kClaimLimits, [&](pqxx::transaction_base& tx) -> absl::Status {
        std::map<int, PartitionTable::Place> handled;
        for (const int partition : partitions) {
          InboxRow& row = claims[partition].row;
          row = ClaimPartition(tx, partition, deps_.options.instance, deps_.options.address);
          handled[partition] = {row.next_offset, row.append_time, row.log_time};
        }
        ASSIGN_OR_RETURN(const auto logs, ReadLogs(consumer, handled));
        for (auto& [partition, claimed] : claims) {
          RETURN_IF_ERROR(ClaimRow(tx, logs.at(partition), &claimed));
        }
        return absl::OkStatus();
      });
  if (!status.ok()) {
    for (const int partition : partitions) deps_.handler.Drop(partition);
    return status;
  }
  for (auto& [partition, claimed] : claims) Hold(partition, std::move(claimed));
  deps_.stats.held = deps_.table.held().size();
  deps_.committer.publisher().Pump(Millis{0});
  return absl::OkStatus();
}

void PartitionHolder::Hold(int partition, Claimed claimed) {
  const InboxRow& row = claimed.row;
  deps_.table.Add(row, std::move(claimed.seen));
  deps_.folder.LeaveOut(partition, std::move(claimed.skips));
  deps_.committer.stamper().AddSource(partition,
                                      WithIncarnation(StreamOf(partition), row.incarnation));
  for (OutboxRow& left : claimed.leftovers) deps_.committer.publisher().Add(std::move(left));
  ++deps_.stats.gained;
  LogInfo("partition gained",
          {{"topic", deps_.topic},
           {"partition", fmt::format("{}", partition)},
           {"epoch", fmt::format("{}", row.epoch)},
           {"offset", fmt::format("{}", row.next_offset)}});
}

absl::Status PartitionHolder::ReadSkips() {
  return deps_.committer.store().Query([this](pqxx::transaction_base& tx) {
    for (const auto& [partition, held] : deps_.table.held()) {
      deps_.folder.LeaveOut(partition, LoadSkips(tx, partition));
    }
    return absl::OkStatus();
  });
}

void PartitionHolder::Drop(int partition) {
  LogInfo("partition dropped",
          {{"topic", deps_.topic}, {"partition", fmt::format("{}", partition)}});
  deps_.handler.Drop(partition);
  deps_.table.Remove(partition);
  deps_.folder.Drop(partition);
  deps_.committer.stamper().DropSource(partition);
  deps_.committer.publisher().DropStream(StreamOf(partition));
  ++deps_.stats.lost;
  deps_.stats.held = deps_.table.held().size();
}

}  // namespace fluxqueue::delivery
