// hold, release, cancel, priority, move: the queue's commands, for the command line. They are
// answered when the command stands in the log of the job's pool.
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/place_factors.h"

namespace fluxqueue::cli {
namespace {

using Kind = JobCommand::Kind;

absl::StatusOr<int> Run(const Context& context,
                        const std::string& wanted,
                        const std::string& done,
                        const JobCommand& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobCall> reached, ReachJob(context, wanted));
  RETURN_IF_ERROR(reached->Do(command));
  const job_store::Job& job = reached->job();
  fmt::print("{} ({}): {}\n", job.FullName(), job.id, done);
  return 0;
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, std::string* job) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->group("Jobs");
  sub->add_option("JOB", *job, "Its id, its name, or NAMESPACE/NAME")->required()->type_name("JOB");
  sub->footer(
      "It is done when the command stands in the log of the job's pool; `fluxqueue job "
      "JOB` shows what came of it.");
  return sub;
}

}  // namespace

void RegisterControl(CLI::App& app, Context& context) {
  struct Options {
    std::string job;
    std::string queue;
    std::optional<int32_t> priority;
  };
  const auto options = std::make_shared<Options>();
  const auto runs = [&context, options](CLI::App* sub, const std::string& done, Kind kind) {
    sub->callback([&context, options, done, kind] {
      context.command = [&context, options, done, kind] {
        return Run(context, options->job, done, {.kind = kind, .queue = options->queue});
      };
    });
  };
  std::string* job = &options->job;
  runs(AddCommand(app, "hold", "Keep a job from starting, until it is released", job),
       "is held",
       Kind::kHold);
  runs(AddCommand(app, "release", "Let a job start that was held", job),
       "is released",
       Kind::kRelease);
  runs(AddCommand(app, "cancel", "Stop a job, or take it out of the line", job),
       "is being cancelled",
       Kind::kCancel);
  CLI::App* priority = AddCommand(
      app, "priority", "Give a job another priority; without one: what decides its place", job);
  priority->add_option("PRIORITY", options->priority, "A higher one goes first");
  priority->callback([&context, options] {
    context.command = [&context, options] {
      if (!options->priority.has_value()) return ShowFactors(context, options->job);
      return Run(context,
                 options->job,
                 "has its new priority",
                 {.kind = Kind::kPriority, .priority = *options->priority});
    };
  });
  CLI::App* move = AddCommand(app, "move", "Move a job to another queue of its pool", job);
  move->add_option("QUEUE", options->queue, "The FluxQueue that it goes to")
      ->required()
      ->type_name("QUEUE");
  runs(move, "is moved", Kind::kMove);
}

}  // namespace fluxqueue::cli
