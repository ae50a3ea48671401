#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_json.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using job_store::Job;
using job_store::JobEvent;
using job_store::JobSlot;
using job_store::JobStore;
using nlohmann::json;

constexpr size_t kNearMatches = 5;

struct Options {
  std::string job;
};

// Everything about one job.
struct Story {
  Job job;
  std::vector<JobEvent> events;
  std::vector<JobSlot> slots;
  size_t namesakes = 0;  // older jobs of the same name
};

absl::Status NotThere(JobStore& store, const std::string& wanted) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, store.Names());
  const std::vector<std::string> near = NearMatches(wanted, std::move(names), kNearMatches);
  const std::string hint = near.empty() ? "fluxqueue jobs --all lists them"
                                        : fmt::format("did you mean {}?", fmt::join(near, ", "));
  return MakeStatus(absl::StatusCode::kNotFound, "there is no job {}; {}", wanted, hint);
}

absl::StatusOr<Story> Read(JobStore& store, const std::string& wanted) {
  ASSIGN_OR_RETURN(std::vector<Job> found, store.Find(wanted));
  if (found.empty()) return NotThere(store, wanted);
  Story story;
  std::vector<Job> one = {found.front()};
  if (one[0].id != wanted) {
    for (const Job& other : found) {
      if (other.FullName() != one[0].FullName()) {
        return InvalidArgument("{} may be {} or {}: give the namespace too",
                               wanted,
                               one[0].FullName(),
                               other.FullName());
      }
    }
    story.namesakes = found.size() - 1;
  }
  RETURN_IF_ERROR(store.AddPlaces(&one));
  story.job = std::move(one[0]);
  ASSIGN_OR_RETURN(story.events, store.Events(story.job.id));
  ASSIGN_OR_RETURN(story.slots, store.Slots(story.job));
  return story;
}

json ToJson(const Story& story) {
  json object = JobJson(story.job);
  object["events"] = json::array();
  for (const JobEvent& event : story.events) {
    object["events"].push_back({{"version", event.version},
                                {"timeMs", event.time_ms},
                                {"state", event.state},
                                {"attempt", event.attempt},
                                {"reason", event.reason},
                                {"message", event.message}});
  }
  object["placement"] = json::array();
  for (const JobSlot& slot : story.slots) {
    object["placement"].push_back({{"part", slot.part},
                                   {"slot", slot.slot},
                                   {"node", slot.node},
                                   {"released", slot.released},
                                   {"pod", slot.pod},
                                   {"podState", slot.pod_state}});
  }
  return object;
}

std::string StateLine(const Job& job, bool colour) {
  std::string line = Paint(job.state, StateColour(job.state), colour);
  if (!job.reason.empty()) line += fmt::format(" ({})", job.reason);
  const auto state = model::ParseJobState(job.state);
  if (model::IsClaim(job.kind) && job.state == "Running") {
    line += ", held until its time is over or it is cancelled";
  } else if (state.has_value() && !model::WaitsFor(*state).empty()) {
    line += fmt::format(", waits for {}", model::WaitsFor(*state));
  }
  return line;
}

void PrintHead(const Story& story, const Context& context) {
  const Job& job = story.job;
  const int64_t now = context.Now().count();
  const auto say = [](std::string_view name, const std::string& value) {
    if (!value.empty()) fmt::print("{:<10} {}\n", name, value);
  };
  say("Job", fmt::format("{} {}", job.kind, job.FullName()));
  say("Id", job.id);
  say("Queue", fmt::format("{} (pool {})", job.queue, job.pool));
  say("State", StateLine(job, context.colour));
  say("Message", job.message);
  if (job.position != 0) say("Position", fmt::format("{}", job.position));
  say("Pods", job.SlotsText());
  if (job.priority != 0) say("Priority", fmt::format("{}", job.priority));
  say("Created",
      fmt::format(
          "{} ({} ago)",
          ShortTime(job.created_ms, now),
          ShortDuration(std::chrono::floor<std::chrono::seconds>(Millis(now - job.created_ms)))));
  if (job.start_ms != 0) say("Start", ShortTime(job.start_ms, now));
  if (story.namesakes > 0) {
    say("Note", fmt::format("{} older jobs had this name; this is the newest", story.namesakes));
  }
}

void PrintHistory(const Story& story, const Context& context) {
  const int64_t now = context.Now().count();
  Table table({"TIME", "SINCE", "STATE", "ATTEMPT", "REASON", "MESSAGE"});
  int64_t before = 0;
  for (const JobEvent& event : story.events) {
    table.Add({ShortTime(event.time_ms, now),
               before == 0 ? "" : "+" + ShortDuration(Millis(event.time_ms - before)),
               {event.state, StateColour(event.state)},
               fmt::format("{}", event.attempt),
               event.reason,
               event.message});
    before = event.time_ms;
  }
  fmt::print("\nHistory\n{}", table.Render(context.colour));
}

void PrintSlots(const Story& story, const Context& context) {
  if (story.slots.empty()) return;
  Table table({"SLOT", "NODE", "POD", "STATE"});
  for (const JobSlot& slot : story.slots) {
    const std::string state = !slot.pod_state.empty() ? slot.pod_state
                              : slot.released         ? "released"
                                                      : "held";
    table.Add(
        {slot.part == 0 ? fmt::format("{}", slot.slot) : fmt::format("{}.{}", slot.part, slot.slot),
         slot.node,
         slot.pod.empty() ? "-" : slot.pod,
         {state, slot.released ? Colour::kDim : Colour::kNone}});
  }
  fmt::print("\nNodes of attempt {}\n{}", story.job.attempt, table.Render(context.colour));
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  JobStore store(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const Story story, Read(store, options.job));
  if (context.json()) {
    fmt::print("{}\n", ToJson(story).dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  PrintHead(story, context);
  PrintHistory(story, context);
  PrintSlots(story, context);
  return 0;
}

}  // namespace

void RegisterJob(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("job", "Show one job: what it is, where it is, and its history");
  auto options = std::make_shared<Options>();
  sub->add_option("JOB", options->job, "Its id, namespace/name, or name")->required();
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
