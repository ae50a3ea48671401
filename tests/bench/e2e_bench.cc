#include "tests/bench/e2e_bench.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "tests/bench/cluster_driver.h"
#include "tests/bench/probe.h"

namespace fluxqueue::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWantedShare = 0.7;
constexpr double kWantedJobWrites = 3;
constexpr double kWantedPodWrites = 0.1;
constexpr double kWantedP50 = 60;
constexpr double kWantedP99 = 150;
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

// What each side writes for a job, side by side.
void AddWrites(Report& report, const std::string& title, const Json& plain, const Json& managed) {
  report.Section(title, {"", "Kubernetes alone", "Fluxqueue"});
  std::set<std::string> kinds;
  for (const Json* side : {&plain, &managed}) {
    for (const auto& [what, count] : side->at("writes").items()) kinds.insert(what);
  }
  const auto cell = [](const Json& side, const std::string& what) {
    return Number(side.at("writes").value(what, 0.0) / side.at("jobs").get<double>());
  };
  for (const std::string& what : kinds) report.Row({what, cell(plain, what), cell(managed, what)});
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
                kWantedShare,
                "of its pods/s");
  report.Target("one-pod Jobs, API writes more than Kubernetes alone",
                At(managed, "one_pod", "writes_per_job") - At(plain, "one_pod", "writes_per_job"),
                false,
                kWantedJobWrites,
                "a job");
  const double pods = At(managed, "gangs", "pods") / At(managed, "gangs", "jobs");
  report.Target(
      "gangs, API writes more than Kubernetes alone",
      (At(managed, "gangs", "writes_per_job") - At(plain, "gangs", "writes_per_job")) / pods,
      false,
      kWantedPodWrites,
      "a pod");
  report.Target(
      "idle, created to bound, p50", At(managed, "single", "p50_ms"), false, kWantedP50, "ms");
  report.Target(
      "idle, created to bound, p99", At(managed, "single", "p99_ms"), false, kWantedP99, "ms");
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
  // The first Jobs of a side find cold caches, whichever side it is.
  RETURN_IF_ERROR(driver->Batch("warmup", 50, 1).status());
  ASSIGN_OR_RETURN(json["one_pod"], PlayBatch(*driver, probe, "one", options.jobs, 1));
  ASSIGN_OR_RETURN(json["gangs"],
                   PlayBatch(*driver, probe, "gang", options.gangs, options.gang_pods));
  ASSIGN_OR_RETURN(const SingleResult single, driver->Singles("single", options.single));
  const Percentiles created = PercentilesOf(single.from_created);
  const Percentiles called = PercentilesOf(single.from_call);
  json["single"] = {{"jobs", options.single},
                    {"p50_ms", created.p50},
                    {"p99_ms", created.p99},
                    {"from_call_p50_ms", called.p50},
                    {"from_call_p99_ms", called.p99}};
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
  // The other side shall find the cluster as this one did.
  if (!options.managed) RETURN_IF_ERROR(driver->Close());
  return json;
}

Report CompareE2e(const Json& plain, const Json& managed) {
  Report report("e2e");
  report.json()["plain"] = plain;
  report.json()["fluxqueue"] = managed;
  report.Section("On one cluster", {"", "Kubernetes alone", "Fluxqueue"});
  const auto row = [&](const std::string& what, const char* batch, const char* figure) {
    report.Row({what, Number(At(plain, batch, figure)), Number(At(managed, batch, figure))});
  };
  row("one-pod Jobs: jobs/s", "one_pod", "jobs_per_second");
  row("one-pod Jobs: API writes a job", "one_pod", "writes_per_job");
  row("gangs: jobs/s", "gangs", "jobs_per_second");
  row("gangs: pods/s", "gangs", "pods_per_second");
  row("gangs: API writes a job", "gangs", "writes_per_job");
  row("idle: created to bound, p50 ms", "single", "p50_ms");
  row("idle: created to bound, p99 ms", "single", "p99_ms");
  row("idle: with the call that creates, p50 ms", "single", "from_call_p50_ms");
  row("idle: with the call that creates, p99 ms", "single", "from_call_p99_ms");
  if (plain.contains("scaled") && managed.contains("scaled")) {
    row("a Deployment's replicas: until all are bound, s", "scaled", "seconds");
    row("a Deployment's replicas: API writes a pod", "scaled", "writes_per_pod");
  }
  AddWrites(report, "API writes for a one-pod Job", plain.at("one_pod"), managed.at("one_pod"));
  AddWrites(report, "API writes for a gang", plain.at("gangs"), managed.at("gangs"));
  for (const auto& [title, key] :
       {std::pair("One-pod Jobs", "one_pod"), std::pair("Gangs", "gangs")}) {
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
