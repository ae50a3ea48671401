#include "tests/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue::bench {
namespace {

using Json = nlohmann::ordered_json;

double Share(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

// Columns as wide as their widest cell; the first to the left, numbers to the right.
std::string Render(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

std::string Number(double value) {
  const double size = std::abs(value);
  if (size >= 1000) {
    std::string digits = fmt::format("{:.0f}", value);
    const size_t first = value < 0 ? 1 : 0;
    for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
    return digits;
  }
  if (size >= 10 || value == 0)
    return fmt::format("{:.{}f}", value, size >= 100 || value == 0 ? 0 : 1);
  return fmt::format("{:.{}f}", value, size >= 1 ? 2 : 3);
}

Report::Report(const std::string& benchmark) {
  json_["benchmark"] = benchmark;
  double load[1] = {0};
  getloadavg(load, 1);
  // Others at work on the machine make every figure worse: who reads them has to know.
  json_["machine"] = {{"cores", std::thread::hardware_concurrency()}, {"load_before", load[0]}};
  json_["targets"] = Json::array();
  json_["problems"] = Json::array();
}

void Report::Section(const std::string& title, std::vector<std::string> header) {
  parts_.push_back({title, {std::move(header)}});
}

void Report::Row(std::vector<std::string> cells) {
  parts_.back().rows.push_back(std::move(cells));
}

void Report::AddCost(const std::string& title,
                     const std::string& key,
                     const StackCost& cost,
                     double jobs,
                     double seconds) {
  Section(
      title + ": each service, for a job",
      {"", "rows", "sent", "received", "API calls", "commits", "ms a commit", "rollbacks in all"});
  Json services = Json::object();
  ServiceCost all;
  const auto row = [&](const std::string& name, const ServiceCost& one) {
    Row({name,
         Number(Share(one.rows, jobs)),
         Number(Share(one.sent, jobs)),
         Number(Share(one.received, jobs)),
         Number(Share(one.calls, jobs)),
         Number(Share(one.commits, jobs)),
         Number(Share(one.commit_seconds * 1000, one.commits)),
         Number(one.rollbacks)});
    services[name] = {{"rows_per_job", Share(one.rows, jobs)},
                      {"sent_per_job", Share(one.sent, jobs)},
                      {"received_per_job", Share(one.received, jobs)},
                      {"api_calls_per_job", Share(one.calls, jobs)},
                      {"commits_per_job", Share(one.commits, jobs)},
                      {"commit_ms", Share(one.commit_seconds * 1000, one.commits)},
                      {"rollbacks", one.rollbacks}};
  };
  for (const auto& [name, one] : cost.services) {
    row(name, one);
    all.rows += one.rows;
    all.sent += one.sent;
    all.received += one.received;
    all.calls += one.calls;
    all.commits += one.commits;
    all.commit_seconds += one.commit_seconds;
    all.rollbacks += one.rollbacks;
  }
  row("all", all);
  Section(title + ": processes", {"", "CPU s", "ms for a job", "of a core", "RSS MB", "peak MB"});
  Json processes = Json::object();
  double cpu = 0;
  const auto process = [&](const std::string& name, const Usage& usage) {
    Row({name,
         Number(usage.cpu_seconds),
         Number(Share(usage.cpu_seconds * 1000, jobs)),
         Number(Share(usage.cpu_seconds, seconds)),
         Number(usage.rss_mb),
         Number(usage.peak_mb)});
    cpu += usage.cpu_seconds;
    processes[name] = {{"cpu_seconds", usage.cpu_seconds},
                       {"cpu_ms_per_job", Share(usage.cpu_seconds * 1000, jobs)},
                       {"rss_mb", usage.rss_mb},
                       {"peak_mb", usage.peak_mb}};
  };
  for (const auto& [name, one] : cost.services) process(name, one.usage);
  for (const auto& [name, usage] : cost.others) process(name, usage);
  Row({"all", Number(cpu), Number(Share(cpu * 1000, jobs)), Number(Share(cpu, seconds)), "", ""});
  json_[key]["cpu_ms_per_job"] = Share(cpu * 1000, jobs);
  Section(title + ": written", {"", "KB for a job"});
  Row({"Kafka's log", Number(Share(cost.kafka_bytes / 1000, jobs))});
  Row({"PostgreSQL's WAL", Number(Share(cost.wal_bytes / 1000, jobs))});
  json_[key]["kafka_bytes_per_job"] = Share(cost.kafka_bytes, jobs);
  json_[key]["wal_bytes_per_job"] = Share(cost.wal_bytes, jobs);
  json_[key]["services"] = services;
  json_[key]["processes"] = processes;
}

void Report::AddLatencies(const std::string& title,
                          const std::string& key,
                          const std::vector<std::pair<std::string, Percentiles>>& stages) {
  Section(title, {"", "p50 ms", "p99 ms"});
  for (const auto& [stage, found] : stages) {
    Row({stage, Number(found.p50), Number(found.p99)});
    json_[key][stage] = {{"p50_ms", found.p50}, {"p99_ms", found.p99}};
  }
}

void Report::Target(
    const std::string& what, double value, bool at_least, double wanted, const std::string& unit) {
  const bool met = at_least ? value >= wanted : value <= wanted;
  std::string line = fmt::format("{:<6} {}: {} {}, wanted {} {}",
                                 met ? "met" : "MISSED",
                                 what,
                                 Number(value),
                                 unit,
                                 at_least ? "at least" : "at most",
                                 Number(wanted));
  if (!met) {
    line += fmt::format(
        ": {} {} too {}", Number(std::abs(value - wanted)), unit, at_least ? "few" : "many");
    if (wanted != 0) line += fmt::format(" ({:.0f} %)", std::abs(value - wanted) / wanted * 100);
  }
  targets_.push_back(std::move(line));
  json_["targets"].push_back({{"what", what},
                              {"value", value},
                              {at_least ? "at_least" : "at_most", wanted},
                              {"unit", unit},
                              {"met", met}});
}

void Report::Problem(const std::string& problem) {
  problems_.push_back(problem);
  json_["problems"].push_back(problem);
}

std::string Report::Table() const {
  std::string text;
  for (const Part& part : parts_) text += fmt::format("{}\n{}\n", part.title, Render(part.rows));
  text += "Targets\n";
  for (const std::string& target : targets_) text += fmt::format("  {}\n", target);
  for (const std::string& problem : problems_) text += fmt::format("  PROBLEM: {}\n", problem);
  return text;
}

}  // namespace fluxqueue::bench
