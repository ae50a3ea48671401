#include "services/graph/adapters/cluster_calls.h"

#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "services/graph/domain/pod_jobspec.h"

namespace fluxqueue::graph_service {
namespace {

constexpr int kMostTrials = 1000;
constexpr size_t kPieceBytes = 256 << 10;

absl::Status Late() {
  return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                    "the client has gone, or its deadline was over before it was its turn");
}

absl::Status HoldsNothing(const std::string& job) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    "job {} holds nothing; the queue's API knows jobs that wait or have ended",
                    job);
}

PoolPictures::Pick PickId(const std::string& job_id) {
  return [job_id](pqxx::transaction_base&) { return std::vector{job_id}; };
}

PoolPictures::Pick PickNumber(const std::string& pool, int64_t number) {
  return [pool, number](pqxx::transaction_base& tx) {
    std::vector<std::string> picked;
    for (const auto& [job_id, hash] : matcher_rows::LoadHolders(tx, pool)) {
      if (NumberOf(job_id) == number) picked.push_back(job_id);
    }
    return picked;
  };
}

PoolPictures::Pick PickBehind(const std::string& pool, const std::string& name) {
  return [pool, name](pqxx::transaction_base& tx) {
    const auto next = matcher_rows::HolderBehind(tx, pool, name);
    return next.has_value() ? std::vector{*next} : std::vector<std::string>();
  };
}

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

std::string ClusterCalls::PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

// ---- looking

absl::Status ClusterCalls::Check(const CallInfo& call, const std::string& pool) const {
  if (call.cancelled()) return Late();
  return judge_.MayLookAt(call.caller, PoolOf(pool));
}

void ClusterCalls::Answer(const CallInfo& call, const std::string& pool, Done done, Work work) {
  const auto asked = std::chrono::steady_clock::now();
  workers_.Post([=, this, done = std::move(done), work = std::move(work)] {
    const absl::Status wanted = Check(call, pool);
    if (!wanted.ok()) return done(wanted);
    const absl::StatusOr<View> view = pictures_.Look(PoolOf(pool), asked);
    done(view.ok() ? work(**view) : view.status());
  });
}

void ClusterCalls::AnswerOf(const CallInfo& call,
                            const std::string& pool,
                            Whose whose,
                            PoolPictures::Pick pick,
                            Done done,
                            std::function<absl::Status(const PoolPictures::Held& held)> work) {
  workers_.Post([=, this, pick = std::move(pick), done = std::move(done), work = std::move(work)] {
    const absl::Status wanted = whose == Whose::kAnybodys ? Check(call, pool) : absl::OkStatus();
    if (!wanted.ok()) return done(wanted);
    const absl::StatusOr<PoolPictures::Held> held = pictures_.Find(PoolOf(pool), pick);
    done(held.ok() ? work(*held) : held.status());
  });
}

void ClusterCalls::GetJob(CallInfo call,
                          const v1::GetJobRequest* request,
                          v1::GetJobResponse* response,
                          Done done) {
  ReadJob(call, Whose::kAnybodys, request, response, std::move(done));
}

void ClusterCalls::ReadJob(const CallInfo& call,
                           Whose whose,
                           const v1::GetJobRequest* request,
                           v1::GetJobResponse* response,
                           Done done) {
  const absl::Status format = FormatOf(request->format()).status();
  if (!format.ok()) return done(format);
  const PoolPictures::Pick pick = request->job_id().empty()
                                      ? PickNumber(PoolOf(request->pool()), request->job())
                                      : PickId(request->job_id());
  const auto work = [request, response](const PoolPictures::Held& held) {
    const auto job = held.jobs.begin();
    if (job == held.jobs.end() || job->second.empty()) {
      return HoldsNothing(request->job_id().empty() ? std::to_string(request->job())
                                                    : request->job_id());
    }
    response->set_job(NumberOf(job->first));
    response->set_job_id(job->first);
    response->set_state(v1::JOB_STATE_ALLOCATED);
    held.nodes->WriteJob(
        job->second, {request->format(), request->nodes()}, response->mutable_allocation());
    return absl::OkStatus();
  };
  AnswerOf(call, request->pool(), whose, pick, std::move(done), work);
}

void ClusterCalls::Explain(CallInfo call,
                           const v1::ExplainRequest* request,
                           v1::ExplainResponse* response,
                           Done done) {
  Answer(call, request->pool(), std::move(done), [request, response](const PoolView& view) {
    return view.Explain(*request, response);
  });
}

void ClusterCalls::Find(CallInfo call,
                        const v1::FindRequest* request,
                        v1::FindResponse* response,
                        Done done) {
  Answer(call, request->pool(), std::move(done), [request, response](const PoolView& view) {
    return view.Find(*request, response);
  });
}

void ClusterCalls::WhatIf(CallInfo call,
                          const v1::WhatIfRequest* request,
                          v1::WhatIfResponse* response,
                          Done done) {
  absl::Status wrong = FormatOf(request->format()).status();
  if (wrong.ok() && request->jobspecs_size() > kMostTrials) {
    wrong = rpc::InField(
        InvalidArgument(
            "jobspecs: {} are too many; allowed are {}", request->jobspecs_size(), kMostTrials),
        "jobspecs");
  }
  if (!wrong.ok()) return done(wrong);
  Answer(call,
         request->pool(),
         std::move(done),
         [call, request, response](const PoolView& view) -> absl::Status {
           PoolView::Trials trials = view.BeginTrials();
           for (int i = 0; i < request->jobspecs_size(); ++i) {
             if (call.cancelled()) {
               return MakeStatus(absl::StatusCode::kCancelled, "the client has gone");
             }
             absl::Status status =
                 trials.Try(*request, request->jobspecs(i), response->add_trials());
             if (!status.ok()) return rpc::InField(status, fmt::format("jobspecs[{}]", i));
           }
           return absl::OkStatus();
         });
}

// ---- commands

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
  absl::Status wrong = FormatOf(request->format()).status();
  if (wrong.ok() && request->job() != 0) {
    wrong =
        rpc::InField(InvalidArgument("job: a pool's jobs get their numbers from their ids"), "job");
  }
  const absl::StatusOr<std::string> pods = ToPodJobspec(request->jobspec());
  if (wrong.ok()) wrong = rpc::InField(pods.status(), "jobspec");
  if (!wrong.ok()) return timed(wrong);
  const absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(*pods);
  if (!jobspec.ok()) return timed(rpc::InField(jobspec.status(), "jobspec"));
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
                   if (!job.ok()) return timed(job.status());
                   Claimed(call, request, response, *job, timed);
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
  ReadJob(call, Whose::kOwn, get.get(), got.get(), [=, this](const absl::Status& status) {
    if (status.ok()) response->mutable_allocation()->Swap(got->mutable_allocation());
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

// ---- what the ancestors ask

void ClusterCalls::GetGroup(CallInfo call,
                            const std::string& pool,
                            const std::string& name,
                            bool behind,
                            ::service::GroupResponse* response,
                            Done done) {
  const auto work = [name, behind, response](const PoolPictures::Held& held) {
    const auto job = held.jobs.begin();
    if (job == held.jobs.end() || job->second.empty()) {
      return behind ? absl::OkStatus() : HoldsNothing(name);
    }
    std::set<std::string_view> nodes;
    for (const graph::Placement& placement : job->second) {
      for (const graph::PlacedSlot& slot : placement.slots) {
        if (!slot.released) nodes.insert(slot.node);
      }
    }
    response->set_name(job->first);
    response->set_size(static_cast<int64_t>(nodes.size()));
    return absl::OkStatus();
  };
  AnswerOf(call,
           pool,
           Whose::kAnybodys,
           behind ? PickBehind(PoolOf(pool), name) : PickId(name),
           std::move(done),
           work);
}

SlotUnits ClusterCalls::UnitsOf(const std::string& /*pool*/) const {
  return PodUnits();
}

// ---- streams

class ClusterCalls::Reader final : public GraphReader {
 public:
  Reader(ClusterCalls& calls, CallInfo call, const v1::GetGraphRequest& request)
      : calls_(calls), state_(std::make_shared<State>(std::move(call), request)) {}

  void Next(v1::GetGraphResponse* piece, DonePiece done) override {
    const auto asked = std::chrono::steady_clock::now();
    calls_.workers_.Post([&calls = calls_, state = state_, piece, asked, done = std::move(done)] {
      piece->Clear();
      if (state->view == nullptr) {
        const absl::Status wanted = calls.Check(state->call, state->request.pool());
        if (!wanted.ok()) return done(wanted);
        absl::StatusOr<View> view = calls.pictures_.Look(PoolOf(state->request.pool()), asked);
        if (!view.ok()) return done(view.status());
        state->view = *std::move(view);
        state->writer.emplace(state->view->Write());
      }
      done(state->Fill(piece));
    });
  }

 private:
  struct State {
    State(CallInfo by, v1::GetGraphRequest of) : call(std::move(by)), request(std::move(of)) {}

    bool Fill(v1::GetGraphResponse* piece) {
      if (request.view() != v1::GetGraphRequest::VIEW_SUMMARY) {
        piece->set_jgf(writer->Next(kPieceBytes));
        return !piece->jgf().empty();
      }
      if (std::exchange(summarised, true)) return false;
      view->Summarise(piece);
      return true;
    }

    const CallInfo call;
    const v1::GetGraphRequest request;
    View view;
    std::optional<graph::JgfWriter> writer;
    bool summarised = false;
  };

  ClusterCalls& calls_;
  const std::shared_ptr<State> state_;
};

std::unique_ptr<GraphReader> ClusterCalls::GetGraph(CallInfo call,
                                                    const v1::GetGraphRequest& request) {
  return std::make_unique<Reader>(*this, std::move(call), request);
}

void ClusterCalls::Watch(CallInfo call, std::shared_ptr<AllocationWatch> watch) {
  const absl::Status format = FormatOf(watch->request().format()).status();
  if (!format.ok()) return watch->End(format);
  workers_.Post([this, call = std::move(call), watch = std::move(watch)] {
    const std::string pool = PoolOf(watch->request().pool());
    const absl::Status wanted = Check(call, pool);
    if (!wanted.ok()) return watch->End(wanted);
    feed_.Watch(pool, watch);
  });
}

}  // namespace fluxqueue::graph_service
