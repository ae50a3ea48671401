// A WatchJobs call whose pool another replica holds: what that one says, message by message, as
// fast as our client reads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/peers/peers.h"
#include "libs/rpc/worker_pool.h"
#include "services/queue/adapters/rpc/caller.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

// Thread-safe.
class RemoteStream final : public grpc::ServerWriteReactor<v1::WatchJobsResponse>,
                           public grpc::ClientReadReactor<v1::WatchJobsResponse> {
 public:
  // Whether he may; and finds out who he is. Waits.
  using Admit = std::function<absl::Status(Caller* caller)>;

  // `admit` is called on a thread of `judges`. References must outlive the call. It lives until
  // gRPC is done with both of its ends, which is soon after `stop`.
  static std::shared_ptr<RemoteStream> Start(const v1::WatchJobsRequest& request,
                                             Caller caller,
                                             Admit admit,
                                             rpc::WorkerPool& judges,
                                             peers::Peers& peers,
                                             const std::stop_token& stop);

 private:
  using ToClient = grpc::ServerWriteReactor<v1::WatchJobsResponse>;
  using FromHolder = grpc::ClientReadReactor<v1::WatchJobsResponse>;

  RemoteStream(v1::WatchJobsRequest request, Caller caller)
      : request_(std::move(request)), caller_(std::move(caller)) {}

  void Call(const Admit& admit, peers::Peers& peers);

  // The client's end.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // The holder's end.
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const v1::WatchJobsRequest request_;
  Caller caller_;
  grpc::ClientContext context_;
  std::shared_ptr<v1::Queue::Stub> stub_;
  v1::WatchJobsResponse message_;  // read, and being written: never both
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::shared_ptr<RemoteStream> client_end_;  // until OnDone of each
  std::shared_ptr<RemoteStream> holder_end_;
};

}  // namespace fluxqueue::queue
