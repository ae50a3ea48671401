#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_json.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using job_store::Job;
using job_store::JobStore;
using nlohmann::json;

constexpr int64_t kEndedShown = 200;

struct Options {
  job_store::JobFilter filter;
};

absl::Status Check(Options& options) {
  if (options.filter.state.empty()) return absl::OkStatus();
  const auto state = model::ParseJobState(options.filter.state);
  if (!state.has_value() || *state == model::JobState::kNone) {
    return InvalidArgument(
        "--state {}: there is no such state; there are {}",
        options.filter.state,
        fmt::join(model::Names(model::kLiveStates | model::kTerminalStates), ", "));
  }
  if (model::IsTerminal(*state)) options.filter.ended = true;
  return absl::OkStatus();
}

bool HasStarted(const Job& job) {
  return job.state == "Running" || job.ended;
}

// From its creation to its start; of one that has not started, until now or its end.
std::string Wait(const Job& job, int64_t now_ms) {
  int64_t until = now_ms;
  if (job.ended) until = job.updated_ms;
  if (HasStarted(job) && job.start_ms != 0) until = job.start_ms;
  return ShortDuration(std::chrono::floor<std::chrono::seconds>(Millis(until - job.created_ms)));
}

std::string Nodes(const Job& job) {
  if (job.nodes.empty()) return "-";
  if (job.nodes.size() <= 2) return fmt::format("{}", fmt::join(job.nodes, ","));
  return fmt::format("{},{} +{}", job.nodes[0], job.nodes[1], job.nodes.size() - 2);
}

void Print(std::vector<Job> jobs, const Context& context) {
  // Those that hold something or have ended first, then the line in its order.
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return std::make_tuple(a.position != 0, a.position != 0 ? a.queue : "", a.position) <
           std::make_tuple(b.position != 0, b.position != 0 ? b.queue : "", b.position);
  });
  const int64_t now = context.Now().count();
  Table table({"JOB",
               "KIND",
               "PODS",
               "QUEUE",
               "STATE",
               "POSITION",
               "REASON",
               "START",
               "NODES",
               "WAIT",
               "AGE"});
  for (const Job& job : jobs) {
    table.Add(
        {job.FullName(),
         job.kind,
         job.SlotsText(),
         job.queue,
         {job.state, StateColour(job.state)},
         job.position == 0 ? "-" : fmt::format("{}", job.position),
         job.reason.empty() ? "-" : job.reason,
         ShortTime(job.start_ms, now),
         Nodes(job),
         Wait(job, now),
         ShortDuration(std::chrono::floor<std::chrono::seconds>(Millis(now - job.created_ms)))});
  }
  fmt::print("{}", table.Render(context.colour));
}

absl::StatusOr<int> Run(const Context& context, Options options) {
  RETURN_IF_ERROR(Check(options));
  if (options.filter.ended) options.filter.limit = kEndedShown;
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  JobStore store(PostgresOptions(config.dsn));
  int64_t total = 0;
  ASSIGN_OR_RETURN(std::vector<Job> jobs, store.Jobs(options.filter, &total));
  RETURN_IF_ERROR(store.AddPlaces(&jobs));
  const auto shown = static_cast<int64_t>(jobs.size());
  if (context.json()) {
    json result = {{"total", total}, {"jobs", json::array()}};
    for (const Job& job : jobs) result["jobs"].push_back(JobJson(job));
    fmt::print("{}\n", result.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  if (jobs.empty()) {
    fmt::print("no {}jobs\n", options.filter.ended ? "" : "live ");
    return 0;
  }
  Print(std::move(jobs), context);
  if (shown < total) {
    fmt::print("{} of {} jobs, the newest; --queue, --state and -n narrow it down\n",
               shown,
               Thousands(static_cast<uint64_t>(total)));
  }
  return 0;
}

}  // namespace

json JobJson(const Job& job) {
  json object = {{"id", job.id},
                 {"pool", job.pool},
                 {"queue", job.queue},
                 {"namespace", job.space},
                 {"name", job.name},
                 {"kind", job.kind},
                 {"state", job.state},
                 {"version", job.version},
                 {"attempt", job.attempt},
                 {"reason", job.reason},
                 {"message", job.message},
                 {"slots", job.slots},
                 {"priority", job.priority},
                 {"createdMs", job.created_ms},
                 {"startMs", job.start_ms},
                 {"updatedMs", job.updated_ms},
                 {"ended", job.ended},
                 {"nodes", job.nodes}};
  if (job.most_slots != 0) object["mostSlots"] = job.most_slots;
  if (job.position != 0) object["position"] = job.position;
  return object;
}

void RegisterJobs(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand(
      "jobs", "List jobs: those that live, with --all also those that have ended");
  auto options = std::make_shared<Options>();
  sub->add_option("--queue", options->filter.queue, "Only of this queue")->type_name("QUEUE");
  sub->add_option("--state", options->filter.state, "Only in this state")->type_name("STATE");
  sub->add_option("-n,--namespace", options->filter.space, "Only of this namespace")
      ->type_name("NAMESPACE");
  sub->add_flag("--all", options->filter.ended, "Also jobs that have ended (the newest 200)");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
