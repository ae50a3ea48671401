#include "services/graph/rpc/streams.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/grpc_status.h"

namespace fluxqueue::graph_service {
namespace {

// One request at a time: read, release, match, write. Of these one is under way, so that nothing is
// begun after the end; a stream that waits for its client when the service stops is cancelled when
// the server's time to drain is over.
class MatchStream final
    : public grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse> {
 public:
  explicit MatchStream(const OpenStreams& streams) : streams_(streams) {}

  void Begin(ResolvedOr resolved) {
    if (!resolved.ok()) {
      Finish(rpc::ToGrpcStatus(resolved.status()));
      return;
    }
    resolved_ = *std::move(resolved);
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    response_.set_tag(request_.tag());
    const absl::Status held = resolved_.call.Hold(request_.ByteSizeLong());
    if (!held.ok()) {
      Forget(&request_);
      Answer(held);
    } else if (request_.release() == 0) {
      Match();
    } else {
      Release();
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
    } else if (streams_.ending()) {
      Finish(rpc::ToGrpcStatus(Stopping()));
    } else {
      Forget(&request_);
      Forget(&response_);
      resolved_.call.Hold(0).IgnoreError();  // less than before
      StartRead(&request_);
    }
  }

  void OnDone() override { delete this; }

 private:
  // What is cleared would keep its memory, while the client takes his time.
  template <typename Message>
  static void Forget(Message* message) {
    Message().Swap(message);
  }

  void Release() {
    release_.set_pool(request_.match().pool());
    release_.set_job(request_.release());
    resolved_.graph->Release(
        resolved_.call, &release_, &released_, [this](const absl::Status& status) {
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
    resolved_.graph->Match(resolved_.call,
                           &request_.match(),
                           response_.mutable_match(),
                           [this](const absl::Status& status) { Answer(status); });
  }

  void Answer(const absl::Status& status) {
    if (!status.ok()) {
      response_.clear_match();
      response_.set_code(static_cast<int32_t>(status.code()));
      response_.set_message(Message(status));
    }
    StartWrite(&response_);
  }

  const OpenStreams& streams_;
  Resolved resolved_;
  v1::MatchStreamRequest request_;
  v1::MatchStreamResponse response_;
  v1::ReleaseRequest release_;
  v1::ReleaseResponse released_;
};

class GraphStream final : public grpc::ServerWriteReactor<v1::GetGraphResponse> {
 public:
  GraphStream(grpc::CallbackServerContext* context, const v1::GetGraphRequest& request)
      : context_(context), request_(request) {}

  void Begin(ResolvedOr resolved) {
    if (!resolved.ok()) {
      Finish(rpc::ToGrpcStatus(resolved.status()));
      return;
    }
    resolved_ = *std::move(resolved);
    reader_ = resolved_.graph->GetGraph(resolved_.call, request_);
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
      const bool piece = more.ok() && *more;
      const absl::Status status =
          piece ? resolved_.call.Hold(piece_.ByteSizeLong()) : more.status();
      if (piece && status.ok()) {
        StartWrite(&piece_);
      } else {
        Finish(rpc::ToGrpcStatus(status));
      }
    });
  }

  grpc::CallbackServerContext* const context_;
  const v1::GetGraphRequest request_;
  Resolved resolved_;
  std::unique_ptr<GraphReader> reader_;
  v1::GetGraphResponse piece_;
};

// Of what has happened, for a client that watches.
constexpr size_t kWaitingBytes = size_t{8} << 20;

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchAllocationsResponse> {
 public:
  WatchStream(const v1::WatchAllocationsRequest& request, OpenStreams& streams)
      : streams_(streams), watch_(std::make_shared<AllocationWatch>(request, kWaitingBytes)) {}

  void Begin(ResolvedOr resolved) {
    if (!resolved.ok()) {
      Finish(rpc::ToGrpcStatus(resolved.status()));
      return;
    }
    resolved_ = *std::move(resolved);
    watch_->CountBy([call = resolved_.call](size_t bytes) { return call.Hold(bytes); });
    streams_.Add(watch_);
    resolved_.graph->Watch(resolved_.call, watch_);
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
  Resolved resolved_;
  v1::WatchAllocationsResponse event_;
};

// `bytes`: of the request, which is there until the stream ends.
template <typename Stream>
Stream* Begun(GraphResolver& graphs,
              grpc::CallbackServerContext* context,
              size_t bytes,
              Stream* stream) {
  constexpr size_t kMostRequest = size_t{4} << 10;
  if (bytes > kMostRequest) {
    stream->Begin(
        InvalidArgument("the request has {} bytes; at most {} are allowed", bytes, kMostRequest));
    return stream;
  }
  graphs.Resolve(
      context, bytes, false, [stream](ResolvedOr resolved) { stream->Begin(std::move(resolved)); });
  return stream;
}

}  // namespace

absl::Status Stopping() {
  return Unavailable("the graph service is stopping");
}

grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>* NewMatchStream(
    GraphResolver& graphs, grpc::CallbackServerContext* context, OpenStreams& streams) {
  return Begun(graphs, context, 0, new MatchStream(streams));
}

grpc::ServerWriteReactor<v1::GetGraphResponse>* NewGraphStream(GraphResolver& graphs,
                                                               grpc::CallbackServerContext* context,
                                                               const v1::GetGraphRequest& request) {
  return Begun(graphs, context, request.ByteSizeLong(), new GraphStream(context, request));
}

grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* NewWatchStream(
    GraphResolver& graphs,
    grpc::CallbackServerContext* context,
    const v1::WatchAllocationsRequest& request,
    OpenStreams& streams) {
  return Begun(graphs, context, request.ByteSizeLong(), new WatchStream(request, streams));
}

}  // namespace fluxqueue::graph_service
