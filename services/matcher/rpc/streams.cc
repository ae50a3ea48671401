#include "services/matcher/rpc/streams.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/grpc_status.h"

namespace fluxqueue::matcher {
namespace {

// One request at a time: read, release, match, write. Of these one is under way, so that nothing is
// begun after the end; a stream that waits for its client when the matcher stops is cancelled when
// the server's time to drain is over.
class MatchStream final
    : public grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse> {
 public:
  MatchStream(CallInfo call, GraphOr graph, const OpenStreams& streams)
      : call_(std::move(call)), streams_(streams) {
    if (!graph.ok()) {
      Finish(rpc::ToGrpcStatus(graph.status()));
      return;
    }
    graph_ = *std::move(graph);
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    response_.Clear();
    response_.set_tag(request_.tag());
    if (request_.release() == 0) {
      Match();
    } else {
      Release();
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
    } else if (streams_.ending()) {
      Finish(rpc::ToGrpcStatus(StoppingMatcher()));
    } else {
      StartRead(&request_);
    }
  }

  void OnDone() override { delete this; }

 private:
  void Release() {
    release_.set_pool(request_.match().pool());
    release_.set_job(request_.release());
    graph_->Release(call_, &release_, &released_, [this](const absl::Status& status) {
      if (status.ok() || absl::IsNotFound(status)) {
        Match();
      } else {
        Answer(status);
      }
    });
  }

  void Match() {
    if (!request_.has_match()) {
      Answer(absl::OkStatus());
      return;
    }
    graph_->Match(
        call_, &request_.match(), response_.mutable_match(), [this](const absl::Status& status) {
          Answer(status);
        });
  }

  void Answer(const absl::Status& status) {
    if (!status.ok()) {
      response_.clear_match();
      response_.set_code(static_cast<int32_t>(status.code()));
      response_.set_message(Message(status));
    }
    StartWrite(&response_);
  }

  const CallInfo call_;
  const OpenStreams& streams_;
  std::shared_ptr<GraphCalls> graph_;
  v1::MatchStreamRequest request_;
  v1::MatchStreamResponse response_;
  v1::ReleaseRequest release_;
  v1::ReleaseResponse released_;
};

class GraphStream final : public grpc::ServerWriteReactor<v1::GetGraphResponse> {
 public:
  GraphStream(grpc::CallbackServerContext* context,
              GraphOr graph,
              const v1::GetGraphRequest& request)
      : context_(context) {
    if (!graph.ok()) {
      Finish(rpc::ToGrpcStatus(graph.status()));
      return;
    }
    reader_ = (*graph)->GetGraph(request);
    Next();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      Next();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnDone() override { delete this; }

 private:
  void Next() {
    if (context_->IsCancelled()) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    reader_->Next(&piece_, [this](const absl::StatusOr<bool>& more) {
      if (more.ok() && *more) {
        StartWrite(&piece_);
      } else {
        Finish(rpc::ToGrpcStatus(more.status()));
      }
    });
  }

  grpc::CallbackServerContext* const context_;
  std::unique_ptr<GraphReader> reader_;
  v1::GetGraphResponse piece_;
};

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchAllocationsResponse> {
 public:
  WatchStream(GraphOr graph, const v1::WatchAllocationsRequest& request, OpenStreams& streams)
      : streams_(streams),
        watch_(std::make_shared<AllocationWatch>(request, MatcherService::kWaitingEvents)) {
    if (!graph.ok()) {
      Finish(rpc::ToGrpcStatus(graph.status()));
      return;
    }
    graph_ = *std::move(graph);
    streams_.Add(watch_);
    graph_->Watch(watch_);
    Next();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) watch_->End(CancelledWatch());
    Next();
  }
  void OnCancel() override { watch_->End(CancelledWatch()); }
  void OnDone() override {
    watch_->End(CancelledWatch());
    streams_.Remove(watch_);
    delete this;
  }

 private:
  static absl::Status CancelledWatch() {
    return MakeStatus(absl::StatusCode::kCancelled, "the client has gone");
  }

  // REQUIRES: nothing of this call is under way, neither a write nor being woken. When it returns,
  // whoever woke it may have ended the call.
  void Next() {
    const std::shared_ptr<AllocationWatch> watch = watch_;
    absl::Status end;
    switch (watch->Take(&event_, &end, [this] { Next(); })) {
      case AllocationWatch::Taken::kEvent:
        StartWrite(&event_);
        break;
      case AllocationWatch::Taken::kEnd:
        Finish(rpc::ToGrpcStatus(end));
        break;
      case AllocationWatch::Taken::kNothing:
        break;
    }
  }

  OpenStreams& streams_;
  const std::shared_ptr<AllocationWatch> watch_;
  std::shared_ptr<GraphCalls> graph_;
  v1::WatchAllocationsResponse event_;
};

}  // namespace

absl::Status StoppingMatcher() {
  return Unavailable("the matcher is stopping");
}

grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>* NewMatchStream(
    CallInfo call, GraphOr graph, OpenStreams& streams) {
  return new MatchStream(std::move(call), std::move(graph), streams);
}

grpc::ServerWriteReactor<v1::GetGraphResponse>* NewGraphStream(grpc::CallbackServerContext* context,
                                                               GraphOr graph,
                                                               const v1::GetGraphRequest& request) {
  return new GraphStream(context, std::move(graph), request);
}

grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* NewWatchStream(
    GraphOr graph, const v1::WatchAllocationsRequest& request, OpenStreams& streams) {
  return new WatchStream(std::move(graph), request, streams);
}

}  // namespace fluxqueue::matcher
