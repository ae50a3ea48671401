#include <cstdlib>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/client.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topic_check.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/dsn.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/statement.h"

#include "admission_migrations.h"
#include "binder_migrations.h"
#include "delivery_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"
#include "tools/fluxqueue/dead_letters.h"
#include "tools/fluxqueue/doctor.h"
#include "tools/fluxqueue/pipeline_view.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

// More than this and people who compare times are led astray; the log's own time is the broker's.
constexpr int64_t kMostSkewMs = 5'000;
constexpr int64_t kMuchLag = 10'000;
constexpr int kOldestPostgres = 130000;

constexpr postgres::Statement kServer{
    "cli_server",
    "SELECT current_setting('server_version_num')::int, current_setting('server_version'), "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"};
// The last record that was read; at most as old as the queue's last Tick.
constexpr postgres::Statement kLogTime{"cli_log_time",
                                       "SELECT coalesce(max(append_ms), 0) FROM queue.inbox"};

constexpr postgres::Statement kOwners{
    "cli_owners",
    "SELECT count(DISTINCT nspowner), coalesce(bool_or(pg_has_role(nspowner, 'USAGE')), false) "
    "FROM pg_namespace "
    "WHERE nspname IN ('admission', 'queue', 'matcher', 'binder', 'cleanup')"};

int64_t NowMs(const Clock& clock) {
  return std::chrono::duration_cast<Millis>(clock.Now().time_since_epoch()).count();
}

void CheckClock(const char* whose, int64_t ahead_ms, Findings* findings) {
  if (std::abs(ahead_ms) <= kMostSkewMs) {
    return findings->Ok(whose, fmt::format("{:+} ms to ours", ahead_ms));
  }
  findings->Warn(whose,
                 fmt::format("{:+} ms to ours, more than {} ms", ahead_ms, kMostSkewMs),
                 "keep the clocks in step (NTP): durations and expected starts are shown wrong");
}

bool CheckPostgres(postgres::Connection& connection, const Clock& clock, Findings* findings) {
  int version = 0;
  std::string text;
  int64_t now_ms = 0;
  const absl::Status status = connection.Query([&](pqxx::transaction_base& tx) {
    const pqxx::result rows = postgres::Exec(tx, kServer);
    version = rows[0][0].as<int>();
    text = rows[0][1].as<std::string>();
    now_ms = rows[0][2].as<int64_t>();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    findings->Fail("Postgres", Message(status), "see that it runs, and postgres.dsn");
    return false;
  }
  if (version < kOldestPostgres) {
    findings->Fail("Postgres", "version " + text, "upgrade it to 13 or newer");
  } else {
    findings->Ok("Postgres", "version " + text);
  }
  CheckClock("Postgres' clock", now_ms - NowMs(clock), findings);
  return true;
}

void CheckTls(const SystemConfig& config, Findings* findings) {
  const std::string mode = postgres::TlsMode(config.dsn);
  if (mode == "verify-full") {
    findings->Ok("TLS to Postgres", mode);
  } else if (mode.empty()) {
    findings->Ok("TLS to Postgres", "on this machine: not needed");
  } else {
    findings->Warn("TLS to Postgres",
                   "sslmode=" + mode +
                       (mode == "disable" ? ": passwords and rows in plain text"
                                          : ": does not know whom it talks to"),
                   "write sslmode=verify-full into postgres.dsn, and sslrootcert=FILE");
  }
  const std::string protocol =
      kafka::ClientConfig(config.brokers, "fluxqueue-doctor").SecurityProtocol();
  if (protocol.ends_with("ssl")) {
    findings->Ok("TLS to Kafka", protocol);
  } else if (protocol == "plaintext" && kafka::IsHere(config.brokers)) {
    findings->Ok("TLS to Kafka", "on this machine: not needed");
  } else {
    findings->Warn("TLS to Kafka",
                   protocol + ": passwords and records in plain text",
                   "give the brokers a TLS listener, and take plaintext out of kafka.bootstrap or "
                   "kafka.properties");
  }
}

void CheckTables(postgres::Connection& connection, Findings* findings) {
  const std::pair<const char*, const postgres::MigrationSet*> kServices[] = {
      {"admission", &migrations::admission()},
      {"queue", &migrations::queue()},
      {"matcher", &migrations::matcher()},
      {"binder", &migrations::binder()},
      {"cleanup", &migrations::delivery()}};
  for (const auto& [service, set] : kServices) {
    const std::string about = fmt::format("tables of {}", service);
    const std::string newest =
        fmt::format("{}/{}", std::string(set->name), std::string(set->migrations.back().name));
    int known = 0;
    int newer = 0;
    const absl::Status status =
        connection.Query([&, service = service, set = set](pqxx::transaction_base& tx) {
          const std::string table = tx.esc(service) + ".migrations";
          known = tx.exec_params1("SELECT count(*) FROM " + table + " WHERE name = $1", newest)[0]
                      .as<int>();
          newer =
              tx.exec_params1("SELECT count(*) FROM " + table + " WHERE name > $1 AND name LIKE $2",
                              newest,
                              std::string(set->name) + "/%")[0]
                  .as<int>();
          return absl::OkStatus();
        });
    if (!status.ok() || known == 0) {
      findings->Fail(
          about,
          status.ok() ? fmt::format("{} is missing", newest) : Message(status),
          fmt::format("start a {} of this version: it brings its tables up to date", service));
    } else if (newer > 0) {
      findings->Warn(
          about, "newer than this program", "use the fluxqueue of the services' version");
    } else {
      findings->Ok(about, newest);
    }
  }
}

void CheckAccounts(const SystemConfig& config,
                   postgres::Connection& connection,
                   Findings* findings) {
  if (postgres::TlsMode(config.dsn).empty()) {
    return findings->Ok("accounts in Postgres", "on this machine: not asked for");
  }
  int64_t owners = 0;
  bool owns = false;
  const absl::Status status = connection.Query([&](pqxx::transaction_base& tx) {
    const pqxx::result rows = postgres::Exec(tx, kOwners);
    owners = rows[0][0].as<int64_t>();
    owns = rows[0][1].as<bool>();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    return findings->Fail("accounts in Postgres", Message(status), "see that Postgres answers");
  }
  JudgeAccounts(owners, owns, findings);
}

void CheckTopic(kafka::Admin& admin, const kafka::TopicSpec& spec, Findings* findings) {
  const std::string about = "topic " + spec.name;
  const auto state = admin.Describe(spec.name);
  if (!state.ok()) return findings->Fail(about, Message(state.status()), "see Kafka's log");
  if (state->partitions == 0) {
    return findings->Fail(about, "is missing", "start the queue: it makes topics that are missing");
  }
  const std::vector<kafka::TopicFault> faults = kafka::JudgeTopic(spec, *state);
  for (const kafka::TopicFault& fault : faults) {
    if (fault.fatal) {
      findings->Fail(about, fault.text, "change it with kafka-configs.sh or kafka-topics.sh");
    } else {
      findings->Warn(about, fault.text, "change it with kafka-configs.sh");
    }
  }
  const bool in_sync = state->in_sync.value_or(state->replicas) >= state->replicas;
  if (!in_sync) {
    findings->Warn(
        about,
        fmt::format(
            "has a partition with {} of {} replicas in sync", *state->in_sync, state->replicas),
        "bring the broker back that is away or behind, before another one goes");
  }
  if (!faults.empty() || !in_sync) return;
  findings->Ok(about,
               fmt::format("{} partitions, {}, stamps on append",
                           state->partitions,
                           state->replicas == 1 ? "1 replica"
                                                : fmt::format("{} replicas", state->replicas)));
}

void CheckTopics(kafka::Admin& admin, Findings* findings) {
  for (const kafka::TopicSpec& spec : kafka::TopicSpecs({})) CheckTopic(admin, spec, findings);
}

void CheckPipeline(const PipelineView& view, Findings* findings) {
  for (const ConsumerLag& consumer : view.consumers) {
    const std::string about =
        fmt::format("{} of {}[{}]", consumer.service, consumer.topic, consumer.partition);
    if (consumer.lag > kMuchLag) {
      findings->Warn(
          about,
          fmt::format("{} records behind, held by {}", consumer.lag, consumer.holder),
          "see that this replica works and is not short of CPU; add replicas for more pools");
    }
  }
  int64_t lag = 0;
  for (const ConsumerLag& consumer : view.consumers) lag += consumer.lag;
  findings->Ok(
      "consumers",
      fmt::format("{} partitions are read, {} records behind", view.consumers.size(), lag));
  for (const OutboxDepth& outbox : view.outboxes) {
    if (outbox.messages > kMuchLag) {
      findings->Warn("outbox of " + outbox.service,
                     fmt::format("{} messages are not sent", outbox.messages),
                     "see that Kafka takes messages, and this service's log");
    } else {
      findings->Ok("outbox of " + outbox.service, fmt::format("{} messages", outbox.messages));
    }
  }
}

void CheckLetters(const kafka::Brokers& brokers, Findings* findings) {
  DeadLetters letters;
  const auto read = kafka::ReadPartition(
      brokers, kafka::TopicNames().dead_letter, 0, 0, [&](const kafka::Message& message) {
        letters.Fold(message);
        return absl::OkStatus();
      });
  if (!read.ok()) {
    return findings->Fail("dead letters", Message(read.status()), "see that Kafka answers");
  }
  size_t open = 0;
  for (const auto& [number, letter] : letters.letters()) open += letter.answer.empty() ? 1 : 0;
  if (open == 0) return findings->Ok("dead letters", "none that waits for an answer");
  const std::string objects = ObjectsText(letters);
  findings->Warn("dead letters",
                 fmt::format("{} wait for an answer{}{}",
                             open,
                             objects.empty() ? "" : "; of objects that are left out: ",
                             objects),
                 "fluxqueue dead-letters list shows them; retry or drop each");
}

}  // namespace

void JudgeAccounts(int64_t owners, bool owns, Findings* findings) {
  constexpr int64_t kSchemas = 5;
  if (owners == kSchemas && !owns) {
    return findings->Ok("accounts in Postgres", "one for each service");
  }
  findings->Warn("accounts in Postgres",
                 owners == kSchemas ? "the command line's may do what a service's may"
                                    : "services share one: whoever has it has all",
                 "see \"Accounts in Postgres and Kafka\" in deploy/docs/security.md");
}

void ExamineStores(const SystemConfig& config, const Clock& clock, Findings* findings) {
  CheckTls(config, findings);
  postgres::Connection connection(PostgresOptions(config.dsn));
  const bool postgres = CheckPostgres(connection, clock, findings);
  if (postgres) {
    CheckTables(connection, findings);
    CheckAccounts(config, connection, findings);
  }
  auto admin = kafka::Admin::Create(config.brokers);
  const absl::Status kafka =
      admin.ok() ? (*admin)->PartitionCount(kafka::TopicNames().pool).status() : admin.status();
  if (!kafka.ok()) {
    return findings->Fail("Kafka", Message(kafka), "see that it runs, and kafka.bootstrap");
  }
  findings->Ok("Kafka", "answers at " + config.brokers.bootstrap);
  CheckTopics(**admin, findings);
  CheckLetters(config.brokers, findings);
  if (!postgres) return;
  const auto view = ReadPipeline(connection, **admin);
  if (!view.ok()) {
    return findings->Fail("consumers", Message(view.status()), "see the services' logs");
  }
  CheckPipeline(*view, findings);
  int64_t log_ms = 0;
  const absl::Status status = connection.Query([&](pqxx::transaction_base& tx) {
    log_ms = postgres::Exec(tx, kLogTime)[0][0].as<int64_t>();
    return absl::OkStatus();
  });
  // Records are from the past: only a log ahead of us says something of the broker's clock.
  if (status.ok() && log_ms != 0) {
    CheckClock("Kafka's clock, at least", std::max<int64_t>(0, log_ms - NowMs(clock)), findings);
  }
}

}  // namespace fluxqueue::cli
