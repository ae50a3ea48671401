// dead-letters: what no service could handle, and what is to become of it.
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/dead_letters.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr int kPartition = 0;  // it has only one
constexpr Millis kFlush{30'000};

struct Signing {
  std::optional<signing::Signer> signer{};
  std::optional<signing::Keys> keys{};
};

struct Options {
  std::vector<int64_t> numbers;
  bool all = false;
};

absl::StatusOr<DeadLetters> Read(const SystemConfig& config) {
  DeadLetters letters;
  const auto marks = kafka::ReadPartition(config.brokers,
                                          kafka::TopicNames().dead_letter,
                                          kPartition,
                                          0,
                                          [&](const kafka::Message& message) {
                                            letters.Fold(message);
                                            return absl::OkStatus();
                                          });
  RETURN_IF_ERROR(marks.status());
  return letters;
}

absl::StatusOr<Letter> Find(const DeadLetters& letters, int64_t number) {
  const auto found = letters.letters().find(number);
  if (found != letters.letters().end()) return found->second;
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no letter {}; fluxqueue dead-letters list --all lists them",
                    number);
}

json ToJson(const Letter& letter) {
  return {{"number", letter.number},
          {"timeMs", letter.time_ms},
          {"service", letter.service},
          {"reason", letter.reason},
          {"topic", letter.topic},
          {"partition", letter.partition},
          {"offset", letter.offset},
          {"type", TypeOf(letter)},
          {"key", letter.key},
          {"answer", letter.answer},
          {"content", ContentText(letter)}};
}

absl::StatusOr<int> List(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const DeadLetters letters, Read(config));
  json result = json::array();
  Table table({"NUMBER", "TIME", "SERVICE", "TYPE", "KEY", "FROM", "ANSWER", "REASON"});
  for (const auto& [number, letter] : letters.letters()) {
    if (!options.all && !letter.answer.empty()) continue;
    result.push_back(ToJson(letter));
    table.Add({fmt::format("{}", number),
               ShortTime(letter.time_ms, context.Now().count()),
               letter.service,
               TypeOf(letter),
               letter.key,
               PlaceOf(letter),
               letter.answer.empty() ? "-" : letter.answer,
               letter.reason});
  }
  if (context.structured()) {
    fmt::print("{}", context.Structured(result));
  } else if (table.empty()) {
    fmt::print("no dead letters{}\n", options.all ? "" : " that wait for an answer");
  } else {
    fmt::print("{}", table.Render(context.colour));
  }
  return 0;
}

absl::StatusOr<int> Show(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const DeadLetters letters, Read(config));
  for (const int64_t number : options.numbers) {
    ASSIGN_OR_RETURN(const Letter letter, Find(letters, number));
    if (context.structured()) {
      fmt::print("{}", context.Structured(ToJson(letter)));
      continue;
    }
    fmt::print("Letter   {}\nFrom     {}\nService  {}\nReason   {}\n",
               letter.number,
               PlaceOf(letter),
               letter.service,
               letter.reason);
    if (!letter.answer.empty()) {
      fmt::print(
          "Answer   {} {}\n", letter.answer, ShortTime(letter.answered_ms, context.Now().count()));
    }
    fmt::print("\n{}", ContentText(letter));
  }
  return 0;
}

absl::Status Append(kafka::Producer& producer,
                    const std::string& topic,
                    int partition,
                    const delivery::WireRecord& record) {
  RETURN_IF_ERROR(
      producer.Produce(topic, partition, record.key, record.value, record.headers, /*id=*/0));
  RETURN_IF_ERROR(producer.Flush(kFlush));
  return producer.failed();
}

// Those that are to be answered.
absl::StatusOr<std::vector<Letter>> Chosen(const DeadLetters& letters, const Options& options) {
  std::vector<Letter> chosen;
  for (const int64_t number : options.numbers) {
    ASSIGN_OR_RETURN(Letter letter, Find(letters, number));
    if (!letter.answer.empty()) {
      return InvalidArgument("letter {} was {} already", number, letter.answer);
    }
    chosen.push_back(std::move(letter));
  }
  if (!options.all) return chosen;
  for (const auto& [number, letter] : letters.letters()) {
    if (letter.answer.empty()) chosen.push_back(letter);
  }
  return chosen;
}

// The service sees the mark with its next commit, a few seconds later at most.
absl::Status RetryObject(const std::string& dsn, const Letter& letter) {
  if (letter.service != "admission" && letter.service != "cleanup") {
    return InvalidArgument(
        "letter {} is of the service '{}', which handles the object again when it changes or when "
        "the service starts anew; drop the letter",
        letter.number,
        letter.service);
  }
  postgres::Connection connection(PostgresOptions(dsn));
  return connection.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    const pqxx::result marked =
        tx.exec_params(fmt::format("UPDATE {}.quarantine SET retry = true "
                                   "WHERE shard = $1 AND kind = $2 AND uid = $3",
                                   letter.service),
                       letter.shard,
                       letter.kind,
                       letter.uid);
    if (marked.affected_rows() > 0) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kNotFound,
                      "{} is not left out any more: it was handled since, or is summed up with "
                      "others of its namespace; drop letter {}",
                      letter.key,
                      letter.number);
  });
}

// First the retry, then the answer: who is interrupted between both retries once more, to no
// effect.
absl::Status AnswerOne(kafka::Producer& producer,
                       const SystemConfig& config,
                       const Signing& signing,
                       const Letter& letter,
                       const std::string& answer) {
  if (answer == "retried" && letter.OfObject()) {
    RETURN_IF_ERROR(RetryObject(config.dsn, letter));
  } else if (answer == "retried") {
    ASSIGN_OR_RETURN(delivery::WireRecord record,
                     RetryOf(letter, signing.keys ? &*signing.keys : nullptr));
    delivery::OutboxRow row{.stream = {},
                            .target = {letter.topic, letter.partition},
                            .last_seq = 1,
                            .records = {std::move(record)}};
    if (signing.signer) delivery::SignRecords(*signing.signer, &row);
    RETURN_IF_ERROR(Append(producer, letter.topic, letter.partition, row.records[0]));
  }
  return Append(producer, kafka::TopicNames().dead_letter, kPartition, AnswerTo(letter, answer));
}

absl::StatusOr<int> Answer(const Context& context,
                           const Options& options,
                           const std::string& answer) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const DeadLetters letters, Read(config));
  ASSIGN_OR_RETURN(const std::vector<Letter> chosen, Chosen(letters, options));
  ASSIGN_OR_RETURN(
      const auto producer,
      kafka::Producer::Create(config.brokers, "fluxqueue-dead-letters", [](uint64_t) {}));
  Signing signing;
  if (!config.signing_key.empty()) {
    ASSIGN_OR_RETURN(signing.signer, signing::Signer::Read(config.signing_key));
  }
  if (!config.signing_keys.empty()) {
    ASSIGN_OR_RETURN(signing.keys, signing::Keys::Read(config.signing_keys));
  }
  for (const Letter& letter : chosen) {
    RETURN_IF_ERROR(AnswerOne(*producer, config, signing, letter, answer));
    fmt::print("{} ({} of {}): {}\n", letter.number, TypeOf(letter), letter.key, answer);
  }
  if (chosen.empty()) fmt::print("no dead letters that wait for an answer\n");
  return 0;
}

}  // namespace

void RegisterDeadLetters(CLI::App& app, Context& context) {
  CLI::App* group =
      app.add_subcommand("dead-letters", "What no service could handle: list, show, retry, drop");
  group->group("Operation");
  group->require_subcommand(1);
  group->footer(
      "A letter's number is its offset in the topic fluxqueue.dead-letter. A retry appends the "
      "message to its topic\n"
      "again, where it is taken once however often it is retried; it is for a message that could "
      "not be handled then\n"
      "and can be now. A letter of an object of the cluster says who leaves the object out; a "
      "retry has it handled once\n"
      "more, as it is. What was retried or dropped stays in the topic, marked.\n\n"
      "Examples:\n"
      "  fluxqueue dead-letters list\n"
      "  fluxqueue dead-letters show 17\n"
      "  fluxqueue dead-letters retry 17 18\n"
      "  fluxqueue dead-letters drop --all");
  const auto options = std::make_shared<Options>();
  using Command = absl::StatusOr<int> (*)(const Context&, const Options&);
  const auto add = [&](const char* name, const char* what, bool numbers, bool all, Command run) {
    CLI::App* sub = group->add_subcommand(name, what);
    CLI::Option* given = nullptr;
    if (numbers) given = sub->add_option("NUMBER", options->numbers, "Of the letter");
    if (numbers && !all) given->required();
    if (all) {
      CLI::Option* flag = sub->add_flag(
          "--all", options->all, numbers ? "All that wait" : "Also those that were answered");
      if (numbers) {
        flag->excludes(given);
        sub->require_option(1, 0);
      }
    }
    sub->callback([&context, options, run] {
      context.command = [&context, options, run] { return run(context, *options); };
    });
  };
  add("list", "Those that wait for an answer", false, true, List);
  add("show", "One, with its content", true, false, Show);
  add("retry",
      "Append the message to its topic again",
      true,
      true,
      [](const auto& c, const auto& o) { return Answer(c, o, "retried"); });
  add("drop", "Let it be: it is not listed any more", true, true, [](const auto& c, const auto& o) {
    return Answer(c, o, "dropped");
  });
}

}  // namespace fluxqueue::cli
