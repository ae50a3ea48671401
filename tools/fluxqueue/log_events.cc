#include "tools/fluxqueue/log_events.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/envelope.h"

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Each = std::function<absl::Status(const LogRecord&)>;

constexpr Millis kPatience{10'000};
constexpr Millis kLook{500};

// False when it does not decode.
bool Decode(const kafka::TailRecord& read, LogRecord* record) {
  const kafka::Message& message = read.message;
  record->topic = read.topic;
  record->line.partition = message.partition;
  record->line.offset = message.offset;
  record->line.time = message.append_time;
  return record->line.message.ParseFromString(message.value) &&
         record->line.message.event_case() != Envelope::EVENT_NOT_SET;
}

absl::Status ReadToEnd(kafka::Tail& tail, const Each& each) {
  std::vector<LogRecord> records;
  while (!tail.at_end()) {
    ASSIGN_OR_RETURN(const auto read, tail.Next(kPatience));
    if (!read.has_value()) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        "read the log: nothing came for {} ms",
                        kPatience.count());
    }
    LogRecord record;
    if (Decode(*read, &record)) records.push_back(std::move(record));
  }
  std::stable_sort(records.begin(), records.end(), [](const LogRecord& a, const LogRecord& b) {
    return a.line.time < b.line.time;
  });
  for (const LogRecord& record : records) RETURN_IF_ERROR(each(record));
  return absl::OkStatus();
}

const Message* EventOf(const Envelope& message) {
  const auto* oneof = Envelope::descriptor()->FindOneofByName("event");
  const FieldDescriptor* field = message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  return field == nullptr ? nullptr : &message.GetReflection()->GetMessage(message, field);
}

bool Names(const Message& message, const std::string& job_id) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  return std::any_of(fields.begin(), fields.end(), [&](const FieldDescriptor* field) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated()) {
      return field->name() == "job_id" && reflection->GetString(message, field) == job_id;
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return false;
    if (!field->is_repeated()) return Names(reflection->GetMessage(message, field), job_id);
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      if (Names(reflection->GetRepeatedMessage(message, field, i), job_id)) return true;
    }
    return false;
  });
}

std::string CycleText(const events::v1::CycleAnswered& answer) {
  std::map<std::string, int> kinds;
  for (const events::v1::Outcome& outcome : answer.outcomes()) {
    std::string kind = events::v1::Outcome::Kind_Name(outcome.kind());
    kind.erase(0, kind.find('_') + 1);
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    ++kinds[kind];
  }
  std::string text = fmt::format("cycle {}:", answer.cycle_id());
  for (const auto& [kind, count] : kinds) text += fmt::format(" {} {}", count, kind);
  return text;
}

std::string FactText(const events::v1::JobFact& fact) {
  std::string state = events::v1::JobState_Name(fact.state());
  state.erase(0, std::string_view("JOB_STATE_").size());
  return fmt::format("{}/{} version {} attempt {}: {}{}{}",
                     fact.workload().namespace_(),
                     fact.workload().name(),
                     fact.version(),
                     fact.attempt(),
                     state,
                     fact.reason().empty() ? "" : " " + fact.reason(),
                     fact.message().empty() ? "" : ", " + fact.message());
}

}  // namespace

absl::Status ReadLog(const kafka::Brokers& brokers,
                     const std::vector<kafka::TopicPartition>& partitions,
                     Millis since,
                     const Each& each) {
  ASSIGN_OR_RETURN(const auto tail, kafka::Tail::Open(brokers, partitions, since));
  return ReadToEnd(*tail, each);
}

absl::Status FollowLog(const kafka::Brokers& brokers,
                       const std::vector<kafka::TopicPartition>& partitions,
                       Millis since,
                       const Each& each) {
  ASSIGN_OR_RETURN(const auto tail, kafka::Tail::Open(brokers, partitions, since));
  RETURN_IF_ERROR(ReadToEnd(*tail, each));
  while (true) {
    ASSIGN_OR_RETURN(const auto read, tail->Next(kLook));
    LogRecord record;
    if (read.has_value() && Decode(*read, &record)) RETURN_IF_ERROR(each(record));
  }
}

bool IsAbout(const Envelope& message, const std::string& job_id) {
  const Message* event = EventOf(message);
  return event != nullptr && Names(*event, job_id);
}

std::string TypeOf(const Envelope& message) {
  return std::string(kafka::EventType(message));
}

std::string EventText(const Envelope& message) {
  switch (message.event_case()) {
    case Envelope::kCycleRequested:
      return fmt::format("cycle {}: {} candidates",
                         message.cycle_requested().cycle_id(),
                         message.cycle_requested().candidates_size());
    case Envelope::kCycleAnswered:
      return CycleText(message.cycle_answered());
    case Envelope::kJobFact:
      return FactText(message.job_fact());
    case Envelope::kJobSubmitted: {
      const events::v1::JobSubmitted& job = message.job_submitted();
      return fmt::format("{} {}/{} ({}) for queue {}: {} slots",
                         job.workload().kind(),
                         job.workload().namespace_(),
                         job.workload().name(),
                         job.job_id(),
                         job.queue(),
                         job.spec().slots());
    }
    case Envelope::kNodeUpserted: {
      const events::v1::Node& node = message.node_upserted().node();
      return fmt::format("{} {}{}",
                         node.name(),
                         node.ready() ? "ready" : "not ready",
                         node.unschedulable() ? ", cordoned" : "");
    }
    default:
      break;
  }
  const Message* event = EventOf(message);
  return event == nullptr ? "" : event->ShortDebugString();
}

}  // namespace fluxqueue::cli
