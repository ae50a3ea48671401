#include "tools/fluxqueue/job_call.h"

#include <chrono>
#include <utility>
#include <vector>

#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/fact_store.h"
#include "libs/peers/peers.h"
#include "libs/tracing/trace_context.h"

#include "tools/fluxqueue/cluster_api.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

namespace api = queue::v1;
using google::protobuf::util::TimeUtil;
using Kind = JobCommand::Kind;

constexpr std::chrono::seconds kDeadline{30};

absl::Status OfJob(const job_store::Job& job, std::string_view message) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition, "{} ({}): {}", job.FullName(), job.id, message);
}

class SystemJobCall final : public JobCall {
 public:
  SystemJobCall(job_store::Job job, std::string dsn, std::unique_ptr<api::Queue::Stub> stub)
      : job_(std::move(job)), dsn_(std::move(dsn)), stub_(std::move(stub)) {}

  const job_store::Job& job() const override { return job_; }

  absl::StatusOr<api::ExplainResponse> Explain() override {
    api::ExplainResponse answer;
    RETURN_IF_ERROR(Make(&api::Queue::Stub::Explain, api::ExplainRequest(), &answer));
    return answer;
  }

  absl::StatusOr<std::vector<job_store::Promise>> Promises() override {
    return job_store::JobStore(PostgresOptions(dsn_)).Promises(job_.id);
  }

  absl::Status Do(const JobCommand& command) override {
    switch (command.kind) {
      case Kind::kHold:
        return Make<api::HoldRequest, api::HoldResponse>(&api::Queue::Stub::Hold);
      case Kind::kRelease:
        return Make<api::ReleaseRequest, api::ReleaseResponse>(&api::Queue::Stub::Release);
      case Kind::kCancel:
        return Make<api::CancelJobRequest, api::CancelJobResponse>(&api::Queue::Stub::CancelJob);
      case Kind::kPriority: {
        api::SetPriorityRequest request;
        request.set_priority(command.priority);
        api::SetPriorityResponse answer;
        return Make(&api::Queue::Stub::SetPriority, request, &answer);
      }
      case Kind::kMove: {
        api::MoveRequest request;
        request.set_queue(command.queue);
        api::MoveResponse answer;
        return Make(&api::Queue::Stub::Move, request, &answer);
      }
    }
    return Internal("no such command");
  }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (api::Queue::Stub::*)(grpc::ClientContext*,
                                                    const Request&,
                                                    Response*);

  template <typename Request, typename Response>
  absl::Status Make(Method<Request, Response> method, Request request, Response* answer) {
    grpc::ClientContext call;
    Prepare(&call, job_.id);
    request.set_job_id(job_.id);
    const grpc::Status status = (*stub_.*method)(&call, request, answer);
    return status.ok() ? absl::OkStatus() : OfJob(job_, status.error_message());
  }
  template <typename Request, typename Response>
  absl::Status Make(Method<Request, Response> method) {
    Response answer;
    return Make(method, Request(), &answer);
  }

  const job_store::Job job_;
  const std::string dsn_;
  const std::unique_ptr<api::Queue::Stub> stub_;
};

class ClusterJobCall final : public JobCall {
 public:
  ClusterJobCall(std::unique_ptr<ClusterApi> cluster, api::GetJobResponse answer)
      : cluster_(std::move(cluster)),
        answer_(std::move(answer)),
        job_(FromMessage(answer_.job())) {}

  const job_store::Job& job() const override { return job_; }

  absl::StatusOr<api::ExplainResponse> Explain() override {
    auto answer = cluster_->Explain(answer_.job());
    if (!answer.ok()) return OfJob(job_, Message(answer.status()));
    return answer;
  }

  absl::StatusOr<std::vector<job_store::Promise>> Promises() override {
    std::vector<job_store::Promise> promises;
    for (const api::GetJobResponse::Promise& promise : answer_.promises()) {
      promises.push_back({.told_ms = TimeUtil::TimestampToMilliseconds(promise.told()),
                          .start_ms = TimeUtil::TimestampToMilliseconds(promise.start()),
                          .firm = promise.firm(),
                          .kept = promise.kept(),
                          .cause = promise.cause(),
                          .by = promise.by()});
    }
    return promises;
  }

  absl::Status Do(const JobCommand& command) override {
    const absl::Status done = Ask(command);
    return done.ok() ? done : OfJob(job_, Message(done));
  }

 private:
  absl::Status Ask(const JobCommand& command) {
    const api::Job& job = answer_.job();
    switch (command.kind) {
      case Kind::kHold:
        return cluster_->Command(job, "hold", {{"held", true}});
      case Kind::kRelease:
        return cluster_->Command(job, "hold", {{"held", false}});
      case Kind::kCancel:
        return cluster_->Command(job, "cancel", nlohmann::json::object());
      case Kind::kPriority:
        return cluster_->Command(job, "priority", {{"priority", command.priority}});
      case Kind::kMove:
        return cluster_->Command(job, "move", {{"queue", command.queue}});
    }
    return Internal("no such command");
  }

  const std::unique_ptr<ClusterApi> cluster_;
  const api::GetJobResponse answer_;
  const job_store::Job job_;
};

}  // namespace

absl::StatusOr<job_store::Job> FindJob(const SystemConfig& config, const std::string& wanted) {
  job_store::JobStore store(PostgresOptions(config.dsn));
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

absl::StatusOr<std::unique_ptr<queue::v1::Queue::Stub>> ReachPool(const SystemConfig& config,
                                                                  const std::string& pool) {
  job_store::FactStore facts(PostgresOptions(config.dsn), /*connections=*/1);
  peers::Peers peers({.own_address = "", .files = config.grpc}, facts);
  const auto channel = peers.HolderOf(pool);
  if (!channel.ok()) return Annotate(channel.status(), "the queue");
  return queue::v1::Queue::NewStub(*channel);
}

absl::StatusOr<std::unique_ptr<JobCall>> ReachJob(const Context& context,
                                                  const std::string& wanted) {
  ASSIGN_OR_RETURN(std::unique_ptr<ClusterApi> cluster, ClusterApi::Reach(context));
  if (cluster != nullptr) {
    ASSIGN_OR_RETURN(api::GetJobResponse answer, cluster->Job(wanted));
    return std::make_unique<ClusterJobCall>(std::move(cluster), std::move(answer));
  }
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(job_store::Job job, FindJob(config, wanted));
  ASSIGN_OR_RETURN(auto stub, ReachPool(config, job.pool));
  return std::make_unique<SystemJobCall>(std::move(job), config.dsn, std::move(stub));
}

void Prepare(grpc::ClientContext* call, const std::string& job_id) {
  call->set_deadline(std::chrono::system_clock::now() + kDeadline);
  const std::string traceparent = tracing::Traceparent(job_id);
  if (!traceparent.empty()) call->AddMetadata(tracing::kTraceparent, traceparent);
}

}  // namespace fluxqueue::cli
