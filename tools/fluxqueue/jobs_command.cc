#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/attempt_store.h"
#include "libs/model/job_state.h"

#include "tools/fluxqueue/cluster_api.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_json.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/time_range.h"
#include "tools/fluxqueue/watch.h"

namespace fluxqueue::cli {
namespace {

using job_store::Job;
using job_store::JobStore;
using nlohmann::json;

struct Options {
  job_store::JobFilter filter{.limit = 200};
  std::string since;
  std::string until;
  WatchOptions watch;

  bool HasRange() const { return !since.empty() || !until.empty(); }
};

absl::Status Complete(const Context& context, Options* options) {
  job_store::JobFilter* filter = &options->filter;
  if (options->HasRange()) {
    ASSIGN_OR_RETURN(const TimeRange range,
                     ParseTimeRange(options->since,
                                    options->until,
                                    context.Now().count(),
                                    {.since_ms = filter->since_ms, .until_ms = filter->until_ms}));
    filter->since_ms = range.since_ms;
    filter->until_ms = range.until_ms;
    filter->ended = true;
  }
  if (filter->state.empty()) return absl::OkStatus();
  const auto state = model::ParseJobState(filter->state);
  if (!state.has_value() || *state == model::JobState::kNone) {
    return InvalidArgument(
        "--state {}: there is no such state; there are {}",
        filter->state,
        fmt::join(model::Names(model::kLiveStates | model::kTerminalStates), ", "));
  }
  if (model::IsTerminal(*state)) filter->ended = true;
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
  const size_t count = job.nodes.size() + job.more_nodes;
  if (count <= 2) return fmt::format("{}", fmt::join(job.nodes, ","));
  return fmt::format("{},{} +{}", job.nodes[0], job.nodes[1], count - 2);
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
  if (context.wide())
    header.insert(header.end(), {"USER", "PRIORITY", "ATTEMPT", "POOL", "ID", "MESSAGE"});
  Table table(std::move(header));
  for (const Job& job : jobs) {
    std::vector<Cell> row = {job.FullName(),
                             job.kind,
                             job.SlotsText(),
                             job.queue,
                             {job.state, StateColour(job.state)},
                             job.position == 0 ? "-" : fmt::format("{}", job.position),
                             job.reason.empty() ? "-" : job.reason,
                             ShortTime(job.start_ms, now),
                             context.wide() && job.more_nodes == 0
                                 ? fmt::format("{}", fmt::join(job.nodes, ","))
                                 : Nodes(job)};
    if (!context.steady) {
      row.emplace_back(Ages(job.created_ms, WaitedUntil(job, now)));
      row.emplace_back(Ages(job.created_ms, now));
    }
    if (context.wide()) {
      row.emplace_back(job.user.empty() ? "-" : job.user);
      row.emplace_back(job.version == 0 ? "-" : fmt::format("{}", job.priority));
      row.emplace_back(fmt::format("{}", job.attempt));
      row.insert(row.end(), {job.pool, job.id, job.message});
    }
    table.Add(std::move(row));
  }
  return table.Render(context.colour);
}

struct Stores {
  JobStore jobs;
  job_store::AttemptStore attempts;
};

struct Listing {
  std::vector<Job> jobs;         // the oldest first
  std::optional<int64_t> total;  // unset: not counted, as that would be a look at years
  bool more = false;             // than are listed
  bool some = false;             // of so many: those listed are not the newest
};

// Those that have left queue.jobs.
absl::Status AddFromAccounting(const job_store::JobFilter& filter,
                               job_store::AttemptStore& store,
                               Listing* listing) {
  listing->total.reset();
  const auto state = model::ParseJobState(filter.state);
  if (state.has_value() && !model::IsTerminal(*state)) return absl::OkStatus();
  bool more = false;
  ASSIGN_OR_RETURN(std::vector<Job> ended, store.Ended(filter, &more));
  std::vector<Job>& jobs = listing->jobs;
  jobs.insert(jobs.end(), ended.begin(), ended.end());
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return a.created_ms < b.created_ms;
  });
  const auto limit = static_cast<size_t>(filter.limit);
  listing->more = listing->more || more || jobs.size() > limit;
  if (jobs.size() > limit) {
    jobs.erase(jobs.begin(), jobs.end() - static_cast<ptrdiff_t>(limit));
  }
  return absl::OkStatus();
}

absl::StatusOr<Listing> Read(const Options& options, Stores& stores) {
  job_store::JobFilter filter = options.filter;
  if (!filter.ended) filter.limit = 0;
  Listing listing;
  int64_t total = 0;
  ASSIGN_OR_RETURN(listing.jobs, stores.jobs.Jobs(filter, &total));
  listing.total = total;
  listing.more = static_cast<int64_t>(listing.jobs.size()) < total;
  if (options.HasRange()) {
    RETURN_IF_ERROR(AddFromAccounting(filter, stores.attempts, &listing));
  }
  RETURN_IF_ERROR(stores.jobs.AddPlaces(&listing.jobs));
  return listing;
}

// What the API server has no filter for, and the order and the number, as the tables would give
// them.
Listing Narrow(const job_store::JobFilter& filter, std::vector<Job> jobs, bool more) {
  std::erase_if(jobs, [&filter](const Job& job) {
    return (!filter.state.empty() && job.state != filter.state) ||
           (!filter.user.empty() && job.user != filter.user);
  });
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return a.created_ms < b.created_ms;
  });
  Listing listing{.jobs = std::move(jobs), .total = {}, .more = more, .some = more};
  const auto limit = static_cast<size_t>(filter.limit);
  if (!more) listing.total = listing.jobs.size();
  if (filter.ended && listing.jobs.size() > limit) {
    listing.jobs.erase(listing.jobs.begin(), listing.jobs.end() - static_cast<ptrdiff_t>(limit));
    listing.more = true;
  }
  return listing;
}

absl::StatusOr<Listing> Read(const Options& options, const ClusterApi& cluster) {
  const job_store::JobFilter& filter = options.filter;
  bool more = false;
  std::string space;
  ASSIGN_OR_RETURN(
      std::vector<Job> jobs,
      cluster.Jobs(
          {.space = filter.space, .queue = filter.queue, .ended = filter.ended}, &more, &space));
  if (space != filter.space) {
    fmt::print(stderr, "of namespace {}, as you may not list jobs of all\n", space);
  }
  return Narrow(filter, std::move(jobs), more);
}

std::string Text(const Context& context, const Options& options, Listing listing) {
  if (context.structured()) {
    json result = {{"more", listing.more}, {"jobs", json::array()}};
    if (listing.total.has_value()) result["total"] = *listing.total;
    for (const Job& job : listing.jobs) result["jobs"].push_back(JobJson(job));
    return context.Structured(result);
  }
  if (listing.jobs.empty()) return fmt::format("no {}jobs\n", options.filter.ended ? "" : "live ");
  const size_t shown = listing.jobs.size();
  std::string text = JobTable(std::move(listing.jobs), context);
  if (!listing.more) return text;
  if (listing.some) {
    return text + fmt::format("some {} of more jobs; -n, --queue narrow them down\n", shown);
  }
  text += listing.total.has_value() ? fmt::format("{} of {} jobs, the newest",
                                                  shown,
                                                  Thousands(static_cast<uint64_t>(*listing.total)))
                                    : fmt::format("the {} newest jobs of that time", shown);
  text += "; --limit shows others, --user, --queue, --state and -n narrow it down\n";
  return text;
}

absl::StatusOr<int> Run(const Context& context, Options options) {
  RETURN_IF_ERROR(Complete(context, &options));
  // Of what has gone from the queue's memory only the tables know.
  std::unique_ptr<ClusterApi> cluster;
  if (!options.HasRange()) {
    ASSIGN_OR_RETURN(cluster, ClusterApi::Reach(context));
  }
  if (cluster != nullptr) {
    const auto show = [&](const Context& view) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(Listing listing, Read(options, *cluster));
      return Text(view, options, std::move(listing));
    };
    return Present(context, options.watch, show);
  }
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  const postgres::Options database = PostgresOptions(config.dsn);
  Stores stores{.jobs = JobStore(database), .attempts = job_store::AttemptStore(database)};
  return Present(context, options.watch, [&](const Context& view) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(Listing listing, Read(options, stores));
    return Text(view, options, std::move(listing));
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
                 {"user", job.user},
                 {"state", job.state},
                 {"attempt", job.attempt},
                 {"reason", job.reason},
                 {"message", job.message},
                 {"slots", job.slots},
                 {"createdMs", job.created_ms},
                 {"startMs", job.start_ms},
                 {"updatedMs", job.updated_ms},
                 {"ended", job.ended},
                 {"nodes", job.nodes}};
  if (job.version != 0) {
    object["version"] = job.version;
    object["priority"] = job.priority;
  }
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
  sub->add_option("--user", options->filter.user, "Only of this user")->type_name("USER");
  sub->add_flag("--all", options->filter.ended, "Also jobs that have ended");
  sub->add_option("--since",
                  options->since,
                  fmt::format("Those that were there since {}; also those that have ended, for as "
                              "long as accounting is kept",
                              kMoments))
      ->type_name("TIME");
  sub->add_option("--until", options->until, "Those that were there before, likewise")
      ->type_name("TIME");
  sub->add_option("--limit",
                  options->filter.limit,
                  "With jobs that have ended: so many, the newest; default: 200")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000).description(""));
  AddWatchOptions(sub, &options->watch);
  sub->footer(
      "Those that hold something come first, then those that wait, by queue, in the order of the "
      "line. POSITION\nis the place in it, REASON why the job waits, START when it has started or "
      "is expected to.\n\n"
      "Examples:\n"
      "  fluxqueue jobs --queue batch --state Pending    who waits in a queue, and why\n"
      "  fluxqueue jobs --watch                          the table, as it changes\n"
      "  fluxqueue jobs --all -o wide                    with those that have ended, all columns\n"
      "  fluxqueue jobs --since 7d --user ann            one user's last week\n"
      "  fluxqueue jobs -o json | jq '.jobs[].id'        for programs");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
