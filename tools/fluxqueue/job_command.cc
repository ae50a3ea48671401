#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"
#include "libs/visibility_json/visibility_json.h"

#include "tools/fluxqueue/cluster_api.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_json.h"
#include "tools/fluxqueue/job_trace.h"
#include "tools/fluxqueue/log_events.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/watch.h"

namespace fluxqueue::cli {
namespace {

using google::protobuf::util::TimeUtil;
using job_store::Job;
using job_store::JobEvent;
using job_store::JobSlot;
using job_store::JobStore;
using nlohmann::json;

constexpr size_t kNearMatches = 5;

struct Options {
  std::string job;
  bool trace = false;
  WatchOptions watch;
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

absl::StatusOr<Story> Read(const ClusterApi& cluster, const std::string& wanted) {
  ASSIGN_OR_RETURN(const queue::v1::GetJobResponse answer, cluster.Job(wanted));
  Story story{.job = FromMessage(answer.job()), .events = {}, .slots = {}};
  for (const auto& transition : answer.history()) {
    story.events.push_back({.version = static_cast<int64_t>(transition.version()),
                            .time_ms = TimeUtil::TimestampToMilliseconds(transition.time()),
                            .state = visibility::StateName(transition.state()),
                            .attempt = transition.attempt(),
                            .reason = transition.reason(),
                            .message = transition.message()});
  }
  for (const auto& slot : answer.slots()) {
    story.slots.push_back({.slot = slot.slot(), .node = slot.node(), .released = slot.released()});
    std::vector<std::string>& nodes = story.job.nodes;
    if (std::find(nodes.begin(), nodes.end(), slot.node()) == nodes.end()) {
      nodes.push_back(slot.node());
    }
  }
  if (answer.job().state() == queue::v1::STATE_PENDING) {
    ASSIGN_OR_RETURN(const queue::v1::ExplainResponse place, cluster.Explain(answer.job()));
    story.job.position = static_cast<size_t>(place.position());
  }
  return story;
}

json ToJson(const Story& story) {
  json object = JobJson(story.job);
  object["eventsBefore"] = job_store::LeftOut(story.events);
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

std::string Head(const Story& story, const Context& context) {
  const Job& job = story.job;
  const int64_t now = context.Now().count();
  std::string text;
  const auto say = [&text](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<10} {}\n", name, value);
  };
  say("Job", fmt::format("{} {}", job.kind, job.FullName()));
  say("Id", job.id);
  say("Queue", fmt::format("{} (pool {})", job.queue, job.pool));
  say("State", StateLine(job, context.colour));
  say("Message", job.message);
  if (job.position != 0) say("Position", fmt::format("{}", job.position));
  say("Pods", job.SlotsText());
  if (job.priority != 0) say("Priority", fmt::format("{}", job.priority));
  const Millis age = std::chrono::floor<std::chrono::seconds>(Millis(now - job.created_ms));
  say("Created",
      ShortTime(job.created_ms, now) +
          (context.steady ? "" : fmt::format(" ({} ago)", ShortDuration(age))));
  if (job.start_ms != 0) say("Start", ShortTime(job.start_ms, now));
  if (story.namesakes > 0) {
    say("Note", fmt::format("{} older jobs had this name; this is the newest", story.namesakes));
  }
  return text;
}

std::string History(const Story& story, const Context& context) {
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
  const int64_t left_out = job_store::LeftOut(story.events);
  const std::string before_them =
      left_out == 0 ? "" : fmt::format("({} earlier ones are left out)\n", left_out);
  return fmt::format("\nHistory\n{}{}", before_them, table.Render(context.colour));
}

std::string Slots(const Story& story, const Context& context) {
  if (story.slots.empty()) return "";
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
  return fmt::format("\nNodes of attempt {}\n{}", story.job.attempt, table.Render(context.colour));
}

// The stages of the job, from its history and its pool's log as long as it lived.
absl::StatusOr<std::vector<Stage>> ReadStages(const SystemConfig& config, const Story& story) {
  JobTrace trace(story.job, story.events);
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, story.job.pool));
  RETURN_IF_ERROR(ReadLog(config.brokers,
                          {{kafka::TopicNames().pool, pools.at(story.job.pool)}},
                          Millis(story.job.created_ms),
                          [&](const LogRecord& record) {
                            trace.Fold(record.line.message, record.line.time);
                            return absl::OkStatus();
                          }));
  return trace.Stages();
}

json ToJson(const std::vector<Stage>& stages) {
  json result = json::array();
  for (const Stage& stage : stages) {
    result.push_back({{"stage", stage.name},
                      {"fromMs", stage.from_ms},
                      {"untilMs", stage.until_ms == 0 ? json() : json(stage.until_ms)},
                      {"detail", stage.detail},
                      {"within", stage.within}});
  }
  return result;
}

absl::StatusOr<std::string> TraceText(const Context& context,
                                      const SystemConfig& config,
                                      const Story& story) {
  ASSIGN_OR_RETURN(const std::vector<Stage> stages, ReadStages(config, story));
  if (context.structured()) {
    return context.Structured({{"id", story.job.id}, {"stages", ToJson(stages)}});
  }
  return fmt::format("{} {} ({}): {}\n\n{}",
                     story.job.kind,
                     story.job.FullName(),
                     story.job.id,
                     StateLine(story.job, context.colour),
                     DrawWaterfall(stages, context.Now().count(), context.width, context.colour));
}

std::string TextOf(const Context& context, const Story& story) {
  if (context.structured()) return context.Structured(ToJson(story));
  return Head(story, context) + History(story, context) + Slots(story, context);
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  // The log, which the stages are in, is not asked for there.
  std::unique_ptr<ClusterApi> cluster;
  if (!options.trace) {
    ASSIGN_OR_RETURN(cluster, ClusterApi::Reach(context));
  }
  if (cluster != nullptr) {
    const auto show = [&](const Context& view) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const Story story, Read(*cluster, options.job));
      return TextOf(view, story);
    };
    return Present(context, options.watch, show);
  }
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  JobStore store(PostgresOptions(config.dsn));
  return Present(context, options.watch, [&](const Context& view) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Story story, Read(store, options.job));
    if (options.trace) return TraceText(view, config, story);
    return TextOf(view, story);
  });
}

}  // namespace

void RegisterJob(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("job", "Show one job: what it is, where it is, and its history");
  auto options = std::make_shared<Options>();
  sub->group("Jobs");
  sub->add_option("JOB", options->job, "Its id, namespace/name, or name")
      ->required()
      ->type_name("JOB");
  sub->add_flag("--trace", options->trace, "Draw its stages and how long each took");
  AddWatchOptions(sub, &options->watch);
  sub->footer(
      "Of several jobs of one name the newest is shown.\n\n"
      "Examples:\n"
      "  fluxqueue job team/train            by namespace and name\n"
      "  fluxqueue job train --watch         its history, as it grows\n"
      "  fluxqueue job train --trace         where its time went, from the log\n"
      "  fluxqueue job train -o yaml         for programs");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
