// hold, release, cancel, priority, move: the queue's commands, for the command line. The call goes
// to the replica that holds the job's pool, and is answered when the command stands in the pool's
// log.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/place_factors.h"

namespace fluxqueue::cli {
namespace {

namespace api = queue::v1;

// Makes the call for the job of this id; the job as the queue knew it goes to *job.
using Call =
    std::function<grpc::Status(api::Queue::Stub& stub, const std::string& job_id, api::Job* job)>;

template <typename Request, typename Response>
using Method = grpc::Status (api::Queue::Stub::*)(grpc::ClientContext*, const Request&, Response*);

template <typename Request, typename Response>
grpc::Status Make(api::Queue::Stub& stub,
                  Method<Request, Response> method,
                  Request request,
                  const std::string& job_id,
                  api::Job* job) {
  grpc::ClientContext context;
  Prepare(&context, job_id);
  request.set_job_id(job_id);
  Response response;
  grpc::Status status = (stub.*method)(&context, request, &response);
  *job = std::move(*response.mutable_job());
  return status;
}

absl::StatusOr<int> Run(const Context& context,
                        const std::string& wanted,
                        const std::string& done,
                        const Call& call) {
  ASSIGN_OR_RETURN(const JobCall reached, ReachJob(context, wanted));
  const job_store::Job& job = reached.job;
  api::Job answer;
  RETURN_IF_ERROR(ToStatus(call(*reached.stub, job.id, &answer), job));
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
  const auto runs = [&context, options](CLI::App* sub, const std::string& done, const Call& call) {
    sub->callback([&context, options, done, call] {
      context.command = [&context, options, done, call] {
        return Run(context, options->job, done, call);
      };
    });
  };
  std::string* job = &options->job;
  runs(AddCommand(app, "hold", "Keep a job from starting, until it is released", job),
       "is held",
       [](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
         return Make(stub, &api::Queue::Stub::Hold, api::HoldRequest(), id, answer);
       });
  runs(AddCommand(app, "release", "Let a job start that was held", job),
       "is released",
       [](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
         return Make(stub, &api::Queue::Stub::Release, api::ReleaseRequest(), id, answer);
       });
  runs(AddCommand(app, "cancel", "Stop a job, or take it out of the line", job),
       "is being cancelled",
       [](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
         return Make(stub, &api::Queue::Stub::CancelJob, api::CancelJobRequest(), id, answer);
       });
  CLI::App* priority = AddCommand(
      app, "priority", "Give a job another priority; without one: what decides its place", job);
  priority->add_option("PRIORITY", options->priority, "A higher one goes first");
  const Call set_priority = [options](
                                api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
    api::SetPriorityRequest request;
    request.set_priority(*options->priority);
    return Make(stub, &api::Queue::Stub::SetPriority, request, id, answer);
  };
  priority->callback([&context, options, set_priority] {
    context.command = [&context, options, set_priority] {
      return options->priority.has_value()
                 ? Run(context, options->job, "has its new priority", set_priority)
                 : ShowFactors(context, options->job);
    };
  });
  CLI::App* move = AddCommand(app, "move", "Move a job to another queue of its pool", job);
  move->add_option("QUEUE", options->queue, "The FluxQueue that it goes to")
      ->required()
      ->type_name("QUEUE");
  runs(
      move, "is moved", [options](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
        api::MoveRequest request;
        request.set_queue(options->queue);
        return Make(stub, &api::Queue::Stub::Move, request, id, answer);
      });
}

}  // namespace fluxqueue::cli
