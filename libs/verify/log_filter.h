// Which records of a partition of `fluxqueue.pool` its services have taken, by the rules of their
// delivery loop (libs/delivery/partition_loop.cc): duplicates and what stands behind a gap are
// dropped by stream and sequence, what does not decode is skipped, and time is the greatest append
// time of the partition so far. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/stream_filter.h"
#include "libs/verify/event_line.h"

namespace fluxqueue::verify {

// A record as it was read; `value` needs to live during the call only.
struct LogRecord {
  int partition = 0;
  int64_t offset = 0;
  Millis append_time{0};
  std::string_view value{};
  // Its place in its stream as its headers name it, for a value that does not decode: the service
  // that read it passed it by. Empty: they name none.
  std::string stream{};
  uint64_t sequence = 0;
};

class LogFilter {
 public:
  // (service, offset) of the partition's records that a service has put into the dead letter: it
  // has not folded them, even where a core would. The service is empty where the message is not of
  // whom it says: no service has even judged its place in the stream.
  using Buried = std::set<std::pair<std::string, int64_t>>;

  // `cut`: the log's beginning is no longer kept, so a stream may begin at any sequence.
  explicit LogFilter(const Buried& buried, bool cut = false);

  // In the order of the log. Unset: no service folds it.
  std::optional<EventLine> Take(const LogRecord& record);

  uint64_t duplicates() const { return duplicates_; }
  uint64_t gaps() const { return gaps_; }

 private:
  std::map<int64_t, std::vector<std::string>> buried_;  // services, by offset
  delivery::StreamFilter filter_;
  Millis now_{0};
  uint64_t duplicates_ = 0;
  uint64_t gaps_ = 0;
};

}  // namespace fluxqueue::verify
