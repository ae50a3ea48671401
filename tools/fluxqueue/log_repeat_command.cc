#include "tools/fluxqueue/log_repeat_command.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"
#include "libs/signing/keys.h"

#include "tools/fluxqueue/dead_letters.h"
#include "tools/fluxqueue/log_repeat.h"
#include "tools/fluxqueue/service_logs.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

using Fate = LogRepeat::Fate;

constexpr Millis kAwait{60'000};
constexpr Millis kLook{250};
constexpr Millis kFlush{30'000};
// What a stream's service says while we read and write stands behind the gap, too. Each round is
// shorter than the one before, unless it says more than can be read.
constexpr int kMostRounds = 20;

struct Counts {
  uint64_t again = 0;
  uint64_t missing = 0;
};

class Repeating {
 public:
  Repeating(const SystemConfig& config, std::string service, int partition)
      : config_(config),
        service_(std::move(service)),
        topic_(ServiceLogs().at(service_)),
        partition_(partition),
        connection_(PostgresOptions(config.dsn)) {}

  absl::StatusOr<int> Run() {
    ASSIGN_OR_RETURN(const LogRepeat::Place place, ReadPlace());
    ASSIGN_OR_RETURN(const DeadLetters letters, ReadLetters());
    Choose(letters);
    if (letters_.empty()) {
      fmt::print("the {} has left nothing of partition {} unread for its signature\n",
                 service_,
                 partition_);
      return 0;
    }
    std::optional<signing::Keys> keys;
    if (!config_.signing_keys.empty()) {
      ASSIGN_OR_RETURN(keys, signing::Keys::Read(config_.signing_keys));
    }
    LogRepeat repeat(topic_, keys.has_value() ? &*keys : nullptr, place);
    ASSIGN_OR_RETURN(producer_,
                     kafka::Producer::Create(config_.brokers, "fluxqueue-log", [](uint64_t) {}));
    RETURN_IF_ERROR(SayAgain(repeat));
    RETURN_IF_ERROR(AnswerLetters());
    return Tell(repeat);
  }

 private:
  absl::StatusOr<LogRepeat::Place> ReadPlace() {
    LogRepeat::Place place;
    bool found = false;
    RETURN_IF_ERROR(connection_.Query([&](pqxx::transaction_base& tx) {
      place = {};
      // One statement, so that both are of one moment.
      for (const pqxx::row& row :
           tx.exec_params(fmt::format("SELECT i.next_offset, i.truncated, s.stream, s.seq, s.gaps "
                                      "FROM {0}.inbox i LEFT JOIN {0}.inbox_streams s "
                                      "USING (partition) WHERE partition = $1",
                                      service_),
                          partition_)) {
        found = true;
        place.next_offset = row[0].as<int64_t>();
        place.truncated = row[1].as<bool>();
        if (row[2].is_null()) continue;
        place.seen[row[2].as<std::string>()] =
            delivery::StreamPosition::Parse(row[3].as<uint64_t>(), row[4].as<std::string>());
      }
      return absl::OkStatus();
    }));
    if (found) return place;
    return MakeStatus(absl::StatusCode::kNotFound,
                      "PARTITION {}: the {} has handled nothing of it",
                      partition_,
                      service_);
  }

  absl::StatusOr<DeadLetters> ReadLetters() {
    DeadLetters letters;
    RETURN_IF_ERROR(kafka::ReadPartition(config_.brokers,
                                         kafka::TopicNames().dead_letter,
                                         0,
                                         0,
                                         [&](const kafka::Message& message) {
                                           letters.Fold(message);
                                           return absl::OkStatus();
                                         })
                        .status());
    return letters;
  }

  // Also those that somebody has dropped: their streams stay deaf all the same.
  void Choose(const DeadLetters& letters) {
    for (const auto& [number, letter] : letters.letters()) {
      if (letter.unproven && letter.service == service_ && letter.topic == topic_ &&
          letter.partition == partition_) {
        letters_.insert_or_assign(letter.offset, letter);
      }
    }
  }

  absl::Status Produce(const std::string& topic,
                       int partition,
                       std::string_view key,
                       std::string_view value,
                       const kafka::Headers& headers) {
    absl::Status status = producer_->Produce(topic, partition, key, value, headers, /*id=*/0);
    while (absl::IsUnavailable(status) && producer_->failed().ok()) {
      producer_->Poll(kLook);
      status = producer_->Produce(topic, partition, key, value, headers, /*id=*/0);
    }
    return status;
  }
  absl::Status Flush() {
    RETURN_IF_ERROR(producer_->Flush(kFlush));
    return producer_->failed();
  }

  absl::Status SayAgain(LogRepeat& repeat) {
    int64_t from = letters_.begin()->first;
    for (int round = 0; round < kMostRounds; ++round) {
      const uint64_t before = counts_.again;
      const auto look = [&](const kafka::Message& message) -> absl::Status {
        const Fate fate = repeat.Fold(message);
        if (fate == Fate::kMissing) ++counts_.missing;
        const bool known = fate == Fate::kTaken || fate == Fate::kAgain;
        if (known && letters_.contains(message.offset)) known_.insert(message.offset);
        if (fate != Fate::kAgain) return absl::OkStatus();
        ++counts_.again;
        return Produce(topic_, partition_, message.key, message.value, message.headers);
      };
      ASSIGN_OR_RETURN(const kafka::Watermarks marks,
                       kafka::ReadPartition(config_.brokers, topic_, partition_, from, look));
      RETURN_IF_ERROR(Flush());
      from = marks.high;
      if (counts_.again == before) {
        end_ = from;
        return absl::OkStatus();
      }
    }
    return MakeStatus(absl::StatusCode::kAborted,
                      "{} messages were said again, and others came between them each time: stop "
                      "who says them for a moment, and call this once more",
                      counts_.again);
  }

  absl::Status AnswerLetters() {
    for (const auto& [offset, letter] : letters_) {
      if (!letter.answer.empty() || !known_.contains(offset)) continue;
      const delivery::WireRecord answer = AnswerTo(letter, "retried");
      RETURN_IF_ERROR(
          Produce(kafka::TopicNames().dead_letter, 0, answer.key, answer.value, answer.headers));
    }
    return Flush();
  }

  // The streams that the service has not taken on, though it has read all; nothing: it is not
  // there yet.
  absl::StatusOr<std::optional<std::set<std::string>>> Deaf(const LogRepeat& repeat) {
    ASSIGN_OR_RETURN(const LogRepeat::Place now, ReadPlace());
    if (now.next_offset < end_) return std::nullopt;
    std::set<std::string> deaf;
    for (const auto& [stream, position] : repeat.reached()) {
      const auto seen = now.seen.find(stream);
      if (seen == now.seen.end() || seen->second.highest < position.highest ||
          seen->second.gaps.size() > position.gaps.size()) {
        deaf.insert(stream);
      }
    }
    return deaf;
  }

  absl::StatusOr<int> Tell(const LogRepeat& repeat) {
    if (counts_.missing > 0) {
      fmt::print(
          "{} messages stand behind others that nobody can check: is the key of these in {}?\n",
          counts_.missing,
          config_.signing_keys.empty() ? "signing.keys" : config_.signing_keys);
    }
    fmt::print("{} messages were said again\n", counts_.again);
    if (counts_.again == 0) return counts_.missing > 0 ? 1 : 0;
    const auto deadline = std::chrono::steady_clock::now() + kAwait;
    while (std::chrono::steady_clock::now() < deadline) {
      ASSIGN_OR_RETURN(const auto deaf, Deaf(repeat));
      if (deaf.has_value() && deaf->empty()) {
        fmt::print("the {} has taken them\n", service_);
        return counts_.missing > 0 ? 1 : 0;
      }
      if (deaf.has_value()) {
        fmt::print(
            "the {} has not taken those of {}: restart it, as it reads keys when it "
            "starts, and call this once more\n",
            service_,
            *deaf->begin());
        return 1;
      }
      std::this_thread::sleep_for(kLook);
    }
    fmt::print("the {} has not come to them within {} s\n", service_, kAwait.count() / 1000);
    return 1;
  }

  const SystemConfig& config_;
  const std::string service_;
  const std::string topic_;
  const int partition_;
  postgres::Connection connection_;
  std::unique_ptr<kafka::Producer> producer_;
  std::map<int64_t, Letter> letters_;  // by the offset of what was left unread
  std::set<int64_t> known_;            // of these, what the service has or will have
  Counts counts_;
  int64_t end_ = 0;  // of what was read, with all that was said again
};

}  // namespace

absl::StatusOr<int> RepeatLog(const Context& context, const std::string& service, int partition) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  return Repeating(config, service, partition).Run();
}

}  // namespace fluxqueue::cli
