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
#include "services/matcher/rpc/strand.h"

namespace fluxqueue::matcher {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr int kMostTrials = 1000;
constexpr std::string_view kNotHeld = "NOT_HELD";

std::string PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

absl::Status NotHeld(const std::string& pool) {
  return rpc::WithReason(
      Unavailable("pool {} is not held by this replica, or there is no such pool", pool), kNotHeld);
}

// What the answer is about, copied on the loop's thread.
PoolState StateOf(const PoolAtHand& pool, const std::function<bool(const std::string&)>& picks) {
  const graph::Engine& engine = pool.core.engine();
  PoolState state{.now_s = pool.now_s,
                  .policy = pool.core.config().policy(),
                  .levels = {},
                  .nodes = {},
                  .held = {}};
  state.levels.assign(pool.core.config().levels().begin(), pool.core.config().levels().end());
  std::set<std::string_view> names;
  for (const graph::AllocationKey& key : engine.Keys()) {
    if (picks && !picks(key.job_id)) continue;
    const graph::Placement& placement = *engine.Find(key);
    state.held.emplace_back(key, placement);
    for (const graph::PlacedSlot& slot : placement.slots) names.insert(slot.node);
  }
  state.nodes = engine.Nodes();
  if (picks) {
    std::erase_if(state.nodes,
                  [&names](const graph::NodeSpec& node) { return !names.contains(node.name); });
  }
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

// ---- looking

void ClusterCalls::Look(const std::string& pool,
                        Picks picks,
                        std::function<void(absl::StatusOr<View>)> look) {
  desk_.Ask(pool,
            [this, pool, picks = std::move(picks), look = std::move(look)](const PoolAtHand* at) {
              if (at == nullptr) {
                workers_.Post([pool, look] { look(NotHeld(pool)); });
                return;
              }
              auto state = std::make_shared<const PoolState>(StateOf(*at, picks));
              workers_.Post([state = std::move(state), look] {
                absl::StatusOr<std::unique_ptr<const PoolView>> view = PoolView::Make(*state);
                if (view.ok()) {
                  look(View(*std::move(view)));
                } else {
                  look(view.status());
                }
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
  there->context.set_deadline(
      std::min(call.deadline, std::chrono::system_clock::now() + Claims::kPatience));
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
                          Picks picks,
                          Remote<Request, Response> remote,
                          Work work) {
  const std::string pool = PoolOf(request->pool());
  Look(pool, std::move(picks), [=, this](const absl::StatusOr<View>& view) {
    if (view.ok()) return done(work(**view));
    if (!absl::IsUnavailable(view.status())) return done(view.status());
    HandOn(call, pool, request, response, done, remote);
  });
}

void ClusterCalls::GetJob(CallInfo call,
                          const v1::GetJobRequest* request,
                          v1::GetJobResponse* response,
                          Done done) {
  const auto picks = [request](const std::string& job_id) {
    return request->job_id().empty() ? NumberOf(job_id) == request->job()
                                     : job_id == request->job_id();
  };
  Answer(std::move(call),
         request,
         response,
         std::move(done),
         picks,
         &v1::Matcher::StubInterface::async_interface::GetJob,
         [request, response](const PoolView& view) { return view.GetJob(*request, response); });
}

void ClusterCalls::Explain(CallInfo call,
                           const v1::ExplainRequest* request,
                           v1::ExplainResponse* response,
                           Done done) {
  Answer(std::move(call),
         request,
         response,
         std::move(done),
         nullptr,
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
         nullptr,
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
         nullptr,
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
           nullptr,
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
                  .stays = request->operation() == v1::OPERATION_ALLOCATE_ORELSE_RESERVE},
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
    // What is unsatisfiable is rejected when it still is after a while.
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

// ---- streams

class ClusterCalls::Reader final : public GraphReader {
 public:
  Reader(ClusterCalls& calls, const v1::GetGraphRequest& request)
      : calls_(calls), request_(request), state_(std::make_shared<State>()) {}

  void Next(v1::GetGraphResponse* piece, DonePiece done) override {
    piece->Clear();
    const auto fill = [state = state_, view = request_.view(), piece, done = std::move(done)] {
      done(state->Fill(view, piece));
    };
    if (state_->view != nullptr) {
      calls_.workers_.Post(fill);
      return;
    }
    calls_.Look(PoolOf(request_.pool()),
                nullptr,
                [state = state_, fill, done = std::move(done)](absl::StatusOr<View> view) {
                  if (!view.ok()) return done(view.status());
                  state->view = *std::move(view);
                  state->writer.emplace(state->view->Write());
                  fill();
                });
  }

 private:
  struct State {
    bool Fill(v1::GetGraphRequest::View what, v1::GetGraphResponse* piece) {
      if (what != v1::GetGraphRequest::VIEW_SUMMARY) {
        piece->set_jgf(writer->Next(kPieceBytes));
        return !piece->jgf().empty();
      }
      if (std::exchange(summarised, true)) return false;
      view->Summarise(piece);
      return true;
    }

    View view;
    std::optional<graph::JgfWriter> writer;
    bool summarised = false;
  };

  ClusterCalls& calls_;
  const v1::GetGraphRequest request_;
  const std::shared_ptr<State> state_;
};

std::unique_ptr<GraphReader> ClusterCalls::GetGraph(const v1::GetGraphRequest& request) {
  return std::make_unique<Reader>(*this, request);
}

void ClusterCalls::Watch(std::shared_ptr<AllocationWatch> watch) {
  using Event = v1::WatchAllocationsResponse;
  const absl::Status format = FormatOf(watch->request().format()).status();
  if (!format.ok()) return watch->End(format);
  const std::string pool = PoolOf(watch->request().pool());
  // Events are made one after another, in the order in which they happened.
  const auto strand = std::make_shared<Strand>(workers_);
  const auto push = [strand, watch](
                        const PoolAtHand& at, const std::set<std::string>& jobs, bool beginning) {
    const auto state = std::make_shared<const PoolState>(
        StateOf(at, [&jobs, beginning](const std::string& job_id) {
          return beginning || jobs.contains(job_id);
        }));
    strand->Post(Strand::Length::kLong, [watch, state, jobs, beginning] {
      const auto view = PoolView::Make(*state);
      if (!view.ok()) return watch->End(view.status());
      std::set<std::string> all = jobs;
      for (const auto& [key, placement] : state->held) all.insert(key.job_id);
      for (const std::string& job_id : all) {
        Event event;
        event.set_job(NumberOf(job_id));
        event.set_job_id(job_id);
        event.set_kind((*view)->KindOf(job_id));
        if (beginning) event.set_kind(Event::KIND_HELD);
        if (event.kind() != Event::KIND_RELEASED) {
          (*view)->WriteJob(job_id,
                            {watch->request().format(), watch->request().nodes()},
                            event.mutable_allocation());
        }
        if (beginning) {
          watch->PushHeld(std::move(event));
        } else {
          watch->Push(std::move(event));
        }
      }
      if (!beginning) return;
      Event synced;
      synced.set_kind(Event::KIND_SYNCED);
      watch->PushHeld(std::move(synced));
    });
  };
  desk_.Ask(pool, [this, pool, watch, push](const PoolAtHand* at) {
    if (at == nullptr) return watch->End(NotHeld(pool));
    push(*at, {}, true);
    desk_.Watch(pool,
                [pool, watch, push](const PoolAtHand* now,
                                    const std::vector<graph::AllocationKey>& changed) {
                  if (now == nullptr) {
                    watch->End(Unavailable("pool {} moves to another replica: watch again", pool));
                  }
                  if (now == nullptr || watch->ended()) return false;
                  std::set<std::string> jobs;
                  for (const graph::AllocationKey& key : changed) jobs.insert(key.job_id);
                  push(*now, jobs, false);
                  return true;
                });
  });
}

// ---- what the ancestors ask

void ClusterCalls::GetGroup(CallInfo /*call*/,
                            const std::string& pool,
                            const std::string& name,
                            bool behind,
                            ::service::GroupResponse* response,
                            Done done) {
  desk_.Ask(PoolOf(pool), [this, pool, name, behind, response, done](const PoolAtHand* at) {
    absl::Status status = at == nullptr ? NotHeld(PoolOf(pool)) : absl::OkStatus();
    std::string found;
    std::set<std::string_view> nodes;
    if (at != nullptr) {
      const graph::Engine& engine = at->core.engine();
      for (const graph::AllocationKey& key : engine.Keys()) {
        const bool wanted = behind ? key.job_id > name : key.job_id == name;
        if (!wanted || (!found.empty() && key.job_id != found)) continue;
        found = key.job_id;
        for (const graph::PlacedSlot& slot : engine.Find(key)->slots) {
          if (!slot.released) nodes.insert(slot.node);
        }
      }
      response->set_name(found);
      response->set_size(static_cast<int64_t>(nodes.size()));
      if (found.empty() && !behind) {
        status = MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", name);
      }
    }
    workers_.Post([done, status] { done(status); });
  });
}

SlotUnits ClusterCalls::UnitsOf(const std::string& /*pool*/) const {
  return PodUnits();
}

}  // namespace fluxqueue::matcher
