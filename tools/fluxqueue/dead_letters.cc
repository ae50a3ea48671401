#include "tools/fluxqueue/dead_letters.h"

#include <charconv>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/status_macros.h"
#include "libs/kafka/envelope.h"
#include "libs/model/speaker.h"

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;

constexpr const char* kAnswers = "fluxqueue_answers";
constexpr const char* kAnswer = "fluxqueue_answer";

std::string Header(const kafka::Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

int64_t Number(const std::string& text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool Decode(const Letter& letter, Envelope* message) {
  return message->ParseFromString(letter.value) && message->event_case() != Envelope::EVENT_NOT_SET;
}

}  // namespace

void DeadLetters::Fold(const kafka::Message& message) {
  const kafka::Headers& headers = message.headers;
  if (const std::string answer = Header(headers, kAnswer); !answer.empty()) {
    const auto letter = letters_.find(Number(Header(headers, kAnswers)));
    if (letter == letters_.end()) return;  // retention has cut it
    letter->second.answer = answer;
    letter->second.answered_ms = message.append_time.count();
    return;
  }
  letters_[message.offset] = {
      .number = message.offset,
      .time_ms = message.append_time.count(),
      .service = Header(headers, "fluxqueue_service"),
      .reason = Header(headers, "fluxqueue_reason"),
      .topic = Header(headers, "fluxqueue_topic"),
      .partition = static_cast<int>(Number(Header(headers, "fluxqueue_partition"))),
      .offset = Number(Header(headers, "fluxqueue_offset")),
      .key = message.key,
      .value = message.value,
      .headers = headers,
      .shard = Header(headers, delivery::kShardHeader),
      .kind = Header(headers, delivery::kKindHeader),
      .uid = Header(headers, delivery::kUidHeader),
      .unproven = !Header(headers, delivery::kUnprovenHeader).empty()};
}

std::string TypeOf(const Letter& letter) {
  if (letter.OfObject()) return letter.kind;
  Envelope message;
  return Decode(letter, &message) ? std::string(kafka::EventType(message)) : "?";
}

std::string PlaceOf(const Letter& letter) {
  if (letter.OfObject()) return letter.topic;
  return fmt::format("{}[{}]@{}", letter.topic, letter.partition, letter.offset);
}

std::string ObjectsText(const DeadLetters& letters) {
  constexpr size_t kMost = 3;
  size_t count = 0;
  std::string text;
  for (const auto& [number, letter] : letters.letters()) {
    if (!letter.OfObject() || !letter.answer.empty()) continue;
    if (++count <= kMost) {
      text += fmt::format("{}{} ({})", count == 1 ? "" : ", ", letter.key, letter.service);
    }
  }
  return count > kMost ? fmt::format("{} and {} more", text, count - kMost) : text;
}

std::string ContentText(const Letter& letter) {
  if (letter.OfObject()) {
    return fmt::format(
        "{} with uid {}: {} leaves it out until it changes.\n"
        "Change it or delete it; or have it tried as it is: fluxqueue dead-letters retry {}\n",
        letter.key,
        letter.uid,
        letter.service,
        letter.number);
  }
  Envelope message;
  if (Decode(letter, &message)) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(message, &text);
    return text;
  }
  std::string text = fmt::format("{} bytes that are no event:", letter.value.size());
  for (const unsigned char byte : letter.value.substr(0, 256)) text += fmt::format(" {:02x}", byte);
  return text + (letter.value.size() > 256 ? " …\n" : "\n");
}

absl::StatusOr<delivery::WireRecord> RetryOf(const Letter& letter, const signing::Keys* keys) {
  Envelope message;
  if (!Decode(letter, &message)) {
    return InvalidArgument(
        "letter {} does not decode as an event: no service could take it; drop it", letter.number);
  }
  if (letter.unproven) {
    return InvalidArgument(
        "letter {0} is not of whom it says ({1}): drop it; but when the key is known by now that "
        "it is signed with: fluxqueue log repeat {2} {3}",
        letter.number,
        letter.reason,
        letter.service,
        letter.partition);
  }
  if (keys != nullptr) {
    signing::BatchVerifier verifier(*keys);
    const kafka::Message original{.partition = letter.partition,
                                  .offset = letter.offset,
                                  .append_time = Millis(0),
                                  .key = letter.key,
                                  .value = letter.value,
                                  .headers = letter.headers};
    const absl::Status proven = delivery::CheckRecord(
        letter.topic, original, message.stream(), message.event_case(), &verifier);
    if (!proven.ok()) {
      return InvalidArgument("letter {}: {}: drop it", letter.number, Message(proven));
    }
  }
  message.set_stream(fmt::format("{}/{}", model::kRetries, letter.number));
  message.set_sequence(1);
  return delivery::MakeRecord(message, letter.partition);
}

delivery::WireRecord AnswerTo(const Letter& letter, const std::string& answer) {
  return {.key = letter.key,
          .value = "",
          .headers = {{kAnswers, fmt::format("{}", letter.number)}, {kAnswer, answer}},
          .envelope = false};
}

}  // namespace fluxqueue::cli
