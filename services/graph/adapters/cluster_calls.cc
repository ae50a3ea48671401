#include "services/graph/adapters/cluster_calls.h"

#include <chrono>
#include <optional>
#include <set>
#include <utility>

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

}  // namespace

std::string ClusterCalls::PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

// ---- looking

absl::Status ClusterCalls::Check(const CallInfo& call, const std::string& pool) const {
  if (call.cancelled()) return Late();
  RETURN_IF_ERROR(CheckName("pool", pool));
  return judge_.MayLookAt(call.caller, PoolOf(pool));
}

void ClusterCalls::Answer(const CallInfo& call, const std::string& pool, Done done, Work work) {
  const auto asked = std::chrono::steady_clock::now();
  workers_.Post(call.Tenant(), [=, this, done = std::move(done), work = std::move(work)] {
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
  auto answer = [=, this, pick = std::move(pick), done = std::move(done), work = std::move(work)] {
    const absl::Status wanted =
        whose == Whose::kAnybodys ? Check(call, pool) : CheckName("pool", pool);
    if (!wanted.ok()) return done(wanted);
    const absl::StatusOr<PoolPictures::Held> held = pictures_.Find(PoolOf(pool), pick);
    done(held.ok() ? work(*held) : held.status());
  };
  workers_.Post(call.Tenant(), std::move(answer));
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
  absl::Status wrong = FormatOf(request->format()).status();
  if (wrong.ok()) wrong = CheckName("job_id", request->job_id());
  if (!wrong.ok()) return done(wrong);
  const PoolPictures::Pick pick = request->job_id().empty()
                                      ? PickNumber(PoolOf(request->pool()), request->job())
                                      : PickId(request->job_id());
  const auto work = [request, response](const PoolPictures::Held& held) -> absl::Status {
    const auto job = held.jobs.begin();
    if (job == held.jobs.end() || job->second.empty()) {
      return HoldsNothing(request->job_id().empty() ? std::to_string(request->job())
                                                    : request->job_id());
    }
    response->set_job(NumberOf(job->first));
    response->set_job_id(job->first);
    response->set_state(v1::JOB_STATE_ALLOCATED);
    return held.nodes->WriteJob(
        job->second, {request->format(), request->nodes()}, response->mutable_allocation());
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
           size_t bytes = request->ByteSizeLong();
           for (int i = 0; i < request->jobspecs_size(); ++i) {
             if (call.cancelled()) {
               return MakeStatus(absl::StatusCode::kCancelled, "the client has gone");
             }
             v1::WhatIfResponse::Trial* trial = response->add_trials();
             const absl::Status status = trials.Try(*request, request->jobspecs(i), trial);
             if (!status.ok()) return rpc::InField(status, fmt::format("jobspecs[{}]", i));
             bytes += trial->ByteSizeLong();
             RETURN_IF_ERROR(call.Hold(bytes));
           }
           return absl::OkStatus();
         });
}

// ---- what the ancestors ask

void ClusterCalls::GetGroup(CallInfo call,
                            const std::string& pool,
                            const std::string& name,
                            bool behind,
                            ::service::GroupResponse* response,
                            Done done) {
  const absl::Status named = CheckName("group", name);
  if (!named.ok()) return done(named);
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
    calls_.workers_.Post(state_->call.Tenant(),
                         [&calls = calls_, state = state_, piece, asked, done = std::move(done)] {
                           piece->Clear();
                           const absl::Status begun = state->view == nullptr
                                                          ? state->Begin(calls, asked)
                                                          : absl::OkStatus();
                           if (!begun.ok()) return done(begun);
                           done(state->Fill(piece));
                         });
  }

 private:
  struct State {
    State(CallInfo by, v1::GetGraphRequest of) : call(std::move(by)), request(std::move(of)) {}

    absl::Status Begin(ClusterCalls& calls, PoolPictures::TimePoint asked) {
      RETURN_IF_ERROR(calls.Check(call, request.pool()));
      ASSIGN_OR_RETURN(place, calls.readers_.Enter(call.caller.user));
      ASSIGN_OR_RETURN(view, calls.pictures_.Look(PoolOf(request.pool()), asked));
      writer.emplace(view->Write());
      return absl::OkStatus();
    }
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
    std::shared_ptr<ClientCalls::Place> place;
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
  workers_.Post(call.Tenant(), [this, call, watch = std::move(watch)] {
    const std::string pool = PoolOf(watch->request().pool());
    const absl::Status wanted = Check(call, pool);
    if (!wanted.ok()) return watch->End(wanted);
    feed_.Watch(pool, watch);
  });
}

}  // namespace fluxqueue::graph_service
