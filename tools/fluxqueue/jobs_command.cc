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
#include "tools/fluxqueue/watch.h"

namespace fluxqueue::cli {
namespace {

using job_store::Job;
using job_store::JobStore;
using nlohmann::json;

constexpr int64_t kEndedShown = 200;

struct Options {
  job_store::JobFilter filter;
  WatchOptions watch;
};

absl::Status Complete(job_store::JobFilter* filter) {
  if (filter->ended) filter->limit = kEndedShown;
  if (filter->state.empty()) return absl::OkStatus();
  const auto state = model::ParseJobState(filter->state);
  if (!state.has_value() || *state == model::JobState::kNone) {
    return InvalidArgument(
        "--state {}: there is no such state; there are {}",
        filter->state,
        fmt::join(model::Names(model::kLiveStates | model::kTerminalStates), ", "));
  }
  if (model::IsTerminal(*state)) {
    filter->ended = true;
    filter->limit = kEndedShown;
  }
  return absl::OkStatus();
}

bool HasStarted(const Job& job) {
  return job.state == "Running" || job.ended;
}

// A job waits from its creation to its start; one that has not started, until now or its end.
int64_t WaitedUntil(const Job& job, int64_t now_ms) {
  if (HasStarted(job) && job.start_ms != 0) return job.start_ms;
  return job.ended ? job.updated_ms : now_ms;
}

std::string Nodes(const Job& job) {
  if (job.nodes.empty()) return "-";
  if (job.nodes.size() <= 2) return fmt::format("{}", fmt::join(job.nodes, ","));
  return fmt::format("{},{} +{}", job.nodes[0], job.nodes[1], job.nodes.size() - 2);
}

std::string Ages(int64_t from_ms, int64_t until_ms) {
  return ShortDuration(std::chrono::floor<std::chrono::seconds>(Millis(until_ms - from_ms)));
}

std::string JobTable(std::vector<Job> jobs, const Context& context) {
  // Those that hold something or have ended first, then the line in its order.
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return std::make_tuple(a.position != 0, a.position != 0 ? a.queue : "", a.position) <
           std::make_tuple(b.position != 0, b.position != 0 ? b.queue : "", b.position);
  });
  const int64_t now = context.Now().count();
  std::vector<std::string> header = {
      "JOB", "KIND", "PODS", "QUEUE", "STATE", "POSITION", "REASON", "START", "NODES"};
  if (!context.steady) header.insert(header.end(), {"WAIT", "AGE"});
  if (context.wide()) header.insert(header.end(), {"PRIORITY", "ATTEMPT", "POOL", "ID", "MESSAGE"});
  Table table(std::move(header));
  for (const Job& job : jobs) {
    std::vector<Cell> row = {
        job.FullName(),
        job.kind,
        job.SlotsText(),
        job.queue,
        {job.state, StateColour(job.state)},
        job.position == 0 ? "-" : fmt::format("{}", job.position),
        job.reason.empty() ? "-" : job.reason,
        ShortTime(job.start_ms, now),
        context.wide() ? fmt::format("{}", fmt::join(job.nodes, ",")) : Nodes(job)};
    if (!context.steady) {
      row.emplace_back(Ages(job.created_ms, WaitedUntil(job, now)));
      row.emplace_back(Ages(job.created_ms, now));
    }
    if (context.wide()) {
      row.emplace_back(fmt::format("{}", job.priority));
      row.emplace_back(fmt::format("{}", job.attempt));
      row.insert(row.end(), {job.pool, job.id, job.message});
    }
    table.Add(std::move(row));
  }
  return table.Render(context.colour);
}

absl::StatusOr<std::string> Text(const Context& context,
                                 const job_store::JobFilter& filter,
                                 JobStore& store) {
  int64_t total = 0;
  ASSIGN_OR_RETURN(std::vector<Job> jobs, store.Jobs(filter, &total));
  RETURN_IF_ERROR(store.AddPlaces(&jobs));
  const auto shown = static_cast<int64_t>(jobs.size());
  if (context.structured()) {
    json result = {{"total", total}, {"jobs", json::array()}};
    for (const Job& job : jobs) result["jobs"].push_back(JobJson(job));
    return context.Structured(result);
  }
  if (jobs.empty()) return fmt::format("no {}jobs\n", filter.ended ? "" : "live ");
  std::string text = JobTable(std::move(jobs), context);
  if (shown < total) {
    text += fmt::format("{} of {} jobs, the newest; --queue, --state and -n narrow it down\n",
                        shown,
                        Thousands(static_cast<uint64_t>(total)));
  }
  return text;
}

absl::StatusOr<int> Run(const Context& context, Options options) {
  RETURN_IF_ERROR(Complete(&options.filter));
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  JobStore store(PostgresOptions(config.dsn));
  return Present(context, options.watch, [&](const Context& view) {
    return Text(view, options.filter, store);
  });
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
  sub->group("Jobs");
  auto options = std::make_shared<Options>();
  sub->add_option("--queue", options->filter.queue, "Only of this queue")->type_name("QUEUE");
  sub->add_option("--state", options->filter.state, "Only in this state")->type_name("STATE");
  sub->add_option("-n,--namespace", options->filter.space, "Only of this namespace")
      ->type_name("NAMESPACE");
  sub->add_flag("--all", options->filter.ended, "Also jobs that have ended (the newest 200)");
  AddWatchOptions(sub, &options->watch);
  sub->footer(
      "Those that hold something come first, then those that wait, by queue, in the order of the "
      "line. POSITION\nis the place in it, REASON why the job waits, START when it has started or "
      "is expected to.\n\n"
      "Examples:\n"
      "  fluxqueue jobs --queue batch --state Pending    who waits in a queue, and why\n"
      "  fluxqueue jobs --watch                          the table, as it changes\n"
      "  fluxqueue jobs --all -o wide                    with those that have ended, all columns\n"
      "  fluxqueue jobs -o json | jq '.jobs[].id'        for programs");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
