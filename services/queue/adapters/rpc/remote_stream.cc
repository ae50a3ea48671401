#include "services/queue/adapters/rpc/remote_stream.h"

#include "libs/base/status_macros.h"
#include "libs/rpc/grpc_status.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/adapters/rpc/unary_call.h"

namespace fluxqueue::queue {

std::shared_ptr<RemoteStream> RemoteStream::Start(const v1::WatchJobsRequest& request,
                                                  Caller caller,
                                                  Admit admit,
                                                  rpc::WorkerPool& judges,
                                                  peers::Peers& peers,
                                                  const std::stop_token& stop) {
  std::shared_ptr<RemoteStream> stream(new RemoteStream(request, std::move(caller)));
  stream->client_end_ = stream;
  stream->on_stop_.emplace(stop, [raw = stream.get()] { raw->context_.TryCancel(); });
  if (!judges.TryPost([stream, admit = std::move(admit), &peers] { stream->Call(admit, peers); })) {
    stream->ToClient::Finish(rpc::ToGrpcStatus(TooMany()));
  }
  return stream;
}

void RemoteStream::Call(const Admit& admit, peers::Peers& peers) {
  const absl::Status may = admit(&caller_);
  if (!may.ok()) return ToClient::Finish(rpc::ToGrpcStatus(may));
  HandOnAs(caller_, &context_);
  auto holder = peers.HolderOf(PoolOf(request_.pool()));
  if (!holder.ok()) return ToClient::Finish(rpc::ToGrpcStatus(holder.status()));
  stub_ = v1::Queue::NewStub(*holder);
  holder_end_ = client_end_;
  stub_->async()->WatchJobs(&context_, &request_, this);
  // Reads begin in the other reactor's callbacks: until the last one, the call is not over.
  FromHolder::AddHold();
  FromHolder::StartRead(&message_);
  FromHolder::StartCall();
}

void RemoteStream::OnReadDone(bool ok) {
  if (ok) {
    ToClient::StartWrite(&message_);
  } else {
    FromHolder::RemoveHold();
  }
}

void RemoteStream::OnWriteDone(bool ok) {
  if (ok) {
    FromHolder::StartRead(&message_);
  } else {
    context_.TryCancel();
    FromHolder::RemoveHold();
  }
}

void RemoteStream::OnCancel() {
  // A call that has not begun yet ends as soon as it does.
  context_.TryCancel();
}

void RemoteStream::OnDone(const grpc::Status& status) {
  const std::shared_ptr<RemoteStream> last = std::move(holder_end_);
  // Cancelled by us: for the client the stream has moved.
  const bool cancelled = status.error_code() == grpc::StatusCode::CANCELLED;
  ToClient::Finish(cancelled || status.ok()
                       ? rpc::ToGrpcStatus(Unavailable("the stream was cut: watch again"))
                       : status);
}

void RemoteStream::OnDone() {
  on_stop_.reset();
  const std::shared_ptr<RemoteStream> last = std::move(client_end_);
}

}  // namespace fluxqueue::queue
