// The log of one pool through the cores: from its beginning or from a snapshot, to its end or to a
// time. In bounded memory, but for the facts where these are compared.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "libs/verify/replay.h"

#include "absl/status/status.h"
#include "tools/fluxqueue/event_source.h"

namespace fluxqueue::cli {

class PoolReplay {
 public:
  struct Options {
    std::string library{};  // Fluxion's; empty: there is none
    std::optional<replay::v1::Snapshot> from{};
    int64_t to_ms = std::numeric_limits<int64_t>::max();      // what came later is left out
    int64_t to_offset = std::numeric_limits<int64_t>::max();  // so are that one and what is behind
    bool compares_facts = false;
    bool keeps_rows = false;  // so that it can be saved
  };
  // Each record before it is folded, and each fact and each message for the log when it is decided.
  // `after` it was folded: any status but OK ends the replay there, Cancelled as if the log did.
  struct Hooks {
    std::function<void(const verify::EventLine&)> before{};
    std::function<void(const events::v1::JobFact&, Millis)> decided{};
    std::function<void(const events::v1::Envelope&)> said{};
    std::function<absl::Status()> after{};
  };

  // `source` must outlive it.
  PoolReplay(EventSource& source, Options options, Hooks hooks);
  explicit PoolReplay(EventSource& source, Options options)
      : PoolReplay(source, std::move(options), Hooks()) {}

  // Once. FailedPrecondition: the log does not begin where it has to, or is not the one of which
  // the snapshot is. NotFound: there is neither a record nor a snapshot.
  absl::Status Run();

  // Behind Run.
  const std::string& pool() const { return source_.header().pool; }
  Millis now() const { return now_; }  // the log's time
  const verify::Replayer& replayer() const { return *replayer_; }
  // Once.
  verify::PoolReplay Result();

 private:
  absl::Status Take(const verify::EventLine& line);
  absl::Status CheckIsItsLog(const verify::EventLine& passed) const;
  absl::Status Begin(int partition, int64_t first_offset);

  EventSource& source_;
  const Options options_;
  const Hooks hooks_;
  verify::FactLog facts_;
  std::unique_ptr<verify::Replayer> replayer_;
  Millis now_{0};
};

}  // namespace fluxqueue::cli
