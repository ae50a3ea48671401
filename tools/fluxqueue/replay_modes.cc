#include "tools/fluxqueue/replay_modes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/job_story.h"
#include "tools/fluxqueue/pool_view.h"
#include "tools/fluxqueue/replay_step.h"
#include "tools/fluxqueue/snapshot_file.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using Begin = Reading::Begin;

// What was shown is what the cores decide now.
int ExitCode(PoolReplay& replay) {
  const verify::Tally total = replay.Result().total;
  if (total.different() == 0) return 0;
  fmt::print(stderr,
             "{} of {} decisions are not as recorded: this is how it is decided now\n",
             Thousands(total.different()),
             Thousands(total.decisions));
  return 1;
}

absl::Status CheckAny(const PoolReplay& replay) {
  if (replay.replayer().Queue(replay.pool()) != nullptr) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kNotFound, "pool {} has no record until then", replay.pool());
}

// "n1 x2, n2"; empty: it has none.
std::string NodesOf(const PoolReplay& replay, const std::string& id, uint32_t attempt) {
  const auto* matcher = replay.replayer().Matcher(replay.pool());
  const graph::Placement* placement = matcher->engine().Find({id, attempt, 0});
  return placement == nullptr ? "" : NodesText(SlotsByNode(*placement));
}

}  // namespace

absl::StatusOr<int> InspectPool(const Context& context, const ReplayOptions& options) {
  ASSIGN_OR_RETURN(ReplayInput input, OpenReplay(context, options, {.begin = Begin::kPool}));
  PoolReplay replay(*input.source, std::move(input.bounds));
  RETURN_IF_ERROR(replay.Run());
  RETURN_IF_ERROR(CheckAny(replay));
  const verify::Replayer& cores = replay.replayer();
  const PoolView view =
      Look(*cores.Queue(replay.pool()), *cores.Matcher(replay.pool()), replay.now());
  fmt::print("{}",
             context.structured() ? context.Structured(ToJson(view))
                                  : FormatView(view, context.Now().count(), context.colour));
  return ExitCode(replay);
}

absl::StatusOr<int> SaveSnapshot(const Context& context, const ReplayOptions& options) {
  ASSIGN_OR_RETURN(ReplayInput input,
                   OpenReplay(context, options, {.begin = Begin::kPool, .written = options.save}));
  input.bounds.keeps_rows = true;
  PoolReplay replay(*input.source, std::move(input.bounds));
  RETURN_IF_ERROR(replay.Run());
  RETURN_IF_ERROR(CheckAny(replay));
  const replay::v1::Snapshot snapshot = replay.replayer().Save(replay.pool());
  RETURN_IF_ERROR(WriteSnapshot(snapshot, options.save));
  fmt::print(stderr,
             "pool {} as it was before offset {}, at {}\n",
             snapshot.pool(),
             snapshot.next_offset(),
             ShortTime(snapshot.time_ms(), context.Now().count()));
  return ExitCode(replay);
}

absl::StatusOr<int> TellStory(const Context& context, const ReplayOptions& options) {
  ASSIGN_OR_RETURN(ReplayInput input, OpenReplay(context, options, {.begin = Begin::kJob}));
  const PoolReplay* running = nullptr;
  JobStory story(options.job, [&running](const std::string& id, uint32_t attempt) {
    return NodesOf(*running, id, attempt);
  });
  PoolReplay replay(*input.source,
                    std::move(input.bounds),
                    {.before = [&story](const verify::EventLine& line) { story.Read(line); },
                     .decided = [&story](const events::v1::JobFact& fact,
                                         Millis now) { story.Decide(fact, now); }});
  running = &replay;
  RETURN_IF_ERROR(replay.Run());
  if (story.id().empty()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "the log of pool {} tells of no job {} being submitted",
                      replay.pool(),
                      options.job);
  }
  fmt::print("{}",
             context.structured() ? context.Structured(ToJson(story))
                                  : FormatStory(story, context.Now().count(), context.colour));
  return ExitCode(replay);
}

absl::StatusOr<int> StepThrough(const Context& context, const ReplayOptions& options) {
  ASSIGN_OR_RETURN(ReplayInput input, OpenReplay(context, options, {}));
  const PoolReplay* running = nullptr;
  EventStep step;
  bool shows = false;
  StepPrompt prompt(context);
  PoolReplay replay(*input.source,
                    std::move(input.bounds),
                    {.before =
                         [&](const verify::EventLine& line) {
                           shows = input.Shows(line);
                           step.Begin(line);
                         },
                     .decided =
                         [&](const events::v1::JobFact& fact, Millis now) {
                           step.Decide(fact,
                                       now,
                                       fact.state() == events::v1::JOB_STATE_ALLOCATED
                                           ? NodesOf(*running, fact.job_id(), fact.attempt())
                                           : "");
                         },
                     .said = [&step](const events::v1::Envelope& message) { step.Say(message); },
                     .after = [&] { return shows ? prompt.Show(step) : absl::OkStatus(); }});
  running = &replay;
  RETURN_IF_ERROR(replay.Run());
  return ExitCode(replay);
}

}  // namespace fluxqueue::cli
