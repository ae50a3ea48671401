// hold, release, cancel, priority, move: the queue's commands, for the command line. The call goes
// to the replica that holds the job's pool, and is answered when the command stands in the pool's
// log.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/status_macros.h"
#include "libs/job_store/fact_store.h"
#include "libs/job_store/job_store.h"
#include "libs/peers/peers.h"
#include "libs/rpc/grpc_status.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

namespace api = queue::v1;

constexpr std::chrono::seconds kDeadline{30};

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
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  request.set_job_id(job_id);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  *job = std::move(*response.mutable_job());
  return status;
}

// The job that is meant: an id, a name, or namespace/name. Of several of a name the last that
// lives.
absl::StatusOr<job_store::Job> FindJob(job_store::JobStore& store, const std::string& wanted) {
  ASSIGN_OR_RETURN(const std::vector<job_store::Job> found, store.Find(wanted));
  if (found.empty()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "there is no job {}; fluxqueue jobs lists those that live",
                      wanted);
  }
  const job_store::Job& job = found.front();
  for (const job_store::Job& other : found) {
    if (job.id != wanted && other.FullName() != job.FullName()) {
      return InvalidArgument(
          "{} may be {} or {}: give the namespace too", wanted, job.FullName(), other.FullName());
    }
  }
  return job;
}

absl::StatusOr<int> Run(const Context& context,
                        const std::string& wanted,
                        const std::string& done,
                        const Call& call) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  job_store::JobStore store(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const job_store::Job job, FindJob(store, wanted));
  job_store::FactStore facts(PostgresOptions(config.dsn), /*connections=*/1);
  peers::Peers peers({.service = job_store::Service::kQueue}, facts);
  const auto channel = peers.HolderOf(job.pool);
  if (!channel.ok()) return Annotate(channel.status(), "the queue");
  const auto stub = api::Queue::NewStub(*channel);
  api::Job answer;
  const grpc::Status status = call(*stub, job.id, &answer);
  if (!status.ok()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "{} ({}): {}",
                      job.FullName(),
                      job.id,
                      status.error_message());
  }
  fmt::print("{} ({}): {}\n", job.FullName(), job.id, done);
  return 0;
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, std::string* job) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->add_option("JOB", *job, "Its id, its name, or NAMESPACE/NAME")->required();
  return sub;
}

}  // namespace

void RegisterControl(CLI::App& app, Context& context) {
  struct Options {
    std::string job;
    std::string queue;
    int32_t priority = 0;
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
  CLI::App* priority = AddCommand(app, "priority", "Give a job another priority", job);
  priority->add_option("PRIORITY", options->priority, "A higher one goes first")->required();
  runs(priority,
       "has its new priority",
       [options](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
         api::SetPriorityRequest request;
         request.set_priority(options->priority);
         return Make(stub, &api::Queue::Stub::SetPriority, request, id, answer);
       });
  CLI::App* move = AddCommand(app, "move", "Move a job to another queue of its pool", job);
  move->add_option("QUEUE", options->queue, "The FluxQueue that it goes to")->required();
  runs(
      move, "is moved", [options](api::Queue::Stub& stub, const std::string& id, api::Job* answer) {
        api::MoveRequest request;
        request.set_queue(options->queue);
        return Make(stub, &api::Queue::Stub::Move, request, id, answer);
      });
}

}  // namespace fluxqueue::cli
