#include "services/graph/rpc/private_graph_calls.h"

#include <charconv>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

absl::Status CancelledCall() {
  return MakeStatus(absl::StatusCode::kCancelled, "the client has gone, or its deadline is over");
}

absl::Status TimedMatch(PrivateGraph& graph,
                        const CallInfo& call,
                        const v1::MatchRequest& request,
                        v1::MatchResponse* response) {
  const auto begun = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(graph.Match(request, response));
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
  response->mutable_overhead()->set_seconds(took.count() / 1'000'000'000);
  response->mutable_overhead()->set_nanos(static_cast<int32_t>(took.count() % 1'000'000'000));
  const absl::Status held = call.Hold(request.ByteSizeLong() + response->ByteSizeLong());
  if (!held.ok() && response->job() != 0) {
    // The client will not know that there is such a job.
    v1::ReleaseRequest release;
    release.set_job(response->job());
    v1::ReleaseResponse released;
    RETURN_IF_ERROR(graph.Release(release, &released));
  }
  return held;
}

absl::StatusOr<graph::JobNumber> JobOfGroup(const std::string& name) {
  graph::JobNumber job = 0;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data(), end, job);
  if (result.ec == std::errc() && result.ptr == end) return job;
  return rpc::InField(
      InvalidArgument("group: groups of a private graph have the numbers of their jobs as names"),
      "group");
}

}  // namespace

PrivateGraphCalls::PrivateGraphCalls(std::unique_ptr<PrivateGraph> graph,
                                     rpc::WorkerPool& pool,
                                     const std::string& client)
    : client_(client),
      pool_(pool),
      strand_(std::make_shared<Strand>(pool, client)),
      graph_(std::move(graph)),
      units_(graph_->units()),
      vertices_(graph_->vertices()) {}

template <typename Work>
void PrivateGraphCalls::Run(CallInfo call, Done done, Work work) {
  strand_->Post([self = shared_from_this(),
                 call = std::move(call),
                 done = std::move(done),
                 work = std::move(work)]() mutable {
    done(call.cancelled() ? CancelledCall() : work(*self->graph_));
  });
}

void PrivateGraphCalls::Match(CallInfo call,
                              const v1::MatchRequest* request,
                              v1::MatchResponse* response,
                              Done done) {
  Run(call, std::move(done), [=](PrivateGraph& graph) -> absl::Status {
    RETURN_IF_ERROR(TimedMatch(graph, call, *request, response));
    return graph.GiveReason(*request, response);
  });
}

void PrivateGraphCalls::Release(CallInfo call,
                                const v1::ReleaseRequest* request,
                                v1::ReleaseResponse* response,
                                Done done) {
  Run(std::move(call), std::move(done), [=](PrivateGraph& graph) {
    return graph.Release(*request, response);
  });
}

void PrivateGraphCalls::GetJob(CallInfo call,
                               const v1::GetJobRequest* request,
                               v1::GetJobResponse* response,
                               Done done) {
  Run(std::move(call), std::move(done), [=](PrivateGraph& graph) {
    return graph.GetJob(*request, response);
  });
}

void PrivateGraphCalls::Explain(CallInfo call,
                                const v1::ExplainRequest* request,
                                v1::ExplainResponse* response,
                                Done done) {
  Run(std::move(call), std::move(done), [=](PrivateGraph& graph) {
    return graph.Explain(*request, response);
  });
}

void PrivateGraphCalls::Find(CallInfo call,
                             const v1::FindRequest* request,
                             v1::FindResponse* response,
                             Done done) {
  Run(std::move(call), std::move(done), [=](PrivateGraph& graph) {
    return graph.Find(*request, response);
  });
}

void PrivateGraphCalls::WhatIf(CallInfo call,
                               const v1::WhatIfRequest* request,
                               v1::WhatIfResponse* response,
                               Done done) {
  const absl::Status format = PrivateGraph::CheckFormat(request->format());
  if (!format.ok()) {
    done(format);
    return;
  }
  if (request->jobspecs_size() > PrivateGraph::kMostTrials) {
    done(rpc::InField(InvalidArgument("jobspecs: {} are too many; allowed are {}",
                                      request->jobspecs_size(),
                                      PrivateGraph::kMostTrials),
                      "jobspecs"));
    return;
  }
  const auto trying = [call = std::move(call), done = std::move(done), request, response](
                          PrivateGraph::Trials* trials) {
    absl::Status status;
    size_t bytes = request->ByteSizeLong();
    for (int i = 0; i < request->jobspecs_size() && status.ok(); ++i) {
      v1::WhatIfResponse::Trial* trial = response->add_trials();
      status =
          call.cancelled() ? CancelledCall() : trials->Try(*request, request->jobspecs(i), trial);
      if (absl::IsInvalidArgument(status)) {
        status = rpc::InField(std::move(status), fmt::format("jobspecs[{}]", i));
      }
      bytes += trial->ByteSizeLong();
      if (status.ok()) status = call.Hold(bytes);
    }
    done(status);
  };
  strand_->Post([self = shared_from_this(), trying] {
    self->trying_.push_back(trying);
    if (self->trying_.size() == 1) self->NextTrials();
  });
}

void PrivateGraphCalls::NextTrials() {
  if (trying_.empty()) return;
  auto trials = std::make_shared<PrivateGraph::Trials>(graph_->BeginTrials());
  pool_.Post(client_, [self = shared_from_this(), trials, trying = trying_.front()]() mutable {
    trying(trials.get());
    trials = nullptr;
    self->strand_->Post([self] {
      self->trying_.pop_front();
      self->NextTrials();
    });
  });
}

// Each piece is a task of the strand, so that others get in between.
class PrivateGraphCalls::Reader final : public GraphReader {
 public:
  Reader(std::shared_ptr<PrivateGraphCalls> calls, v1::GetGraphRequest::View view)
      : state_(std::make_shared<State>(std::move(calls), view)) {}

  void Next(v1::GetGraphResponse* piece, DonePiece done) override {
    Strand& strand = *state_->calls->strand_;
    strand.Post([state = state_, piece, done = std::move(done)] { done(state->Fill(piece)); });
  }

 private:
  struct State {
    State(std::shared_ptr<PrivateGraphCalls> of, v1::GetGraphRequest::View what)
        : calls(std::move(of)), view(what), writer(calls->graph_->Write()) {}

    bool Fill(v1::GetGraphResponse* piece) {
      piece->Clear();
      if (view == v1::GetGraphRequest::VIEW_SUMMARY) {
        if (summarised) return false;
        calls->graph_->Summarise(piece);
        summarised = true;
        return true;
      }
      piece->set_jgf(writer.Next(kPieceBytes));
      return !piece->jgf().empty();
    }

    const std::shared_ptr<PrivateGraphCalls> calls;
    const v1::GetGraphRequest::View view;
    graph::JgfWriter writer;
    bool summarised = false;
  };

  const std::shared_ptr<State> state_;
};

std::unique_ptr<GraphReader> PrivateGraphCalls::GetGraph(CallInfo /*call*/,
                                                         const v1::GetGraphRequest& request) {
  return std::make_unique<Reader>(shared_from_this(), request.view());
}

void PrivateGraphCalls::Watch(CallInfo call, std::shared_ptr<AllocationWatch> watch) {
  const absl::Status format = PrivateGraph::CheckFormat(watch->request().format());
  if (!format.ok()) {
    watch->End(format);
    return;
  }
  strand_->Post([self = shared_from_this(), call = std::move(call), watch = std::move(watch)] {
    if (!self->graph_->Watch(watch)) return;
    // It holds the graph, and the graph the watch: neither may keep the other.
    watch->AskForMore([graph = self->weak_from_this(), call, again = std::weak_ptr(watch)] {
      const auto there = graph.lock();
      const auto wanted = again.lock();
      if (there != nullptr && wanted != nullptr) there->Watch(call, wanted);
    });
  });
}

void PrivateGraphCalls::GetGroup(CallInfo call,
                                 const std::string& /*pool*/,
                                 const std::string& name,
                                 bool behind,
                                 ::service::GroupResponse* response,
                                 Done done) {
  Run(std::move(call),
      std::move(done),
      [name, behind, response](PrivateGraph& graph) -> absl::Status {
        graph::JobNumber job = 0;
        if (!name.empty() || !behind) {
          ASSIGN_OR_RETURN(job, JobOfGroup(name));
        }
        std::optional<PrivateGraph::Group> group;
        if (behind) {
          group = graph.GroupBehind(job);
        } else {
          ASSIGN_OR_RETURN(group, graph.GroupOf(job));
        }
        if (!group.has_value()) return absl::OkStatus();
        response->set_name(std::to_string(group->job));
        response->set_size(group->nodes);
        return absl::OkStatus();
      });
}

SlotUnits PrivateGraphCalls::UnitsOf(const std::string& /*pool*/) const {
  return units_;
}

void PrivateGraphCalls::Drop(const absl::Status& why) {
  strand_->Post([self = shared_from_this(), why] { self->graph_->EndWatches(why); });
}

}  // namespace fluxqueue::graph_service
