// What a service has left unread in a partition because it could not check who had signed it, as
// its keys were older than the speaker's; and, of streams of earlier versions, all that stands
// behind it. It can be said again as it is, byte for byte: by its sequence it is taken once,
// whoever says it again, and nothing is that is not signed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libs/delivery/stream_filter.h"
#include "libs/kafka/message.h"
#include "libs/signing/batch.h"

namespace fluxqueue::cli {

class LogRepeat {
 public:
  // Of the service, as its tables have it.
  struct Place {
    int64_t next_offset = 0;
    bool truncated = false;
    delivery::StreamFilter::Positions seen{};
  };
  enum class Fate {
    kTaken,    // the service has it, or will have it without us
    kAgain,    // it is to be said again
    kMissing,  // it is signed, but one before it in its stream is nowhere
    kRefused,  // who has said it cannot be told now, either
  };

  // `keys`: null: the service believes all. They must outlive it.
  LogRepeat(std::string topic, const signing::Keys* keys, const Place& place);

  // In the order of the log, from the first message that the service may have left unread. What was
  // said again is in the log, too: who has folded all of it, without any kAgain since the last that
  // was said, is done.
  Fate Fold(const kafka::Message& message);

  // Where the streams stand when the service has read all that was folded.
  delivery::StreamFilter::Positions reached() const { return all_.unsaved(); }

 private:
  const std::string topic_;
  const int64_t next_offset_;
  std::optional<signing::BatchVerifier> verifier_;
  delivery::StreamFilter service_;  // what the service takes of the log as it is
  delivery::StreamFilter all_;      // what it takes of that and of what is said again
};

}  // namespace fluxqueue::cli
