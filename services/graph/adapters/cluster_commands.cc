// The commands to the queue: matches that hold something, and their release.
#include <chrono>
#include <utility>

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/name_check.h"
#include "services/graph/adapters/cluster_calls.h"
#include "services/graph/domain/pod_jobspec.h"

namespace fluxqueue::graph_service {
namespace {

void SetOverhead(std::chrono::steady_clock::time_point begun, v1::MatchResponse* response) {
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
  response->mutable_overhead()->set_seconds(took.count() / 1'000'000'000);
  response->mutable_overhead()->set_nanos(static_cast<int32_t>(took.count() % 1'000'000'000));
}

bool IsLook(v1::Operation operation) {
  return operation == v1::OPERATION_SATISFIABILITY ||
         operation == v1::OPERATION_WITHOUT_ALLOCATING ||
         operation == v1::OPERATION_WITHOUT_ALLOCATING_FUTURE;
}

}  // namespace

absl::Status ClusterCalls::CheckName(std::string_view field, const std::string& name) {
  constexpr size_t kMostName = 256;
  return rpc::CheckName(field, name, kMostName);
}

void ClusterCalls::Match(CallInfo call,
                         const v1::MatchRequest* request,
                         v1::MatchResponse* response,
                         Done done) {
  const auto begun = std::chrono::steady_clock::now();
  const auto timed = [begun, response, done = std::move(done)](const absl::Status& status) {
    SetOverhead(begun, response);
    done(status);
  };
  if (IsLook(request->operation())) {
    Answer(call, request->pool(), timed, [request, response](const PoolView& view) {
      return view.Try(*request, response);
    });
    return;
  }
  // A jobspec takes long to read.
  workers_.Post(call.Tenant(), [=, this] { Claim(call, request, response, timed); });
}

void ClusterCalls::Claim(const CallInfo& call,
                         const v1::MatchRequest* request,
                         v1::MatchResponse* response,
                         const Done& done) {
  absl::Status wrong = FormatOf(request->format()).status();
  if (wrong.ok()) wrong = CheckName("pool", request->pool());
  if (wrong.ok() && request->job() != 0) {
    wrong =
        rpc::InField(InvalidArgument("job: a pool's jobs get their numbers from their ids"), "job");
  }
  const absl::StatusOr<std::string> pods = ToPodJobspec(request->jobspec());
  if (wrong.ok()) wrong = rpc::InField(pods.status(), "jobspec");
  if (!wrong.ok()) return done(wrong);
  const absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(*pods);
  if (!jobspec.ok()) return done(rpc::InField(jobspec.status(), "jobspec"));
  const std::string client_id =
      request->job_id().empty() ? to_string(boost::uuids::random_generator()()) : request->job_id();
  claims_.Submit(call,
                 {.pool = PoolOf(request->pool()),
                  .client_id = client_id,
                  .jobspec = *pods,
                  .duration_s = jobspec->duration_s,
                  .stays = request->operation() == v1::OPERATION_ALLOCATE_ORELSE_RESERVE,
                  .named = !request->job_id().empty()},
                 [=, this](const absl::StatusOr<queue::v1::Job>& job) {
                   if (!job.ok()) return done(job.status());
                   Claimed(call, request, response, *job, done);
                 });
}

void ClusterCalls::Claimed(const CallInfo& call,
                           const v1::MatchRequest* request,
                           v1::MatchResponse* response,
                           const queue::v1::Job& job,
                           const Done& done) {
  response->set_job_id(job.id());
  const bool holds = job.state() == queue::v1::STATE_RUNNING ||
                     job.state() == queue::v1::STATE_ALLOCATED ||
                     job.state() == queue::v1::STATE_BOUND;
  if (!holds) {
    // What is unsatisfiable now may wait on, as its queue says.
    if (job.state() == queue::v1::STATE_REJECTED || job.reason() == "Unsatisfiable") {
      response->set_outcome(v1::OUTCOME_UNSATISFIABLE);
    } else if (job.state() == queue::v1::STATE_PENDING ||
               job.state() == queue::v1::STATE_SUBMITTED) {
      response->set_outcome(v1::OUTCOME_BUSY);
    } else {
      return done(MakeStatus(absl::StatusCode::kFailedPrecondition,
                             "job {} has ended: {}",
                             job.id(),
                             job.message().empty() ? job.reason() : job.message()));
    }
    if (request->explain()) response->set_reason(job.message());
    return done(absl::OkStatus());
  }
  response->set_outcome(v1::OUTCOME_ALLOCATED);
  response->set_job(NumberOf(job.id()));
  // What it holds.
  const auto get = std::make_shared<v1::GetJobRequest>();
  get->set_pool(PoolOf(request->pool()));
  get->set_job_id(job.id());
  get->set_format(request->format());
  get->set_nodes(request->nodes());
  const auto got = std::make_shared<v1::GetJobResponse>();
  const bool named = !request->job_id().empty();
  ReadJob(call, Whose::kOwn, get.get(), got.get(), [=, this](absl::Status status) {
    if (status.ok()) response->mutable_allocation()->Swap(got->mutable_allocation());
    if (status.ok()) status = call.Hold(request->ByteSizeLong() + response->ByteSizeLong());
    done(status);
    // A client that is told of an error knows of no claim.
    if (status.ok() || named) return;
    claims_.Cancel(
        Claims::Afterwards(call), get->pool(), get->job_id(), [](const absl::Status&) {});
  });
}

void ClusterCalls::Release(CallInfo call,
                           const v1::ReleaseRequest* request,
                           v1::ReleaseResponse* response,
                           Done done) {
  if (!request->resources().empty()) {
    return done(rpc::InField(
        InvalidArgument("resources: a pool's job gives back all that it holds, or nothing"),
        "resources"));
  }
  const absl::Status named = CheckName("pool", request->pool());
  if (!named.ok()) return done(named);
  const std::string pool = PoolOf(request->pool());
  const auto cancel = [this, call, pool, response, done](const std::string& job_id) {
    claims_.Cancel(call, pool, job_id, [response, done](const absl::Status& status) {
      response->set_all(true);
      done(status);
    });
  };
  if (!request->job_id().empty()) return cancel(request->job_id());
  // By its number.
  const auto get = std::make_shared<v1::GetJobRequest>();
  get->set_pool(pool);
  get->set_job(request->job());
  const auto got = std::make_shared<v1::GetJobResponse>();
  const auto found = [get, got, cancel, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    cancel(got->job_id());
  };
  // Whether it is his, the queue knows.
  ReadJob(call, Whose::kOwn, get.get(), got.get(), found);
}

}  // namespace fluxqueue::graph_service
