#include "tools/fluxqueue/log_repeat.h"

#include <utility>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/delivery/wire.h"
#include "libs/kafka/envelope.h"

namespace fluxqueue::cli {

using delivery::StreamFilter;

LogRepeat::LogRepeat(std::string topic, const signing::Keys* keys, const Place& place)
    : topic_(std::move(topic)),
      next_offset_(place.next_offset),
      service_(place.seen, place.truncated),
      all_(place.seen, place.truncated) {
  if (keys != nullptr) verifier_.emplace(*keys);
}

LogRepeat::Fate LogRepeat::Fold(const kafka::Message& message) {
  events::v1::Envelope envelope;
  std::optional<kafka::EventPosition> position;
  if (envelope.ParseFromString(message.value)) {
    position = kafka::EventPosition{envelope.stream(), envelope.sequence()};
  } else {
    position = kafka::PositionOf(message.headers);
  }
  if (!position.has_value() || position->stream.empty() || position->sequence == 0) {
    return Fate::kRefused;
  }
  if (verifier_.has_value() &&
      !delivery::CheckRecord(topic_, message, position->stream, envelope.event_case(), &*verifier_)
           .ok()) {
    return Fate::kRefused;
  }
  const bool takes = message.offset >= next_offset_ &&
                     StreamFilter::Takes(service_.Judge(position->stream, position->sequence));
  service_.Keep();
  const StreamFilter::Verdict verdict = all_.Judge(position->stream, position->sequence);
  all_.Keep();
  if (verdict == StreamFilter::Verdict::kGap) return Fate::kMissing;
  return StreamFilter::Takes(verdict) && !takes ? Fate::kAgain : Fate::kTaken;
}

}  // namespace fluxqueue::cli
