#include "tools/fluxqueue/report_tables.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using job_store::ReportKey;
using job_store::ReportQuery;
using job_store::ReportRow;
using nlohmann::json;

// Of the jobs that succeeded or failed; none of them did: nothing. A job that was cancelled or
// rejected tells nothing of its own success.
std::optional<double> SuccessOf(const ReportRow& row) {
  const int64_t judged = row.succeeded + row.failed;
  if (judged == 0) return std::nullopt;
  return static_cast<double>(row.succeeded) / static_cast<double>(judged);
}

std::string Hours(double hours) {
  if (hours >= 1000) return Thousands(static_cast<uint64_t>(hours + 0.5));
  return fmt::format("{:.1f}", hours);
}

std::string Wait(const ReportRow& row, double seconds) {
  if (row.started == 0) return "-";
  return ShortDuration(Millis(static_cast<int64_t>(seconds * 1000)));
}

std::vector<Cell> CellsOf(std::vector<std::string> keys, const ReportRow& row) {
  std::vector<Cell> cells;
  for (std::string& key : keys) cells.emplace_back(key.empty() ? "-" : std::move(key));
  const std::optional<double> success = SuccessOf(row);
  cells.emplace_back(Thousands(static_cast<uint64_t>(row.jobs)));
  cells.emplace_back(success.has_value() ? fmt::format("{:.1f} %", 100 * *success) : "-");
  cells.emplace_back(Hours(row.cpu_hours));
  cells.emplace_back(Hours(row.gpu_hours));
  cells.emplace_back(Hours(row.memory_gib_hours));
  cells.emplace_back(Wait(row, row.wait_mean_s));
  return cells;
}

// Without the percentile, which no sum has.
ReportRow SumOf(const ReportRows& rows) {
  ReportRow sum;
  double waited_s = 0;
  for (const ReportRow& row : rows) {
    sum.jobs += row.jobs;
    sum.succeeded += row.succeeded;
    sum.failed += row.failed;
    sum.started += row.started;
    sum.cpu_hours += row.cpu_hours;
    sum.gpu_hours += row.gpu_hours;
    sum.memory_gib_hours += row.memory_gib_hours;
    waited_s += row.wait_mean_s * static_cast<double>(row.started);
  }
  if (sum.started > 0) sum.wait_mean_s = waited_s / static_cast<double>(sum.started);
  return sum;
}

std::string Quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string_view NameOf(ReportKey key) {
  switch (key) {
    case ReportKey::kUser:
      return "user";
    case ReportKey::kAccount:
      return "account";
    case ReportKey::kQueue:
      return "queue";
    case ReportKey::kNamespace:
      return "namespace";
    case ReportKey::kMonth:
      return "month";
  }
  return "";
}

std::string ReportTable(const ReportQuery& query, const ReportRows& rows, bool colour) {
  std::vector<std::string> header;
  for (const ReportKey key : query.by) {
    std::string name(NameOf(key));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return static_cast<char>(c - 'a' + 'A');
    });
    header.push_back(std::move(name));
  }
  header.insert(
      header.end(),
      {"JOBS", "SUCCESS", "CPU-HOURS", "GPU-HOURS", "GIB-HOURS", "WAIT MEAN", "WAIT P95"});
  Table table(std::move(header));
  for (const ReportRow& row : rows) {
    std::vector<Cell> cells = CellsOf(row.keys, row);
    cells.emplace_back(Wait(row, row.wait_p95_s));
    table.Add(std::move(cells));
  }
  std::vector<Cell> cells = CellsOf(std::vector<std::string>(query.by.size(), "all"), SumOf(rows));
  cells.emplace_back("");
  for (Cell& cell : cells) cell.colour = Colour::kBold;
  table.Add(std::move(cells));
  return table.Render(colour);
}

json ReportJson(const ReportQuery& query, const ReportRows& rows) {
  json report = {{"since", FormatTime(Millis(query.since_ms))},
                 {"until", FormatTime(Millis(query.until_ms))},
                 {"by", json::array()},
                 {"rows", json::array()}};
  for (const ReportKey key : query.by) report["by"].push_back(NameOf(key));
  for (const ReportRow& row : rows) {
    const std::optional<double> success = SuccessOf(row);
    json one = {{"jobs", row.jobs},
                {"succeeded", row.succeeded},
                {"failed", row.failed},
                {"success", success.has_value() ? json(*success) : json(nullptr)},
                {"attempts", row.attempts},
                {"started", row.started},
                {"cpuHours", row.cpu_hours},
                {"gpuHours", row.gpu_hours},
                {"memoryGibHours", row.memory_gib_hours},
                {"waitSeconds", {{"mean", row.wait_mean_s}, {"p95", row.wait_p95_s}}}};
    for (size_t i = 0; i < query.by.size(); ++i) {
      one[std::string(NameOf(query.by[i]))] = row.keys[i];
    }
    report["rows"].push_back(std::move(one));
  }
  return report;
}

std::string ReportCsv(const ReportQuery& query, const ReportRows& rows) {
  std::string text;
  for (const ReportKey key : query.by) text += fmt::format("{},", NameOf(key));
  text +=
      "jobs,succeeded,failed,attempts,started,cpu_hours,gpu_hours,memory_gib_hours,"
      "wait_mean_seconds,wait_p95_seconds\n";
  for (const ReportRow& row : rows) {
    for (const std::string& key : row.keys) text += Quoted(key) + ",";
    text += fmt::format("{},{},{},{},{},{:.6f},{:.6f},{:.6f},{:.3f},{:.3f}\n",
                        row.jobs,
                        row.succeeded,
                        row.failed,
                        row.attempts,
                        row.started,
                        row.cpu_hours,
                        row.gpu_hours,
                        row.memory_gib_hours,
                        row.wait_mean_s,
                        row.wait_p95_s);
  }
  return text;
}

}  // namespace fluxqueue::cli
