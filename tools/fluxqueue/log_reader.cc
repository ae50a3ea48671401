#include "tools/fluxqueue/log_reader.h"

#include <charconv>
#include <set>

#include <fmt/ranges.h>

#include "libs/base/status_macros.h"
#include "libs/delivery/wire.h"
#include "libs/fluxion/engines.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/envelope.h"
#include "libs/kafka/reader.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::cli {
namespace {

constexpr postgres::Statement kPools{"cli_pools", "SELECT pool, partition FROM admission.pools"};
constexpr postgres::Statement kFactsLost{"cli_facts_lost",
                                         "SELECT partition FROM binder.inbox WHERE truncated"};
constexpr postgres::Statement kTruncated{
    "cli_truncated",
    "SELECT 'queue', partition FROM queue.inbox WHERE truncated "
    "UNION ALL SELECT 'matcher', partition FROM matcher.inbox WHERE truncated"};

verify::LogRecord View(const kafka::Message& message) {
  verify::LogRecord record{message.partition, message.offset, message.append_time, message.value};
  if (auto position = kafka::PositionOf(message.headers)) {
    record.stream = std::move(position->stream);
    record.sequence = position->sequence;
  }
  return record;
}

std::string Header(const kafka::Message& message, std::string_view name) {
  for (const auto& [key, value] : message.headers) {
    if (key == name) return value;
  }
  return "";
}

int64_t Number(const std::string& text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

absl::Status NotWhole(int partition, std::string_view why) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "the log of partition {} does not begin where its pools began ({}): it cannot "
                    "be replayed from its "
                    "start",
                    partition,
                    why);
}

}  // namespace

absl::StatusOr<std::set<int>> ReadFactsLost(postgres::Connection& connection) {
  std::set<int> partitions;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : postgres::Exec(tx, kFactsLost)) partitions.insert(row[0].as<int>());
    return absl::OkStatus();
  }));
  return partitions;
}

absl::StatusOr<verify::FactLog> LogReader::ReadFacts(verify::FactLog::Hold hold,
                                                     const std::set<int>& lost,
                                                     bool* cut,
                                                     const Taken& taken) const {
  ASSIGN_OR_RETURN(const auto admin, kafka::Admin::Create(brokers_));
  ASSIGN_OR_RETURN(const int partitions, admin->PartitionCount(names_.jobs));
  if (partitions == 0) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "there is no topic {} at {}: the queue makes it when it starts",
                      names_.jobs,
                      brokers_.bootstrap);
  }
  verify::FactLog facts(hold);
  facts.OnTaken(taken);
  *cut = false;
  for (int partition = 0; partition < partitions; ++partition) {
    ASSIGN_OR_RETURN(const kafka::Watermarks marks, admin->QueryWatermarks(names_.jobs, partition));
    const bool is_cut = marks.low > 0 || lost.contains(partition);
    facts.BeginPartition(partition, is_cut);
    *cut |= is_cut;
    if (marks.low == marks.high) continue;
    RETURN_IF_ERROR(kafka::ReadPartition(brokers_,
                                         names_.jobs,
                                         partition,
                                         marks.low,
                                         [&](const kafka::Message& message) {
                                           facts.Fold(View(message));
                                           return absl::OkStatus();
                                         })
                        .status());
  }
  return facts;
}

absl::StatusOr<verify::LogFilter::Buried> LogReader::ReadBuried(int partition) const {
  verify::LogFilter::Buried buried;
  const std::string wanted = fmt::format("{}", partition);
  const auto marks =
      kafka::ReadPartition(brokers_, names_.dead_letter, 0, 0, [&](const kafka::Message& letter) {
        if (Header(letter, "fluxqueue_topic") == names_.pool &&
            Header(letter, "fluxqueue_partition") == wanted) {
          const bool unproven = !Header(letter, delivery::kUnprovenHeader).empty();
          buried.emplace(unproven ? "" : Header(letter, "fluxqueue_service"),
                         Number(Header(letter, "fluxqueue_offset")));
        }
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(marks.status());
  return buried;
}

graph::MakeEngine EnginesOf(const std::string& library) {
  fluxion::EngineOptions engines;
  engines.library = library;
  return fluxion::MakeDecidingEngines(std::move(engines));
}

LogReader::LogReader(kafka::Brokers brokers, const std::string& library)
    : brokers_(std::move(brokers)), make_engine_(EnginesOf(library)) {}

absl::StatusOr<std::vector<verify::PoolReplay>> LogReader::Replay(int partition,
                                                                  verify::FactLog& facts) const {
  ASSIGN_OR_RETURN(const verify::LogFilter::Buried buried, ReadBuried(partition));
  verify::Replayer replayer(partition, facts, buried, make_engine_);
  ASSIGN_OR_RETURN(
      const kafka::Watermarks marks,
      kafka::ReadPartition(
          brokers_, names_.pool, partition, 0, [&](const kafka::Message& message) -> absl::Status {
            if (message.offset > 0 && replayer.empty()) {
              return NotWhole(partition, "retention has cut it");
            }
            return replayer.Fold(View(message));
          }));
  if (marks.low > 0) return NotWhole(partition, "retention has cut it");
  return replayer.Finish();
}

absl::StatusOr<kafka::Watermarks> LogReader::Kept(int partition) const {
  ASSIGN_OR_RETURN(const auto admin, kafka::Admin::Create(brokers_));
  return admin->QueryWatermarks(names_.pool, partition);
}

absl::Status LogReader::ReadLog(int partition, bool cut, const Each& each) const {
  ASSIGN_OR_RETURN(const verify::LogFilter::Buried buried, ReadBuried(partition));
  verify::LogFilter filter(buried, cut);
  return kafka::ReadPartition(brokers_,
                              names_.pool,
                              partition,
                              0,
                              [&](const kafka::Message& message) -> absl::Status {
                                const auto line = filter.Take(View(message));
                                return line.has_value() ? each(*line) : absl::OkStatus();
                              })
      .status();
}

absl::StatusOr<std::map<std::string, int>> ReadPools(postgres::Connection& connection,
                                                     const std::string& pool) {
  std::map<std::string, int> pools;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : postgres::Exec(tx, kPools)) {
      pools[row[0].as<std::string>()] = row[1].as<int>();
    }
    return absl::OkStatus();
  }));
  if (pool.empty()) return pools;
  const auto found = pools.find(pool);
  if (found != pools.end()) return std::map<std::string, int>{*found};
  std::vector<std::string> names;
  names.reserve(pools.size());
  for (const auto& [name, partition] : pools) names.push_back(name);
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no pool {}; there are: {}",
                    pool,
                    names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

absl::Status CheckReadWhole(postgres::Connection& connection, const std::set<int>& partitions) {
  return connection.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    for (const pqxx::row& row : postgres::Exec(tx, kTruncated)) {
      const int partition = row[1].as<int>();
      if (!partitions.contains(partition)) continue;
      return NotWhole(partition,
                      fmt::format("the {} has begun in the middle of it, or of one before it",
                                  row[0].as<std::string>()));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<verify::PoolReplay>> ReplayPools(postgres::Connection& connection,
                                                            const LogReader& reader,
                                                            const std::map<std::string, int>& pools,
                                                            verify::FactLog& facts) {
  std::set<int> partitions;
  for (const auto& [pool, partition] : pools) partitions.insert(partition);
  RETURN_IF_ERROR(CheckReadWhole(connection, partitions));
  std::vector<verify::PoolReplay> results;
  for (const int partition : partitions) {
    ASSIGN_OR_RETURN(std::vector<verify::PoolReplay> replayed, reader.Replay(partition, facts));
    for (verify::PoolReplay& pool : replayed) {
      if (pools.contains(pool.pool)) results.push_back(std::move(pool));
    }
  }
  return results;
}

void AddTopic(const verify::FactLog& facts, bool cut, verify::Snapshot* snapshot) {
  for (const auto& [id, trail] : facts.trails()) {
    snapshot->topic[id] = {.last = trail.last, .faults = trail.faults};
  }
  snapshot->unreadable = facts.unreadable();
  snapshot->topic_lost = facts.lost();
  snapshot->topic_cut = cut;
}

}  // namespace fluxqueue::cli
