// The partitions that a loop holds: inbox rows and stream positions, as the tables have them, as
// our memory stands, and as they are with the batch under way. As a BatchGuard it checks, moves and
// settles the rows. Confined to the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/delivery/committer.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/stream_filter.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class PartitionTable final : public BatchGuard {
 public:
  struct Place {
    int64_t next_offset;
    Millis append_time;
    Millis log_time;
  };
  struct Partition {
    InboxRow row;  // as committed
    Place kept;    // where memory stands: ahead of the row by batches that had no rows
    Place now;     // with the batch under way
    StreamFilter filter;
  };

  explicit PartitionTable(std::string topic) : topic_(std::move(topic)) {}

  void Add(const InboxRow& row, StreamFilter::Positions seen);
  void Remove(int partition) { held_.erase(partition); }
  // nullptr: not held.
  Partition* Find(int partition);
  bool Holds(int partition) const { return held_.contains(partition); }
  const std::map<int, Partition>& held() const { return held_; }

  // Those whose rows were not as our memory has them, when the last commit failed: another has
  // taken them.
  std::vector<int> TakeForeign();
  bool AnyForeign() const { return !foreign_.empty(); }
  void Rollback();
  // The batch under way is final, and the rows stay behind.
  void Keep();
  // Some row is behind our memory.
  bool Ahead() const;

  absl::Status Lock(pqxx::transaction_base& tx) override;
  BatchRows Rows(const Batch& batch) override;
  Outcome Settle(pqxx::transaction_base& tx) override;
  void Committed() override;

 private:
  std::vector<int> Partitions() const;

  const std::string topic_;
  std::map<int, Partition> held_;
  std::set<int> foreign_;
  std::set<int> touched_;  // rows that the commit under way moves
};

}  // namespace fluxqueue::delivery
