#include "tests/bench/e2e_bench.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "tests/bench/cluster_driver.h"
#include "tests/bench/probe.h"

namespace fluxqueue::bench {
namespace {

using Json = nlohmann::ordered_json;

// Jobs before those that are measured, on either side: they find cold caches, and a JVM that still
// compiles what it runs, which it does once in weeks.
constexpr int kWarmUp = 1000;

constexpr double kWantedShare = 0.8;
constexpr double kWantedGangShare = 0.95;
constexpr double kWantedWrites = 0;
constexpr double kWantedP50 = 10;
constexpr double kWantedP99 = 15;
constexpr double kWantedMegabytes = 150;
constexpr double kWantedScaleTime = 1.3;

double Sum(const Writes& writes) {
  double sum = 0;
  for (const auto& [what, count] : writes) sum += count;
  return sum;
}

Json ToJson(const StackCost& cost) {
  Json json = {{"kafka_bytes", cost.kafka_bytes}, {"wal_bytes", cost.wal_bytes}};
  for (const auto& [name, one] : cost.services) {
    json["services"][name] = {{"rows", one.rows},
                              {"sent", one.sent},
                              {"received", one.received},
                              {"calls", one.calls},
                              {"commits", one.commits},
                              {"commit_seconds", one.commit_seconds},
                              {"rollbacks", one.rollbacks},
                              {"cpu", one.usage.cpu_seconds},
                              {"rss", one.usage.rss_mb},
                              {"peak", one.usage.peak_mb}};
  }
  for (const auto& [name, usage] : cost.others) {
    json["others"][name] = {
        {"cpu", usage.cpu_seconds}, {"rss", usage.rss_mb}, {"peak", usage.peak_mb}};
  }
  return json;
}

Usage UsageOf(const Json& json) {
  return {json.value("cpu", 0.0), json.value("rss", 0.0), json.value("peak", 0.0)};
}

StackCost FromJson(const Json& json) {
  StackCost cost;
  cost.kafka_bytes = json.value("kafka_bytes", 0.0);
  cost.wal_bytes = json.value("wal_bytes", 0.0);
  const Json services = json.value("services", Json::object());
  const Json others = json.value("others", Json::object());
  for (const auto& [name, one] : services.items()) {
    cost.services[name] = {one.value("rows", 0.0),
                           one.value("sent", 0.0),
                           one.value("received", 0.0),
                           one.value("calls", 0.0),
                           one.value("commits", 0.0),
                           one.value("commit_seconds", 0.0),
                           one.value("rollbacks", 0.0),
                           UsageOf(one)};
  }
  for (const auto& [name, usage] : others.items()) {
    cost.others[name] = UsageOf(usage);
  }
  return cost;
}

absl::StatusOr<Json> PlayBatch(ClusterDriver& driver,
                               const StackProbe& probe,
                               const std::string& prefix,
                               int count,
                               int pods) {
  ASSIGN_OR_RETURN(const StackCost before, probe.Read());
  ASSIGN_OR_RETURN(const BatchResult result, driver.Batch(prefix, count, pods));
  ASSIGN_OR_RETURN(const StackCost after, probe.Read());
  return Json{{"jobs", count},
              {"pods", count * pods},
              {"seconds", result.seconds},
              {"jobs_per_second", count / result.seconds},
              {"pods_per_second", count * pods / result.seconds},
              {"writes_per_job", Sum(result.writes) / count},
              {"writes", result.writes},
              {"cost", ToJson(after - before)}};
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Of runs of the same shape. What one of them does not have, such as a kind of write, is 0 there.
Json MedianOf(const std::vector<Json>& runs) {
  if (runs.front().is_object()) {
    std::map<std::string, std::vector<Json>> parts;
    for (const Json& run : runs) {
      for (const auto& [key, part] : run.items()) parts[key].push_back(part);
    }
    Json medians;
    for (auto& [key, part] : parts) {
      if (part.front().is_number()) part.resize(runs.size(), 0);
      medians[key] = MedianOf(part);
    }
    return medians;
  }
  std::vector<double> values;
  for (const Json& run : runs) values.push_back(run.get<double>());
  return MedianOf(std::move(values));
}

// What each side has for a job, side by side.
void AddBoth(Report& report,
             const std::string& title,
             const std::map<std::string, double>& plain,
             const std::map<std::string, double>& managed) {
  report.Section(title, {"", "Kubernetes alone", "Fluxqueue"});
  std::map<std::string, double> all = plain;
  all.insert(managed.begin(), managed.end());
  const auto cell = [](const std::map<std::string, double>& side, const std::string& what) {
    const auto found = side.find(what);
    return Number(found == side.end() ? 0 : found->second);
  };
  for (const auto& [what, figure] : all) report.Row({what, cell(plain, what), cell(managed, what)});
}

std::map<std::string, double> WritesOf(const Json& batch) {
  std::map<std::string, double> writes;
  for (const auto& [what, count] : batch.at("writes").items()) {
    writes[what] = count.get<double>() / batch.at("jobs").get<double>();
  }
  return writes;
}

// By process, in milliseconds.
std::map<std::string, double> CpuOf(const Json& batch) {
  const StackCost cost = FromJson(batch.at("cost"));
  std::map<std::string, double> cpu;
  for (const auto& [name, one] : cost.services) cpu[name] = one.usage.cpu_seconds;
  for (const auto& [name, usage] : cost.others) cpu[name] = usage.cpu_seconds;
  double all = 0;
  for (auto& [name, value] : cpu) {
    value *= 1000 / batch.at("jobs").get<double>();
    all += value;
  }
  cpu["together"] = all;
  return cpu;
}

double At(const Json& side, const char* batch, const char* figure) {
  return side.at(batch).at(figure).get<double>();
}

void AddTargets(Report& report, const Json& plain, const Json& managed) {
  report.Target("one-pod Jobs, share of what Kubernetes alone does",
                At(managed, "one_pod", "jobs_per_second") / At(plain, "one_pod", "jobs_per_second"),
                true,
                kWantedShare,
                "of its jobs/s");
  report.Target("gangs, share of what Kubernetes alone does",
                At(managed, "gangs", "pods_per_second") / At(plain, "gangs", "pods_per_second"),
                true,
                kWantedGangShare,
                "of its pods/s");
  report.Target("one-pod Jobs, API writes more than Kubernetes alone",
                At(managed, "one_pod", "writes_per_job") - At(plain, "one_pod", "writes_per_job"),
                false,
                kWantedWrites,
                "a job");
  const double pods = At(managed, "gangs", "pods") / At(managed, "gangs", "jobs");
  report.Target(
      "gangs, API writes more than Kubernetes alone",
      (At(managed, "gangs", "writes_per_job") - At(plain, "gangs", "writes_per_job")) / pods,
      false,
      kWantedWrites,
      "a pod");
  for (const auto& [title, figure, wanted] :
       {std::tuple("idle, call to bound, p50, more than Kubernetes alone", "p50_ms", kWantedP50),
        std::tuple("idle, call to bound, p99, more than Kubernetes alone", "p99_ms", kWantedP99)}) {
    report.Target(
        title, At(managed, "single", figure) - At(plain, "single", figure), false, wanted, "ms");
  }
  if (plain.contains("scaled") && managed.contains("scaled")) {
    report.Target(fmt::format("a Deployment scaled to {}, of Kubernetes' own time",
                              At(managed, "scaled", "replicas")),
                  At(managed, "scaled", "seconds") / At(plain, "scaled", "seconds"),
                  false,
                  kWantedScaleTime,
                  "times");
  }
  double most = 0;
  for (const auto& [name, one] : FromJson(managed.at("gangs").at("cost")).services) {
    most = std::max(most, one.usage.peak_mb);
  }
  report.Target("the largest service, at its peak", most, false, kWantedMegabytes, "MB");
}

}  // namespace

absl::StatusOr<Json> PlayE2e(const E2eOptions& options) {
  ASSIGN_OR_RETURN(const auto driver,
                   ClusterDriver::Connect(options.stack + "/kubeconfig",
                                          options.managed ? "bench-fluxqueue" : "bench-plain",
                                          options.timeout_s));
  const StackProbe probe(options.stack);
  RETURN_IF_ERROR(driver->Open(options.managed));
  Json json;
  RETURN_IF_ERROR(driver->Batch("warmup", kWarmUp, 1).status());
  ASSIGN_OR_RETURN(json["one_pod"], PlayBatch(*driver, probe, "one", options.jobs, 1));
  ASSIGN_OR_RETURN(json["gangs"],
                   PlayBatch(*driver, probe, "gang", options.gangs, options.gang_pods));
  // What the queue writes beside the starts; Kubernetes alone writes nothing then.
  const auto written = [&]() -> absl::StatusOr<double> {
    if (!options.managed) return 0;
    return probe.Metric("queue", "fluxqueue_fluxjob_writes_total");
  };
  ASSIGN_OR_RETURN(const std::vector<double> single,
                   driver->Singles("single", options.single, written));
  const Percentiles called = PercentilesOf(single);
  json["single"] = {{"jobs", options.single}, {"p50_ms", called.p50}, {"p99_ms", called.p99}};
  if (options.replicas > 0) {
    ASSIGN_OR_RETURN(const StackCost before, probe.Read());
    ASSIGN_OR_RETURN(const ScaleResult scaled, driver->Scale("serving", options.replicas));
    ASSIGN_OR_RETURN(const StackCost after, probe.Read());
    json["scaled"] = {{"replicas", options.replicas},
                      {"cost", ToJson(after - before)},
                      {"seconds", scaled.seconds},
                      {"writes_per_pod", Sum(scaled.writes) / options.replicas},
                      {"writes", scaled.writes}};
  }
  return json;
}

Report CompareE2e(const std::vector<Json>& plain_runs, const std::vector<Json>& managed_runs) {
  Report report("e2e");
  report.json()["plain_runs"] = plain_runs;
  report.json()["fluxqueue_runs"] = managed_runs;
  const Json plain = report.json()["plain"] = MedianOf(plain_runs);
  const Json managed = report.json()["fluxqueue"] = MedianOf(managed_runs);
  report.Section(fmt::format("The median of {} runs (least to most)", managed_runs.size()),
                 {"", "Kubernetes alone", "Fluxqueue"});
  const auto cell = [](const std::vector<Json>& runs, const char* batch, const char* figure) {
    std::vector<double> values;
    for (const Json& run : runs) values.push_back(At(run, batch, figure));
    const auto [least, most] = std::ranges::minmax(values);
    const std::string median = Number(MedianOf(values));
    if (values.size() == 1) return median;
    return fmt::format("{} ({} to {})", median, Number(least), Number(most));
  };
  const auto row = [&](const std::string& what, const char* batch, const char* figure) {
    report.Row({what, cell(plain_runs, batch, figure), cell(managed_runs, batch, figure)});
  };
  row("one-pod Jobs: jobs/s", "one_pod", "jobs_per_second");
  row("one-pod Jobs: API writes a job", "one_pod", "writes_per_job");
  row("gangs: jobs/s", "gangs", "jobs_per_second");
  row("gangs: pods/s", "gangs", "pods_per_second");
  row("gangs: API writes a job", "gangs", "writes_per_job");
  row("idle: call to bound, p50 ms", "single", "p50_ms");
  row("idle: call to bound, p99 ms", "single", "p99_ms");
  if (plain.contains("scaled") && managed.contains("scaled")) {
    row("a Deployment's replicas: until all are bound, s", "scaled", "seconds");
    row("a Deployment's replicas: API writes a pod", "scaled", "writes_per_pod");
  }
  for (const auto& [title, key] :
       {std::pair("One-pod Jobs", "one_pod"), std::pair("Gangs", "gangs")}) {
    const Json& alone = plain.at(key);
    const Json& ours = managed.at(key);
    AddBoth(report, fmt::format("{}: API writes a job", title), WritesOf(alone), WritesOf(ours));
    AddBoth(report, fmt::format("{}: CPU a job, ms", title), CpuOf(alone), CpuOf(ours));
    report.AddCost(title,
                   fmt::format("{}_cost", key),
                   FromJson(managed.at(key).at("cost")),
                   At(managed, key, "jobs"),
                   At(managed, key, "seconds"));
  }
  if (managed.contains("scaled")) {
    report.AddCost("A Deployment's replicas",
                   "scaled_cost",
                   FromJson(managed.at("scaled").at("cost")),
                   At(managed, "scaled", "replicas"),
                   At(managed, "scaled", "seconds"));
  }
  AddTargets(report, plain, managed);
  return report;
}

}  // namespace fluxqueue::bench
