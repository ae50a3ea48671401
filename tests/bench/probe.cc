#include "tests/bench/probe.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/postgres/connection.h"

namespace fluxqueue::bench {
namespace {

constexpr std::array kServices = {"admission", "queue", "matcher", "binder", "cleanup"};

// Where the other parts keep their process ids, below the stack's folder.
constexpr std::array<std::pair<const char*, const char*>, 8> kOthers = {{
    {"kafka", "kafka/logs/kafka.pid"},
    {"postgres", "postgres/logs/postgres.pid"},
    {"fake-apiserver", "logs/fake-apiserver.pid"},
    {"etcd", "cluster/logs/etcd.pid"},
    {"kube-apiserver", "cluster/logs/kube-apiserver.pid"},
    {"kube-controller-manager", "cluster/logs/kube-controller-manager.pid"},
    {"kube-scheduler", "cluster/logs/kube-scheduler.pid"},
    {"kwok", "cluster/logs/kwok.pid"},
}};

// Clock ticks of the process, and of children it has waited for. -1: it is gone.
int64_t Ticks(int pid) {
  const std::string stat = ReadAll(fmt::format("/proc/{}/stat", pid));
  const size_t end = stat.rfind(')');  // the name before it may hold blanks
  if (end == std::string::npos) return -1;
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    int64_t ticks = 0;
    fields >> ticks;
    sum += ticks;
  }
  return sum;
}

int64_t TicksWithChildren(int pid) {
  int64_t sum = std::max<int64_t>(0, Ticks(pid));
  std::istringstream children(ReadAll(fmt::format("/proc/{0}/task/{0}/children", pid)));
  for (int child = 0; children >> child;) sum += TicksWithChildren(child);
  return sum;
}

double Megabytes(const std::string& status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == std::string::npos) return 0;
  return std::atof(status.c_str() + at + key.size()) / 1024;
}

bool EndsWith(const MetricLine& line, std::string_view suffix) {
  return std::string_view(line.name).ends_with(suffix);
}

double Sum(const std::vector<MetricLine>& lines, std::string_view suffix) {
  double sum = 0;
  for (const MetricLine& line : lines) sum += EndsWith(line, suffix) ? line.value : 0;
  return sum;
}

// Watches and their lists are there once, not for each job.
double Calls(const std::vector<MetricLine>& lines) {
  double sum = 0;
  for (const MetricLine& line : lines) {
    const bool counts = line.labels.find("\"list\"") == std::string::npos &&
                        line.labels.find("\"watch\"") == std::string::npos;
    if (EndsWith(line, "fluxqueue_api_requests_total") && counts) sum += line.value;
  }
  return sum;
}

// Of all topics but Kafka's own; a segment's file is as long as what it holds.
double KafkaBytes(const std::string& data) {
  double sum = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data, error)) {
    const std::string topic = entry.path().parent_path().filename();
    if (entry.path().extension() != ".log" || topic.starts_with("__")) continue;
    const uintmax_t size = entry.file_size(error);
    if (!error) sum += static_cast<double>(size);
  }
  return sum;
}

absl::StatusOr<double> WalBytes(const std::string& dsn) {
  double bytes = 0;
  postgres::Connection db({.dsn = dsn, .application = "bench", .schema = "public"});
  RETURN_IF_ERROR(db.Query([&](pqxx::transaction_base& tx) {
    bytes = tx.exec1("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")[0].as<double>();
    return absl::OkStatus();
  }));
  return bytes;
}

Usage Difference(const Usage& after, const Usage& before) {
  return {after.cpu_seconds - before.cpu_seconds, after.rss_mb, after.peak_mb};
}

}  // namespace

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int ReadNumber(const std::string& path) {
  return std::atoi(ReadAll(path).c_str());
}

std::vector<MetricLine> ParseMetrics(std::string_view text) {
  std::vector<MetricLine> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t blank = line.rfind(' ');
    if (line.empty() || line.front() == '#' || blank == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, blank);
    const size_t brace = std::min(key.find('{'), key.size());
    lines.push_back({std::string(key.substr(0, brace)),
                     std::string(key.substr(brace)),
                     std::atof(std::string(line.substr(blank + 1)).c_str())});
  }
  return lines;
}

absl::StatusOr<std::string> Fetch(const std::string& server,
                                  const std::string& target,
                                  const std::string& method) {
  http::Client client({.base_url = server});
  ASSIGN_OR_RETURN(http::Response response,
                   client.Do({.method = method, .target = target, .accept = "*/*"}));
  if (response.status != 200) {
    return Unavailable("{}{}: HTTP {}", server, target, response.status);
  }
  return std::move(response.body);
}

absl::StatusOr<Usage> ReadUsage(int pid) {
  const std::string status = ReadAll(fmt::format("/proc/{}/status", pid));
  if (status.empty()) {
    return MakeStatus(absl::StatusCode::kNotFound, "process {} does not run", pid);
  }
  const auto hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  return Usage{static_cast<double>(TicksWithChildren(pid)) / hertz,
               Megabytes(status, "VmRSS:"),
               Megabytes(status, "VmHWM:")};
}

absl::StatusOr<std::vector<MetricLine>> StackProbe::Scrape(const std::string& service) const {
  const int port = ReadNumber(fmt::format("{}/config/{}-1.ports", folder_, service));
  if (port == 0) return Unavailable("{}/config/{}-1.ports is missing", folder_, service);
  ASSIGN_OR_RETURN(const std::string page,
                   Fetch(fmt::format("http://127.0.0.1:{}", port), "/metrics"));
  return ParseMetrics(page);
}

absl::StatusOr<double> StackProbe::Metric(const std::string& service,
                                          std::string_view suffix) const {
  ASSIGN_OR_RETURN(const std::vector<MetricLine> lines, Scrape(service));
  return Sum(lines, suffix);
}

absl::StatusOr<bool> StackProbe::Quiet() const {
  for (const char* service : kServices) {
    ASSIGN_OR_RETURN(const std::vector<MetricLine> lines, Scrape(service));
    if (Sum(lines, "fluxqueue_consumer_lag") + Sum(lines, "fluxqueue_outbox_depth") > 0)
      return false;
  }
  return true;
}

absl::StatusOr<StackCost> StackProbe::Read() const {
  StackCost cost;
  for (const char* service : kServices) {
    const absl::StatusOr<Usage> usage =
        ReadUsage(ReadNumber(fmt::format("{}/logs/{}-1.pid", folder_, service)));
    if (!usage.ok()) continue;
    ASSIGN_OR_RETURN(const std::vector<MetricLine> lines, Scrape(service));
    ServiceCost& one = cost.services[service];
    one.rows = Sum(lines, "_delivery_own_rows_total") + Sum(lines, "_delivery_handler_rows_total");
    one.sent = Sum(lines, "_delivery_sent_total");
    one.received = Sum(lines, "_delivery_received_total");
    one.calls = Calls(lines);
    one.commits = Sum(lines, "_delivery_commits_total");
    one.commit_seconds = Sum(lines, "_delivery_commit_seconds_total");
    one.rollbacks = Sum(lines, "_delivery_rollbacks_total");
    one.usage = *usage;
  }
  for (const auto& [name, file] : kOthers) {
    const absl::StatusOr<Usage> usage = ReadUsage(ReadNumber(fmt::format("{}/{}", folder_, file)));
    if (usage.ok()) cost.others[name] = *usage;
  }
  ASSIGN_OR_RETURN(cost.others["this program"], ReadUsage(getpid()));
  cost.kafka_bytes = KafkaBytes(folder_ + "/kafka/data");
  const std::string dsn = FirstLine(folder_ + "/postgres/dsn");
  if (!dsn.empty()) {
    ASSIGN_OR_RETURN(cost.wal_bytes, WalBytes(dsn));
  }
  return cost;
}

StackCost operator-(const StackCost& after, const StackCost& before) {
  StackCost difference = after;
  difference.kafka_bytes -= before.kafka_bytes;
  difference.wal_bytes -= before.wal_bytes;
  for (auto& [name, cost] : difference.services) {
    const auto found = before.services.find(name);
    if (found == before.services.end()) continue;
    const ServiceCost& earlier = found->second;
    cost.rows -= earlier.rows;
    cost.sent -= earlier.sent;
    cost.received -= earlier.received;
    cost.calls -= earlier.calls;
    cost.commits -= earlier.commits;
    cost.commit_seconds -= earlier.commit_seconds;
    cost.rollbacks -= earlier.rollbacks;
    cost.usage = Difference(cost.usage, earlier.usage);
  }
  for (auto& [name, usage] : difference.others) {
    const auto found = before.others.find(name);
    if (found != before.others.end()) usage = Difference(usage, found->second);
  }
  return difference;
}

}  // namespace fluxqueue::bench
