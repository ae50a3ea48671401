#include "services/matcher/adapters/cluster_calls.h"

#include <chrono>
#include <set>
#include <utility>

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <grpcpp/client_context.h>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "services/matcher/domain/pod_jobspec.h"

namespace fluxqueue::matcher {
namespace {

constexpr int kMostTrials = 1000;

PoolDesk::TimePoint DeadlineOf(const CallInfo& call) {
  const auto left = std::min<std::chrono::system_clock::duration>(
      call.deadline - std::chrono::system_clock::now(), Claims::kPatience);
  return std::chrono::steady_clock::now() + left;
}

// All but what is held.
PoolState NodesAt(const PoolAtHand& pool) {
  PoolState state{.now_s = pool.now_s,
                  .policy = pool.core.config().policy(),
                  .levels = {},
                  .nodes = pool.core.engine().Nodes(),
                  .held = {}};
  state.levels.assign(pool.core.config().levels().begin(), pool.core.config().levels().end());
  return state;
}

void SetOverhead(std::chrono::steady_clock::time_point begun, v1::MatchResponse* response) {
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
  response->mutable_overhead()->set_seconds(took.count() / 1'000'000'000);
  response->mutable_overhead()->set_nanos(static_cast<int32_t>(took.count() % 1'000'000'000));
}

bool HoldsNothing(v1::Operation operation) {
  return operation == v1::OPERATION_SATISFIABILITY ||
         operation == v1::OPERATION_WITHOUT_ALLOCATING ||
         operation == v1::OPERATION_WITHOUT_ALLOCATING_FUTURE;
}

}  // namespace

std::string ClusterCalls::PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

// ---- looking

void ClusterCalls::Look(const std::string& pool,
                        TimePoint deadline,
                        std::function<void(absl::StatusOr<View>)> look) {
  desk_.Ask(
      pool, deadline, [this, look = std::move(look)](const absl::StatusOr<const PoolAtHand*>& at) {
        if (!at.ok()) {
          workers_.Post([look, status = at.status()] { look(status); });
          return;
        }
        PoolState state = NodesAt(**at);
        const graph::Engine& engine = (*at)->core.engine();
        for (const graph::AllocationKey& key : engine.Keys()) {
          state.held.emplace_back(key, *engine.Find(key));
        }
        const auto& promised = (*at)->core.reservations();
        state.reserved.assign(promised.begin(), promised.end());
        state.closures = (*at)->core.Closures({}, (*at)->now_s);
        workers_.Post([state = std::make_shared<const PoolState>(std::move(state)), look] {
          auto view = PoolView::Make(*state);
          if (!view.ok()) return look(view.status());
          look(View(*std::move(view)));
        });
      });
}

std::function<absl::StatusOr<ClusterCalls::View>()> ClusterCalls::NodesOf(const std::string& pool,
                                                                          const PoolAtHand& at) {
  const graph::Engine* engine = &at.core.engine();
  const uint64_t version = engine->inventory_version();
  {
    const std::lock_guard lock(mutex_);
    const auto known = nodes_.find(pool);
    if (known != nodes_.end() && known->second.engine == engine &&
        known->second.version == version) {
      return [view = known->second.view] { return view; };
    }
  }
  const auto state = std::make_shared<const PoolState>(NodesAt(at));
  return [this, pool, engine, version, state]() -> absl::StatusOr<View> {
    ASSIGN_OR_RETURN(View view, PoolView::Make(*state));
    const std::lock_guard lock(mutex_);
    nodes_[pool] = {engine, version, view};
    return view;
  };
}

void ClusterCalls::LookAtJobs(const std::string& pool,
                              TimePoint deadline,
                              Picks picks,
                              std::function<void(absl::StatusOr<std::pair<View, Jobs>>)> look) {
  desk_.Ask(pool,
            deadline,
            [this, pool, picks = std::move(picks), look = std::move(look)](
                const absl::StatusOr<const PoolAtHand*>& at) {
              if (!at.ok()) {
                workers_.Post([look, status = at.status()] { look(status); });
                return;
              }
              const graph::Engine& engine = (*at)->core.engine();
              Jobs jobs;
              for (const graph::AllocationKey& key : picks(engine)) {
                jobs[key.job_id].push_back(*engine.Find(key));
              }
              workers_.Post([nodes = NodesOf(pool, **at), jobs = std::move(jobs), look] {
                const absl::StatusOr<View> view = nodes();
                if (!view.ok()) return look(view.status());
                look(std::pair(*view, jobs));
              });
            });
}

template <typename Request, typename Response>
void ClusterCalls::HandOn(const CallInfo& call,
                          const std::string& pool,
                          const Request* request,
                          Response* response,
                          const Done& done,
                          Remote<Request, Response> remote) {
  struct There {
    grpc::ClientContext context;
    std::unique_ptr<v1::Matcher::Stub> stub;
  };
  auto holder = matchers_.HolderOf(pool);
  if (!holder.ok()) return done(holder.status());
  const auto there = std::make_shared<There>();
  there->stub = v1::Matcher::NewStub(*holder);
  Claims::Continue(call, &there->context);
  const auto answered = [there, done](const grpc::Status& status) {
    done(status.ok() ? absl::OkStatus()
                     : MakeStatus(static_cast<absl::StatusCode>(status.error_code()),
                                  "{}",
                                  status.error_message()));
  };
  (there->stub->async()->*remote)(&there->context, request, response, answered);
}

template <typename Request, typename Response, typename Work>
void ClusterCalls::Answer(CallInfo call,
                          const Request* request,
                          Response* response,
                          Done done,
                          Remote<Request, Response> remote,
                          Work work) {
  const std::string pool = PoolOf(request->pool());
  Look(pool, DeadlineOf(call), [=, this](const absl::StatusOr<View>& view) {
    if (view.ok()) return done(work(**view));
    if (!absl::IsUnavailable(view.status())) return done(view.status());
    HandOn(call, pool, request, response, done, remote);
  });
}

void ClusterCalls::GetJob(CallInfo call,
                          const v1::GetJobRequest* request,
                          v1::GetJobResponse* response,
                          Done done) {
  const absl::Status format = FormatOf(request->format()).status();
  if (!format.ok()) return done(format);
  const std::string pool = PoolOf(request->pool());
  const auto picks = [id = request->job_id(),
                      number = request->job()](const graph::Engine& engine) {
    if (!id.empty()) return engine.KeysOf(id);
    std::vector<graph::AllocationKey> keys = engine.Keys();
    std::erase_if(keys, [number](const auto& key) { return NumberOf(key.job_id) != number; });
    return keys;
  };
  LookAtJobs(pool, DeadlineOf(call), picks, [=, this](const auto& found) {
    if (absl::IsUnavailable(found.status())) {
      return HandOn(call,
                    pool,
                    request,
                    response,
                    done,
                    Remote<v1::GetJobRequest, v1::GetJobResponse>(
                        &v1::Matcher::StubInterface::async_interface::GetJob));
    }
    if (!found.ok()) return done(found.status());
    const auto& [view, jobs] = *found;
    if (jobs.empty()) {
      return done(MakeStatus(
          absl::StatusCode::kNotFound,
          "job {} holds nothing; the queue's API knows jobs that wait or have ended",
          request->job_id().empty() ? std::to_string(request->job()) : request->job_id()));
    }
    const auto& [job_id, held] = *jobs.begin();
    response->set_job(NumberOf(job_id));
    response->set_job_id(job_id);
    response->set_state(v1::JOB_STATE_ALLOCATED);
    view->WriteJob(held, {request->format(), request->nodes()}, response->mutable_allocation());
    done(absl::OkStatus());
  });
}

void ClusterCalls::Explain(CallInfo call,
                           const v1::ExplainRequest* request,
                           v1::ExplainResponse* response,
                           Done done) {
  Answer(std::move(call),
         request,
         response,
         std::move(done),
         &v1::Matcher::StubInterface::async_interface::Explain,
         [request, response](const PoolView& view) { return view.Explain(*request, response); });
}

void ClusterCalls::Find(CallInfo call,
                        const v1::FindRequest* request,
                        v1::FindResponse* response,
                        Done done) {
  Answer(std::move(call),
         request,
         response,
         std::move(done),
         &v1::Matcher::StubInterface::async_interface::Find,
         [request, response](const PoolView& view) { return view.Find(*request, response); });
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
         request,
         response,
         std::move(done),
         &v1::Matcher::StubInterface::async_interface::WhatIf,
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
  if (HoldsNothing(request->operation())) {
    Answer(std::move(call),
           request,
           response,
           timed,
           &v1::Matcher::StubInterface::async_interface::Match,
           [request, response](const PoolView& view) { return view.Try(*request, response); });
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
  GetJob(call, get.get(), got.get(), [get, got, response, done](const absl::Status& status) {
    if (status.ok()) response->mutable_allocation()->Swap(got->mutable_allocation());
    done(status);
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
  GetJob(call, get.get(), got.get(), [get, got, cancel, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    cancel(got->job_id());
  });
}

// ---- what the ancestors ask

void ClusterCalls::GetGroup(CallInfo call,
                            const std::string& pool,
                            const std::string& name,
                            bool behind,
                            ::service::GroupResponse* response,
                            Done done) {
  const auto picks = [name, behind](const graph::Engine& engine) {
    if (!behind) return engine.KeysOf(name);
    const std::vector<graph::AllocationKey> keys = engine.Keys();
    const auto next = std::find_if(
        keys.begin(), keys.end(), [&name](const auto& key) { return key.job_id > name; });
    return next == keys.end() ? std::vector<graph::AllocationKey>() : engine.KeysOf(next->job_id);
  };
  LookAtJobs(PoolOf(pool), DeadlineOf(call), picks, [=](const auto& found) {
    if (!found.ok()) return done(found.status());
    const Jobs& jobs = found->second;
    if (jobs.empty()) {
      return done(behind ? absl::OkStatus()
                         : MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", name));
    }
    std::set<std::string_view> nodes;
    for (const graph::Placement& placement : jobs.begin()->second) {
      for (const graph::PlacedSlot& slot : placement.slots) {
        if (!slot.released) nodes.insert(slot.node);
      }
    }
    response->set_name(jobs.begin()->first);
    response->set_size(static_cast<int64_t>(nodes.size()));
    done(absl::OkStatus());
  });
}

void ClusterCalls::Drain() {
  desk_.Close();
  claims_.Drain();
}

SlotUnits ClusterCalls::UnitsOf(const std::string& /*pool*/) const {
  return PodUnits();
}

}  // namespace fluxqueue::matcher
