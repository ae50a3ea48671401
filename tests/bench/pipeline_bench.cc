#include "tests/bench/pipeline_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/connection.h"
#include "tests/bench/await.h"
#include "tests/bench/fake_cluster.h"
#include "tests/bench/probe.h"
#include "tests/bench/restart.h"

namespace fluxqueue::bench {
namespace {

constexpr double kWantedRate = 3000;
constexpr double kWantedKafkaBytes = 2500;
constexpr double kWantedWalKilobytes = 8;
constexpr double kWantedMegabytes = 150;
// Of those that watch the cluster, together, with 50,000 pods on 5,000 nodes.
constexpr double kWantedWatching = 400;
constexpr double kWantedRestartSeconds = 5;
constexpr int kWarmUp = 200;
constexpr int kPacedSeconds = 10;
constexpr int kRounds = 4;
constexpr int64_t kRunMs = 5000;
constexpr double kWantedUse = 0.93;
constexpr std::chrono::milliseconds kLook{250};
constexpr std::array kStates = {"Pending", "Allocated", "Bound", "Running", "Succeeded"};

double CpuSeconds(const StackCost& cost) {
  double sum = 0;
  for (const auto& [name, one] : cost.services) sum += one.usage.cpu_seconds;
  for (const auto& [name, usage] : cost.others) sum += usage.cpu_seconds;
  return sum;
}

// When each state was reached, of one job.
using Steps = std::array<int64_t, kStates.size()>;

class PipelineBench {
 public:
  explicit PipelineBench(const PipelineOptions& options)
      : options_(options),
        probe_(options.stack),
        server_("http://127.0.0.1:" + FirstLine(options.stack + "/fake-apiserver.port")),
        db_({.dsn = FirstLine(options.stack + "/postgres/dsn"),
             .application = "bench",
             .schema = "queue"}),
        report_("pipeline") {}

  absl::StatusOr<Report> Run();

 private:
  absl::Status AwaitInventory();
  absl::Status Burst();
  absl::Status Paced();
  absl::Status Full();
  absl::Status Running();
  absl::Status Waiting();
  absl::Status Restarts();
  absl::StatusOr<StackCost> AddMemory(const std::string& title, const std::string& key);

  absl::Status Submit(const std::string& prefix, int count, int rate, int cpu, int64_t run_ms);
  absl::StatusOr<std::vector<JobTimes>> Submitted(const std::string& prefix);
  // Until `count` more jobs than `before` have ended and nothing is on its way any more.
  absl::Status AwaitEnds(int64_t ended);
  absl::Status AwaitQuiet();
  absl::Status Await(const std::string& what, const std::function<absl::StatusOr<bool>()>& done);
  absl::StatusOr<int64_t> Count(const std::string& query);
  absl::StatusOr<int64_t> Ended() {
    return Count("SELECT count(*) FROM queue.jobs WHERE state = 'Succeeded'");
  }
  absl::StatusOr<std::map<std::string, Steps>> ReadSteps();
  absl::Status CheckComplete(int64_t jobs);
  void AddStages(const std::string& title,
                 const std::string& key,
                 const std::vector<JobTimes>& jobs,
                 const std::map<std::string, Steps>& steps);

  const PipelineOptions options_;
  const StackProbe probe_;
  const std::string server_;
  postgres::Connection db_;
  Report report_;
  double rate_ = 0;
  int64_t submitted_ = 0;
};

absl::StatusOr<int64_t> PipelineBench::Count(const std::string& query) {
  int64_t count = 0;
  RETURN_IF_ERROR(db_.Query([&](pqxx::transaction_base& tx) {
    count = tx.exec1(query)[0].as<int64_t>();
    return absl::OkStatus();
  }));
  return count;
}

absl::Status PipelineBench::Await(const std::string& what,
                                  const std::function<absl::StatusOr<bool>()>& done) {
  const std::chrono::seconds patience(options_.timeout_s);
  ASSIGN_OR_RETURN(const bool reached, bench::Await(patience, kLook, done));
  if (reached) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                    "waited {} s for {} in vain; the logs are in {}/logs",
                    patience.count(),
                    what,
                    options_.stack);
}

absl::Status PipelineBench::AwaitInventory() {
  return Await("the matcher to know the nodes", [this]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t nodes,
                     Count("SELECT count(*) FROM matcher.graph_nodes WHERE present"));
    ASSIGN_OR_RETURN(const int64_t queues, Count("SELECT count(*) FROM queue.queues"));
    return nodes == options_.nodes && queues > 0;
  });
}

absl::Status PipelineBench::Submit(
    const std::string& prefix, int count, int rate, int cpu, int64_t run_ms) {
  submitted_ += count;
  return Fetch(server_,
               fmt::format("/bench/submit?prefix={}&count={}&rate={}&cpu={}&run={}",
                           prefix,
                           count,
                           rate,
                           cpu,
                           run_ms),
               "POST")
      .status();
}

absl::StatusOr<std::vector<JobTimes>> PipelineBench::Submitted(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::string text, Fetch(server_, "/bench/jobs?prefix=" + prefix));
  std::istringstream lines(text);
  std::vector<JobTimes> jobs;
  for (JobTimes job; lines >> job.uid >> job.created >> job.bound >> job.ended;) {
    jobs.push_back(job);
  }
  return jobs;
}

// Asked of the fake API server until its side is done: that costs next to nothing, other than
// counting rows.
absl::Status PipelineBench::AwaitEnds(int64_t ended) {
  const std::string wanted = fmt::format("\"complete\":{},", ended);
  RETURN_IF_ERROR(
      Await(fmt::format("{} jobs to be complete", ended), [&]() -> absl::StatusOr<bool> {
        ASSIGN_OR_RETURN(const std::string state, Fetch(server_, "/bench/state"));
        return state.find(wanted) != std::string::npos;
      }));
  RETURN_IF_ERROR(Await(fmt::format("{} jobs to have ended", ended), [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t now, Ended());
    return now >= ended;
  }));
  return AwaitQuiet();
}

// Also the FluxJobs are written: they are part of what a job costs.
absl::Status PipelineBench::AwaitQuiet() {
  double last = -1;
  int still = 0;
  return Await("the services to be done", [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool quiet, probe_.Quiet());
    ASSIGN_OR_RETURN(const double writes, probe_.Metric("queue", "fluxqueue_api_requests_total"));
    still = quiet && writes == last ? still + 1 : 0;
    last = writes;
    return still >= 6;
  });
}

absl::StatusOr<std::map<std::string, Steps>> PipelineBench::ReadSteps() {
  std::string columns;
  for (const char* state : kStates) {
    columns += fmt::format(", coalesce(min(time_ms) FILTER (WHERE state = '{}'), 0)", state);
  }
  std::map<std::string, Steps> steps;
  RETURN_IF_ERROR(db_.Query([&](pqxx::transaction_base& tx) {
    const pqxx::result rows =
        tx.exec("SELECT job_id" + columns + " FROM queue.job_events GROUP BY job_id");
    for (const auto& row : rows) {
      Steps& job = steps[row[0].as<std::string>()];
      for (size_t i = 0; i < job.size(); ++i) {
        job[i] = row[static_cast<pqxx::row_size_type>(i) + 1].as<int64_t>();
      }
    }
    return absl::OkStatus();
  }));
  return steps;
}

absl::Status PipelineBench::CheckComplete(int64_t jobs) {
  const auto expect =
      [&](const std::string& what, int64_t wanted, const std::string& query) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t found, Count(query));
    if (found != wanted) {
      report_.Problem(fmt::format("{}: {}, should be {}", what, found, wanted));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(expect("jobs that have succeeded",
                         jobs,
                         "SELECT count(*) FROM queue.jobs WHERE state = 'Succeeded'"));
  RETURN_IF_ERROR(
      expect("jobs whose events are not the versions 1 to the job's",
             0,
             "SELECT count(*) FROM queue.jobs j LEFT JOIN (SELECT job_id, count(*) AS events, "
             "min(version) AS "
             "first, max(version) AS last FROM queue.job_events GROUP BY job_id) e USING (job_id) "
             "WHERE e.events "
             "IS NULL OR e.first <> 1 OR e.last <> j.version OR e.events <> j.version"));
  RETURN_IF_ERROR(expect("allocations that are still held",
                         0,
                         "SELECT count(*) FROM matcher.allocations WHERE NOT released"));
  RETURN_IF_ERROR(
      expect("allocations that were made", jobs, "SELECT count(*) FROM matcher.allocations"));
  RETURN_IF_ERROR(expect("slots that are left", 0, "SELECT count(*) FROM binder.slots"));
  return expect(
      "workloads that admission still has", 0, "SELECT count(*) FROM admission.workloads");
}

void PipelineBench::AddStages(const std::string& title,
                              const std::string& key,
                              const std::vector<JobTimes>& jobs,
                              const std::map<std::string, Steps>& steps) {
  std::vector<double> pending, allocated, called, bound, ran, ended, whole;
  const auto add = [](std::vector<double>& stage, int64_t from, int64_t to) {
    if (from != 0 && to != 0) stage.push_back(static_cast<double>(to - from));
  };
  for (const JobTimes& job : jobs) {
    const auto found = steps.find(job.uid);
    if (found == steps.end()) continue;
    const Steps& at = found->second;
    add(pending, job.created, at[0]);
    add(allocated, at[0], at[1]);
    add(called, at[1], job.bound);
    add(bound, job.bound, at[2]);
    add(ran, job.bound, at[3]);
    add(ended, job.ended, at[4]);
    add(whole, job.created, at[4]);
  }
  report_.AddLatencies(title,
                       key,
                       {{"created -> Pending", PercentilesOf(pending)},
                        {"Pending -> Allocated", PercentilesOf(allocated)},
                        {"Allocated -> pod bound", PercentilesOf(called)},
                        {"pod bound -> Bound", PercentilesOf(bound)},
                        {"pod runs -> Running", PercentilesOf(ran)},
                        {"Job complete -> Succeeded", PercentilesOf(ended)},
                        {"created -> Succeeded", PercentilesOf(whole)}});
}

absl::Status PipelineBench::Burst() {
  ASSIGN_OR_RETURN(const StackCost before, probe_.Read());
  RETURN_IF_ERROR(Submit("burst", options_.jobs, 0, 50, 0));
  RETURN_IF_ERROR(AwaitEnds(submitted_));
  ASSIGN_OR_RETURN(const StackCost after, probe_.Read());
  RETURN_IF_ERROR(CheckComplete(submitted_));
  ASSIGN_OR_RETURN(const std::vector<JobTimes> jobs, Submitted("burst"));
  ASSIGN_OR_RETURN(const auto steps, ReadSteps());
  int64_t first = 0, last = 0;
  std::array<int64_t, kStates.size()> seen{};
  for (const JobTimes& job : jobs) {
    const auto found = steps.find(job.uid);
    if (found == steps.end()) continue;
    const Steps& at = found->second;
    first = first == 0 ? job.created : std::min(first, job.created);
    last = std::max(last, at.back());
    for (size_t i = 0; i < at.size(); ++i) seen[i] += at[i] != 0 ? 1 : 0;
  }
  const double seconds = static_cast<double>(last - first) / 1000;
  rate_ = seconds > 0 ? static_cast<double>(jobs.size()) / seconds : 0;
  report_.Section(fmt::format("{} one-pod jobs at once, {} nodes", options_.jobs, options_.nodes),
                  {"", ""});
  report_.Row({"jobs/s, first submission to last end", Number(rate_)});
  report_.Row({"seconds", Number(seconds)});
  const StackCost cost = after - before;
  report_.Row({"jobs/s that the CPU they took would allow on 2 cores of their own",
               Number(2 * static_cast<double>(options_.jobs) / CpuSeconds(cost))});
  // A pod that ends before the binder has told of its binding makes a job that was never Bound or
  // Running.
  for (size_t i = 0; i < kStates.size(); ++i) {
    report_.Row({fmt::format("jobs that were {}", kStates[i]), fmt::format("{}", seen[i])});
    report_.json()["burst_states"][kStates[i]] = seen[i];
  }
  report_.json()["burst"] = {{"jobs", options_.jobs},
                             {"nodes", options_.nodes},
                             {"seconds", seconds},
                             {"jobs_per_second", rate_},
                             {"cpu_seconds", CpuSeconds(cost)}};
  report_.AddCost("Burst", "burst", cost, static_cast<double>(options_.jobs), seconds);
  AddStages(
      "Burst: milliseconds in each stage, most of it waiting", "burst_latencies", jobs, steps);
  const double jobs_made = options_.jobs;
  report_.Target("jobs through all states", rate_, true, kWantedRate, "jobs/s");
  report_.Target(
      "Kafka's log", cost.kafka_bytes / jobs_made, false, kWantedKafkaBytes, "bytes a job");
  report_.Target("PostgreSQL's WAL",
                 cost.wal_bytes / 1000 / jobs_made,
                 false,
                 kWantedWalKilobytes,
                 "KB a job");
  return absl::OkStatus();
}

// What a job takes when it does not wait for others.
absl::Status PipelineBench::Paced() {
  const int rate = std::max(10, static_cast<int>(rate_ / 2));
  ASSIGN_OR_RETURN(const StackCost before, probe_.Read());
  RETURN_IF_ERROR(Submit("paced", rate * kPacedSeconds, rate, 50, 0));
  RETURN_IF_ERROR(AwaitEnds(submitted_));
  ASSIGN_OR_RETURN(const StackCost after, probe_.Read());
  ASSIGN_OR_RETURN(const std::vector<JobTimes> jobs, Submitted("paced"));
  ASSIGN_OR_RETURN(const auto steps, ReadSteps());
  report_.json()["paced"] = {{"jobs_per_second", rate}};
  report_.AddCost(fmt::format("At {} jobs/s", rate),
                  "paced",
                  after - before,
                  static_cast<double>(jobs.size()),
                  kPacedSeconds);
  AddStages(fmt::format("At {} jobs/s: milliseconds in each stage", rate),
            "paced_latencies",
            jobs,
            steps);
  return absl::OkStatus();
}

// Each job takes a node for five seconds, and there are several for each node: how much of the time
// in which all nodes could be taken they are. What is missing is the way from an end to the next
// job's start.
absl::Status PipelineBench::Full() {
  const int jobs = kRounds * options_.nodes;
  ASSIGN_OR_RETURN(const StackCost before, probe_.Read());
  RETURN_IF_ERROR(Submit("full", jobs, 0, kNodeCpu * 1000, kRunMs));
  RETURN_IF_ERROR(AwaitEnds(submitted_));
  ASSIGN_OR_RETURN(const StackCost after, probe_.Read());
  ASSIGN_OR_RETURN(std::vector<JobTimes> times, Submitted("full"));
  std::ranges::sort(times, {}, &JobTimes::bound);
  const int64_t from = times[static_cast<size_t>(options_.nodes) - 1].bound;
  const int64_t until = times.back().bound;
  int64_t taken = 0;
  for (const JobTimes& job : times) {
    taken += std::max<int64_t>(0, std::min(job.ended, until) - std::max(job.bound, from));
  }
  const double use = static_cast<double>(taken) /
                     static_cast<double>(std::max<int64_t>(1, until - from) * options_.nodes);
  report_.Section(
      fmt::format(
          "Full: {} jobs of {} s, a node each, on {} nodes", jobs, kRunMs / 1000, options_.nodes),
      {"", ""});
  report_.Row({"of their time the nodes are taken", Number(use)});
  report_.json()["full"] = {{"use", use}};
  report_.AddCost("Full", "full", after - before, jobs, static_cast<double>(until - from) / 1000);
  report_.Target("a full cluster's nodes are taken", use, true, kWantedUse, "of their time");
  return absl::OkStatus();
}

absl::StatusOr<StackCost> PipelineBench::AddMemory(const std::string& title,
                                                   const std::string& key) {
  ASSIGN_OR_RETURN(StackCost cost, probe_.Read());
  report_.Section(title, {"", "RSS MB", "peak MB"});
  for (const auto& [name, one] : cost.services) {
    report_.Row({name, Number(one.usage.rss_mb), Number(one.usage.peak_mb)});
    report_.json()[key][name] = {{"rss_mb", one.usage.rss_mb}, {"peak_mb", one.usage.peak_mb}};
  }
  return cost;
}

// Small pods, several on a node, that do not end.
absl::Status PipelineBench::Running() {
  RETURN_IF_ERROR(Submit("running", options_.running, 0, 50, kForEver));
  RETURN_IF_ERROR(Await("the pods to run", [this]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t running,
                     Count("SELECT count(*) FROM queue.jobs WHERE state = 'Running'"));
    return running == options_.running;
  }));
  ASSIGN_OR_RETURN(
      StackCost cost,
      AddMemory(fmt::format("{} pods run on {} nodes", options_.running, options_.nodes),
                "running"));
  double watching = 0;
  for (const char* name : {"admission", "binder", "cleanup"}) {
    watching += cost.services[name].usage.peak_mb;
  }
  report_.Target(
      "admission, binder and cleanup at their peaks", watching, false, kWantedWatching, "MB");
  return absl::OkStatus();
}

// Every node is taken by jobs that do not end; all others wait.
absl::Status PipelineBench::Waiting() {
  const int holders = options_.nodes * options_.per_node;
  RETURN_IF_ERROR(Submit("holder", holders, 0, kNodeCpu * 1000 / options_.per_node, kForEver));
  RETURN_IF_ERROR(Await("the nodes to be taken", [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t running,
                     Count("SELECT count(*) FROM queue.jobs WHERE state = 'Running'"));
    return running == holders;
  }));
  RETURN_IF_ERROR(Submit("waiting", options_.waiting, 0, kNodeCpu * 1000, 0));
  RETURN_IF_ERROR(Await("the jobs to wait", [this]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t pending,
                     Count("SELECT count(*) FROM queue.jobs WHERE state = 'Pending'"));
    return pending == options_.waiting;
  }));
  // Their FluxJobs too; positions are then written anew for ever, so that it is never quite quiet.
  RETURN_IF_ERROR(Await("their FluxJobs", [this]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const std::string state, Fetch(server_, "/bench/state"));
    ASSIGN_OR_RETURN(const double left_out,
                     probe_.Metric("queue", "fluxqueue_fluxjobs_left_out_total"));
    const int64_t wanted = submitted_ - static_cast<int64_t>(left_out);
    return state.find(fmt::format("\"fluxjobs\":{}}}", wanted)) != std::string::npos;
  }));
  ASSIGN_OR_RETURN(const StackCost cost,
                   AddMemory(fmt::format("{} jobs in the system: {} run, {} wait",
                                         holders + options_.waiting,
                                         holders,
                                         options_.waiting),
                             "waiting"));
  double most = 0;
  for (const auto& [name, one] : cost.services) {
    most = std::max({most, one.usage.rss_mb, one.usage.peak_mb});
  }
  report_.Target("the largest service, at its peak", most, false, kWantedMegabytes, "MB");
  return absl::OkStatus();
}

// Each is killed once, with all that the phases before have left.
absl::Status PipelineBench::Restarts() {
  report_.Section("Killed and started again", {"", "ready after s"});
  double slowest = 0;
  for (const char* service : {"admission", "queue", "matcher", "binder", "cleanup"}) {
    ASSIGN_OR_RETURN(
        const double seconds,
        RestartSeconds(options_.stack, service, std::chrono::seconds(options_.timeout_s)));
    report_.Row({service, Number(seconds)});
    report_.json()["restart_seconds"][service] = seconds;
    slowest = std::max(slowest, seconds);
  }
  report_.Target("ready after a restart", slowest, false, kWantedRestartSeconds, "s");
  return absl::OkStatus();
}

absl::StatusOr<Report> PipelineBench::Run() {
  RETURN_IF_ERROR(AwaitInventory());
  // Connections, statements and caches are there before it counts.
  RETURN_IF_ERROR(Submit("warmup", kWarmUp, 0, 50, 0));
  RETURN_IF_ERROR(AwaitEnds(submitted_));
  RETURN_IF_ERROR(Burst());
  RETURN_IF_ERROR(Paced());
  RETURN_IF_ERROR(Full());
  if (options_.running > 0) {
    RETURN_IF_ERROR(Running());
  } else if (options_.waiting > 0) {
    RETURN_IF_ERROR(Waiting());
  }
  RETURN_IF_ERROR(Restarts());
  return std::move(report_);
}

}  // namespace

absl::StatusOr<Report> RunPipeline(const PipelineOptions& options) {
  return PipelineBench(options).Run();
}

}  // namespace fluxqueue::bench
