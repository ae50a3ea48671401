#include "tools/fluxqueue/event_source.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"
#include "libs/postgres/connection.h"

#include "tools/fluxqueue/gzip_file.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

class FileEvents final : public EventSource {
 public:
  explicit FileEvents(std::string path) : path_(std::move(path)), reader_(path_) {}

  absl::Status Read(const Each& each) override {
    return ReadGzipLines(path_, [&](std::string_view text) -> absl::Status {
      ASSIGN_OR_RETURN(const std::optional<verify::EventLine> line, reader_.Read(text));
      return line.has_value() ? each(*line) : absl::OkStatus();
    });
  }
  const verify::EventFileHeader& header() const override { return reader_.header(); }

 private:
  const std::string path_;
  verify::EventFileReader reader_;
};

class PoolEvents final : public EventSource {
 public:
  PoolEvents(kafka::Brokers brokers,
             int partition,
             std::set<int> facts_lost,
             verify::EventFileHeader header)
      : reader_(std::move(brokers), ""),
        partition_(partition),
        facts_lost_(std::move(facts_lost)),
        header_(std::move(header)) {}

  absl::Status Read(const Each& each) override {
    absl::Status status;
    bool facts_cut = false;
    const auto take = [&](const verify::EventLine& line) {
      if (status.ok() && line.message.pool() == header_.pool) status = each(line);
    };
    RETURN_IF_ERROR(
        reader_.ReadFacts(verify::FactLog::Hold::kTrails, facts_lost_, &facts_cut, take).status());
    RETURN_IF_ERROR(status);
    return reader_.ReadLog(partition_, header_.from.log > 0, [&](const verify::EventLine& line) {
      header_.to.log = std::max(header_.to.log, line.offset + 1);
      return line.message.pool() == header_.pool ? each(line) : absl::OkStatus();
    });
  }
  const verify::EventFileHeader& header() const override { return header_; }

 private:
  const LogReader reader_;
  const int partition_;
  const std::set<int> facts_lost_;
  verify::EventFileHeader header_;
};

}  // namespace

std::unique_ptr<EventSource> EventsOfFile(std::string path) {
  return std::make_unique<FileEvents>(std::move(path));
}

absl::StatusOr<std::unique_ptr<EventSource>> EventsOfPool(const SystemConfig& config,
                                                          const std::string& pool) {
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, pool));
  if (pools.size() != 1) {
    std::vector<std::string> names;
    names.reserve(pools.size());
    for (const auto& [name, partition] : pools) names.push_back(name);
    return InvalidArgument("--pool POOL: this is of one pool, and there are {}",
                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  const auto& [name, partition] = *pools.begin();
  const absl::Status whole = CheckReadWhole(connection, {partition});
  if (!whole.ok() && !absl::IsFailedPrecondition(whole)) return whole;
  ASSIGN_OR_RETURN(std::set<int> lost, ReadFactsLost(connection));
  ASSIGN_OR_RETURN(const kafka::Watermarks kept, LogReader(config.brokers, "").Kept(partition));
  verify::EventFileHeader header{.build = FLUXQUEUE_VERSION,
                                 .rules = model::kLatestRules,
                                 .pool = name,
                                 .whole = whole.ok() && kept.low == 0,
                                 .archived = true,
                                 .from = {.log = kept.low},
                                 .to = {.log = kept.high}};
  return std::make_unique<PoolEvents>(
      config.brokers, partition, std::move(lost), std::move(header));
}

}  // namespace fluxqueue::cli
