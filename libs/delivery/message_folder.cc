#include "libs/delivery/message_folder.h"

#include <algorithm>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/delivery/stream_filter.h"
#include "libs/delivery/wire.h"
#include "libs/kafka/envelope.h"
#include "libs/model/job_of.h"
#include "libs/model/log_time.h"
#include "libs/model/speaker.h"

namespace fluxqueue::delivery {
namespace {

// Of what a stranger has written.
constexpr size_t kMostReasonBytes = 500;
constexpr const char* kUnreadable = "it does not decode as an Envelope";

// It has an event, of a kind that comes with a later version.
bool IsNewer(const events::v1::Envelope& envelope) {
  if (envelope.event_case() != events::v1::Envelope::EVENT_NOT_SET) return false;
  const auto& unknown = envelope.GetReflection()->GetUnknownFields(envelope);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto event = static_cast<events::v1::Envelope::EventCase>(unknown.field(i).number());
    if (!model::SpeakerOf(event).empty()) return true;
  }
  return false;
}

std::optional<kafka::EventPosition> PositionOf(const events::v1::Envelope& envelope) {
  if (envelope.stream().empty() || envelope.sequence() == 0) return std::nullopt;
  return kafka::EventPosition{envelope.stream(), envelope.sequence()};
}

}  // namespace

MessageFolder::MessageFolder(const std::string& topic,
                             const signing::Keys* keys,
                             PartitionHandler& handler,
                             FaultInjector* faults)
    : topic_(topic), handler_(handler), faults_(faults) {
  if (keys != nullptr) verifier_.emplace(*keys);
}

void MessageFolder::Condemn(const kafka::Message& message, std::string reason) {
  condemned_ = Condemned{message.partition, message.offset, std::move(reason)};
}

absl::Status MessageFolder::Bury(const kafka::Message& message,
                                 const events::v1::Envelope& envelope,
                                 std::string reason,
                                 bool unproven,
                                 Batch* batch) const {
  LogWarning("dead letter",
             {{"job", model::JobOf(envelope)},
              {"topic", topic_},
              {"partition", fmt::format("{}", message.partition)},
              {"offset", fmt::format("{}", message.offset)},
              {"reason", reason}});
  batch->letters.push_back({message.partition, std::move(reason), topic_, message, unproven});
  return absl::OkStatus();
}

absl::Status MessageFolder::Fold(const kafka::Message& message,
                                 PartitionTable::Partition& partition,
                                 Batch* batch) {
  partition.now.next_offset = message.offset + 1;
  partition.now.append_time = std::max(partition.now.append_time, message.append_time);
  Record record{message.partition, message.offset, partition.now.log_time, {}};
  events::v1::Envelope& envelope = record.envelope;
  const Skips& skips = skips_.at(message.partition);
  if (const auto skip = skips.find(message.offset); skip != skips.end()) {
    const auto place = kafka::PositionOf(message.headers);
    if (place.has_value()) partition.filter.Judge(place->stream, place->sequence);
    ++batch->received;
    return Bury(message, envelope, skip->second, /*unproven=*/false, batch);
  }
  if (faults_ != nullptr) faults_->Reading(message);
  const bool decodes = envelope.ParseFromString(message.value);
  // What cannot be read has its place in its stream all the same: without it all that follows would
  // stand behind a gap for ever.
  const std::optional<kafka::EventPosition> position =
      decodes ? PositionOf(envelope) : kafka::PositionOf(message.headers);
  if (!position.has_value()) {
    return Bury(message,
                envelope,
                decodes ? "it has no event id" : kUnreadable,
                /*unproven=*/false,
                batch);
  }
  if (verifier_.has_value()) {
    const absl::Status proven =
        CheckRecord(topic_, message, position->stream, envelope.event_case(), &*verifier_);
    if (!proven.ok()) {
      return Bury(message,
                  envelope,
                  Clean(Message(proven), kMostReasonBytes),
                  /*unproven=*/true,
                  batch);
    }
  }
  StreamFilter::Verdict verdict = partition.filter.Judge(position->stream, position->sequence);
  if (faults_ != nullptr && faults_->Lacks(Safety::kSequence)) {
    verdict = StreamFilter::Verdict::kTake;
  }
  switch (verdict) {
    case StreamFilter::Verdict::kDuplicate:
      ++batch->duplicates;
      return absl::OkStatus();
    case StreamFilter::Verdict::kGap:
      ++batch->gaps;
      return absl::OkStatus();
    case StreamFilter::Verdict::kTakeBehindGap:
      ++batch->gaps;
      LogWarning("messages are missing before this one: the log has lost them",
                 {{"topic", topic_},
                  {"partition", fmt::format("{}", message.partition)},
                  {"offset", fmt::format("{}", message.offset)},
                  {"stream", position->stream}});
      break;
    case StreamFilter::Verdict::kTake:
      break;
  }
  ++batch->received;
  if (decodes) {
    record.time = model::LogTime(record.time, message.append_time, envelope);
    partition.now.log_time = record.time;
    NoteLead(message, envelope, batch);
  }
  if (decodes && IsNewer(envelope)) {
    PassOver(message, envelope, batch);
    return absl::OkStatus();
  }
  return Handle(message, record, decodes, batch);
}

void MessageFolder::PassOver(const kafka::Message& message,
                             const events::v1::Envelope& envelope,
                             Batch* batch) {
  ++batch->newer;
  if (!told_newer_.insert(message.partition).second) return;
  LogWarning("events of a later version are passed over: finish the upgrade",
             {{"topic", topic_},
              {"partition", fmt::format("{}", message.partition)},
              {"offset", fmt::format("{}", message.offset)},
              {"stream", envelope.stream()}});
}

void MessageFolder::NoteLead(const kafka::Message& message,
                             const events::v1::Envelope& envelope,
                             Batch* batch) {
  const bool leads = envelope.latest_ms() > 0 && message.append_time.count() > envelope.latest_ms();
  if (leads) ++batch->leads;
  if (std::exchange(leads_[message.partition], leads) || !leads) return;
  LogWarning(
      "a message was long on its way, or the broker's clock is far ahead: time does not leap",
      {{"topic", topic_},
       {"partition", fmt::format("{}", message.partition)},
       {"offset", fmt::format("{}", message.offset)},
       {"stream", envelope.stream()},
       {"sent_ms", fmt::format("{}", envelope.time_ms())},
       {"appended_ms", fmt::format("{}", message.append_time.count())}});
}

std::optional<std::string> MessageFolder::WhyNot(const kafka::Message& message,
                                                 const events::v1::Envelope& envelope,
                                                 bool decodes) const {
  if (!decodes) return kUnreadable;
  if (envelope.event_case() == events::v1::Envelope::EVENT_NOT_SET) {
    return "it has no event";
  }
  if (condemned_.has_value() && condemned_->partition == message.partition &&
      condemned_->offset == message.offset) {
    return condemned_->reason;
  }
  return std::nullopt;
}

absl::Status MessageFolder::Handle(const kafka::Message& message,
                                   const Record& record,
                                   bool decodes,
                                   Batch* batch) {
  std::optional<std::string> why = WhyNot(message, record.envelope, decodes);
  if (!why.has_value()) {
    const size_t said = batch->outbox.size();
    const absl::Status status = handler_.Handle(record, batch->outbox);
    if (!IsPoison(status)) return status;
    batch->outbox.Truncate(said);
    why = Message(status);
  }
  handler_.Buried(record, batch->outbox);
  return Bury(message, record.envelope, *std::move(why), /*unproven=*/false, batch);
}

}  // namespace fluxqueue::delivery
