// The logs as they stand in Kafka now, for verify and replay. Reads only, outside of any group.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libs/graph/engine_kind.h"
#include "libs/kafka/bus.h"
#include "libs/kafka/client.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"
#include "libs/verify/log_filter.h"
#include "libs/verify/replay.h"
#include "libs/verify/snapshot.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// `library`: Fluxion's, for pools with that engine; empty: there is none.
graph::MakeEngine EnginesOf(const std::string& library);

class LogReader {
 public:
  // `library`: as EnginesOf.
  LogReader(kafka::Brokers brokers, const std::string& library);

  // Called with each fact that is read and taken.
  using Taken = std::function<void(const verify::EventLine&)>;

  // The jobs topic. `lost`: partitions of which something is missing (ReadFactsLost). `cut`: the
  // same, or its beginning is no longer kept.
  absl::StatusOr<verify::FactLog> ReadFacts(verify::FactLog::Hold hold,
                                            const std::set<int>& lost,
                                            bool* cut,
                                            const Taken& taken = nullptr) const;

  // A partition of the pool topic through the cores. FailedPrecondition when the log does not begin
  // at its beginning (any more). `facts` has to be read before, and held.
  absl::StatusOr<std::vector<verify::PoolReplay>> Replay(int partition,
                                                         verify::FactLog& facts) const;

  // What is kept of a partition of the pool topic.
  absl::StatusOr<kafka::Watermarks> Kept(int partition) const;
  using Each = std::function<absl::Status(const verify::EventLine&)>;
  // What its services have taken of it, in its order. Stops at the first status of `each` that is
  // not OK, and returns it.
  absl::Status ReadLog(int partition, bool cut, const Each& each) const;

 private:
  absl::StatusOr<verify::LogFilter::Buried> ReadBuried(int partition) const;

  const kafka::Brokers brokers_;
  graph::MakeEngine make_engine_;
  const kafka::TopicNames names_;
};

// The partitions of the jobs topic that had lost facts when the binder read them, from
// binder.inbox.
absl::StatusOr<std::set<int>> ReadFactsLost(postgres::Connection& connection);

// Pools and their partitions, from admission.pools. NotFound (with the names that there are) when
// `pool` is not empty and not among them.
absl::StatusOr<std::map<std::string, int>> ReadPools(postgres::Connection& connection,
                                                     const std::string& pool);

// FailedPrecondition when queue or matcher have not read one of these logs from its beginning.
absl::Status CheckReadWhole(postgres::Connection& connection, const std::set<int>& partitions);

// Replays the pools' partitions. FailedPrecondition when queue or matcher have not read a log from
// its beginning.
absl::StatusOr<std::vector<verify::PoolReplay>> ReplayPools(postgres::Connection& connection,
                                                            const LogReader& reader,
                                                            const std::map<std::string, int>& pools,
                                                            verify::FactLog& facts);

// The topic's part of a snapshot.
void AddTopic(const verify::FactLog& facts, bool cut, verify::Snapshot* snapshot);

}  // namespace fluxqueue::cli
