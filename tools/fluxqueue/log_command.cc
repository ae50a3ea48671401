// log: where the services stand in their logs, how a message is left out that stops one, and how
// what could not be checked is said again.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/dead_letters.h"
#include "tools/fluxqueue/log_repeat_command.h"
#include "tools/fluxqueue/service_logs.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr Millis kAwait{60'000};
constexpr Millis kLook{250};
constexpr size_t kMostShownBytes = 100;
constexpr size_t kMostReasonBytes = 500;

struct Options {
  std::string service;
  int partition = 0;
  std::optional<int64_t> offset;
  std::string why;
};

struct Place {
  std::string service;
  int partition = 0;
  int64_t next = 0;
  // Of the next message. By its headers, as it may be one that nobody can read; empty: there is
  // none yet.
  std::string event{};
  std::string key{};  // the pool, or the job
};

absl::StatusOr<std::map<int, int64_t>> ReadInbox(postgres::Connection& connection,
                                                 const std::string& service) {
  std::map<int, int64_t> next;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row :
         tx.exec(fmt::format("SELECT partition, next_offset FROM {}.inbox", service))) {
      next[row[0].as<int>()] = row[1].as<int64_t>();
    }
    return absl::OkStatus();
  }));
  return next;
}

std::string TypeByHeaders(const kafka::Message& message) {
  for (const auto& [name, value] : message.headers) {
    if (name == "ce_type" && !value.empty()) return Clean(value, kMostShownBytes);
  }
  return "?";
}

// `place`: all but what stands in the log is set.
absl::Status LookAt(const SystemConfig& config, int64_t offset, Place* place) {
  bool found = false;
  const auto marks =
      kafka::ReadPartition(config.brokers,
                           ServiceLogs().at(place->service),
                           place->partition,
                           offset,
                           [&](const kafka::Message& message) {
                             found = message.offset == offset;
                             place->event = TypeByHeaders(message);
                             place->key = Clean(message.key, kMostShownBytes);
                             return MakeStatus(absl::StatusCode::kCancelled, "one is enough");
                           });
  if (!marks.ok() && !absl::IsCancelled(marks.status())) return marks.status();
  if (found || (marks.ok() && offset == marks->high)) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kNotFound,
                    "OFFSET {}: {} partition {} has no such message",
                    offset,
                    ServiceLogs().at(place->service),
                    place->partition);
}

absl::StatusOr<int> List(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  json result = json::array();
  Table table({"SERVICE", "PARTITION", "OFFSET", "NEXT", "KEY"});
  for (const auto& [service, topic] : ServiceLogs()) {
    ASSIGN_OR_RETURN(const auto inbox, ReadInbox(connection, service));
    for (const auto& [partition, next] : inbox) {
      Place place{.service = service, .partition = partition, .next = next};
      RETURN_IF_ERROR(LookAt(config, next, &place));
      if (place.event.empty()) continue;
      result.push_back({{"service", service},
                        {"partition", partition},
                        {"offset", next},
                        {"next", place.event},
                        {"key", place.key}});
      table.Add({service,
                 fmt::format("{}", partition),
                 fmt::format("{}", next),
                 place.event,
                 place.key.empty() ? "-" : place.key});
    }
  }
  if (context.structured()) {
    fmt::print("{}", context.Structured(result));
  } else if (table.empty()) {
    fmt::print("every service has handled all that is in its log\n");
  } else {
    fmt::print("{}", table.Render(context.colour));
  }
  return 0;
}

absl::StatusOr<Place> Find(const SystemConfig& config,
                           postgres::Connection& connection,
                           const Options& options) {
  ASSIGN_OR_RETURN(const auto inbox, ReadInbox(connection, options.service));
  const auto row = inbox.find(options.partition);
  if (row == inbox.end()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "PARTITION {}: the {} has handled nothing of it; fluxqueue log list shows "
                      "where services stand",
                      options.partition,
                      options.service);
  }
  Place place{.service = options.service, .partition = options.partition, .next = row->second};
  if (*options.offset < place.next) {
    return InvalidArgument(
        "OFFSET {0}: the {1} has handled it, what came of it stays, and the {1} stands at {2}",
        *options.offset,
        options.service,
        place.next);
  }
  RETURN_IF_ERROR(LookAt(config, *options.offset, &place));
  if (place.event.empty()) {
    return InvalidArgument("OFFSET {}: there is no message yet", *options.offset);
  }
  return place;
}

// Its batch is through, and the letters of that are in their topic: first they are in the outbox,
// in the stream of whoever owned the partition then.
absl::StatusOr<bool> IsThrough(postgres::Connection& connection, const Options& options) {
  ASSIGN_OR_RETURN(const auto inbox, ReadInbox(connection, options.service));
  if (inbox.at(options.partition) <= *options.offset) return false;
  bool out = false;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    out = tx.exec_params(fmt::format("SELECT FROM {}.outbox "
                                     "WHERE split_part(stream, '.', 1) = $1 AND topic = $2",
                                     options.service),
                         fmt::format("{}/{}", options.service, options.partition),
                         kafka::TopicNames().dead_letter)
              .empty();
    return absl::OkStatus();
  }));
  return out;
}

// Why it is in the dead letters; nothing: it is not.
absl::StatusOr<std::optional<std::string>> FindReason(const SystemConfig& config,
                                                      const Options& options) {
  DeadLetters letters;
  RETURN_IF_ERROR(kafka::ReadPartition(config.brokers,
                                       kafka::TopicNames().dead_letter,
                                       0,
                                       0,
                                       [&](const kafka::Message& message) {
                                         letters.Fold(message);
                                         return absl::OkStatus();
                                       })
                      .status());
  std::optional<std::string> reason;
  for (const auto& [number, letter] : letters.letters()) {
    if (letter.service == options.service && letter.topic == ServiceLogs().at(options.service) &&
        letter.partition == options.partition && letter.offset == *options.offset) {
      reason = letter.reason;
    }
  }
  return reason;
}

// What became of it.
absl::StatusOr<int> Tell(const SystemConfig& config, const Place& place, const Options& options) {
  ASSIGN_OR_RETURN(const std::optional<std::string> reason, FindReason(config, options));
  if (!reason.has_value()) {
    fmt::print(
        "too late: the {} was handling it before it read of this. What came of it stays, and "
        "replay has it, too\n",
        options.service);
    return 1;
  }
  if (!reason->starts_with("left out by ")) {
    fmt::print("the {} left it out for a reason of its own, before it read of this: {}\n",
               options.service,
               *reason);
    return 0;
  }
  fmt::print("the {} has gone on; fluxqueue dead-letters list has the message\n", options.service);
  if (place.event == "cycle_requested" || place.event == "cycle_answered") {
    fmt::print("its cycle will be asked for again, and fail again: fluxqueue cycle abandon {}\n",
               place.key);
  }
  return 0;
}

absl::StatusOr<int> Skip(const Context& context, const Options& options) {
  if (options.why.empty() || options.why.size() > kMostReasonBytes) {
    return InvalidArgument("--why: 1 to {} bytes are wanted", kMostReasonBytes);
  }
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const Place place, Find(config, connection, options));
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    tx.exec_params(fmt::format("INSERT INTO {}.skips (partition, at_offset, who, why) "
                               "VALUES ($1, $2, session_user, $3) ON CONFLICT DO NOTHING",
                               options.service),
                   options.partition,
                   *options.offset,
                   options.why);
    return absl::OkStatus();
  }));
  fmt::print("{} partition {}: message {} ({} of {}) is to be left out\n",
             options.service,
             options.partition,
             *options.offset,
             place.event,
             place.key);
  const auto deadline = std::chrono::steady_clock::now() + kAwait;
  while (std::chrono::steady_clock::now() < deadline) {
    ASSIGN_OR_RETURN(const bool through, IsThrough(connection, options));
    if (through) return Tell(config, place, options);
    std::this_thread::sleep_for(kLook);
  }
  fmt::print(
      "the {} has not come to it within {} s: it reads of it when it starts, and when it fails\n",
      options.service,
      kAwait.count() / 1000);
  return 1;
}

void AddRepeat(CLI::App& group, const std::vector<std::string>& services, Context& context) {
  CLI::App* repeat = group.add_subcommand(
      "repeat", "Say again what a service could not check, and all that stands behind it");
  const auto options = std::make_shared<Options>();
  repeat->add_option("SERVICE", options->service, "Who could not check it")
      ->required()
      ->check(CLI::IsMember(services));
  repeat->add_option("PARTITION", options->partition, "Of its log")->required();
  repeat->footer(
      "For messages that became dead letters as the service did not know the key yet that they "
      "are signed with. All that\n"
      "the same speaker says afterwards stands behind a gap, and is not handled either. When all "
      "services know the key,\n"
      "this appends the messages to the log again, as they are and in their order. Services that "
      "have handled them drop\n"
      "them. What is not signed by its speaker is not said again.\n\n"
      "Examples:\n"
      "  fluxqueue dead-letters list        FROM fluxqueue.pool[3]@41235: partition 3\n"
      "  fluxqueue log repeat queue 3");
  repeat->callback([&context, options] {
    context.command = [&context, options] {
      return RepeatLog(context, options->service, options->partition);
    };
  });
}

}  // namespace

void RegisterLog(CLI::App& app, Context& context) {
  CLI::App* group =
      app.add_subcommand("log", "Where the services stand in their logs: list, skip, repeat");
  group->group("Operation");
  group->require_subcommand(1);
  CLI::App* list =
      group->add_subcommand("list", "The next message of each that has some to handle");
  list->callback([&context] { context.command = [&context] { return List(context); }; });
  CLI::App* skip = group->add_subcommand("skip", "Have a service leave a message out");
  const auto options = std::make_shared<Options>();
  std::vector<std::string> services;
  for (const auto& [service, topic] : ServiceLogs()) services.push_back(service);
  skip->add_option("SERVICE", options->service, "Who leaves it out")
      ->required()
      ->check(CLI::IsMember(services));
  skip->add_option("PARTITION", options->partition, "Of its log")->required();
  skip->add_option("OFFSET", options->offset, "The message")->required();
  skip->add_option("--why", options->why, "For who reads the dead letter")->required();
  skip->footer(
      "For a service that cannot get past a message: that ends each time, or tries again for "
      "ever. What it cannot handle\n"
      "for a reason that it knows it leaves out by itself. The message becomes a dead letter, with "
      "the reason; replay\n"
      "leaves it out, too. It is as if it had never been said, to this service alone, which does "
      "not "
      "even read it: look at it\n"
      "first, with events, and run verify afterwards. A message that is handled already cannot be "
      "left out.\n\n"
      "Examples:\n"
      "  fluxqueue log list\n"
      "  fluxqueue log skip queue 3 41235 --why 'ends the service, see issue 17'");
  skip->callback([&context, options] {
    context.command = [&context, options] { return Skip(context, *options); };
  });
  AddRepeat(*group, services, context);
}

}  // namespace fluxqueue::cli
