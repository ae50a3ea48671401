// What a loop has done, for metrics. Written by the loop's thread, readable from any.
#pragma once

#include <atomic>
#include <cstdint>

namespace fluxqueue::delivery {

struct Stats {
  using Counter = std::atomic<uint64_t>;

  Counter received{0};      // messages handled, committed
  Counter duplicates{0};    // dropped: sequence already seen
  Counter gaps{0};          // messages before which some of their stream were missing
  Counter leads{0};         // messages that were appended later than their sender thought possible
  Counter newer{0};         // messages passed over: their event is of a later version
  Counter dead_letters{0};  // messages that can never be handled
  Counter oversized{0};     // messages of ours too large to be sent; also dead letters
  Counter sent{0};          // messages acknowledged by Kafka
  Counter commits{0};
  Counter rollbacks{0};
  Counter doubts{0};  // commits whose outcome had to be read from the row
  Counter delivery_rows{
      0};  // rows of delivery's own tables written (inbox, streams, outbox, leases)
  Counter handler_rows{0};  // rows that the handler's Write wrote through postgres::Exec
  Counter gained{0};        // partitions (or the lease) taken
  Counter lost{0};
  Counter resets{0};             // logs made anew or truncated under us
  Counter producer_restarts{0};  // after delivery errors
  Counter commit_micros{0};      // total time of commits: with `commits`, the mean

  // Now, not in sum.
  Counter held{0};         // partitions (or the lease) that are ours
  Counter lag{0};          // messages in the log that are not handled yet
  Counter unpublished{0};  // messages committed and not acknowledged by Kafka
  Counter last_commit_micros{0};
};

}  // namespace fluxqueue::delivery
