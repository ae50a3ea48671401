// What the queue is asked for a request to the aggregated API, in the name of who made it: the
// queue judges him.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/clock.h"
#include "libs/rpc/caller.h"
#include "libs/rpc/channel.h"
#include "services/visibility/domain/request.h"

#include "absl/status/statusor.h"

namespace fluxqueue::visibility {

// Thread-safe.
class QueueCalls {
 public:
  // `clock` must outlive the object.
  QueueCalls(std::string address, rpc::ChannelFiles files, const Clock& clock);

  // The object, as text; or an error of the queue, as its status. Called once, from a thread of
  // gRPC's.
  using Answer = std::function<void(absl::StatusOr<std::string>)>;
  void Do(const Ask& ask, bool as_table, const rpc::Caller& caller, Answer answer);
  // Those under way, and all that come later.
  void Cancel() { stop_.request_stop(); }

 private:
  struct Call;

  absl::StatusOr<std::shared_ptr<queue::v1::Queue::Stub>> Stub();

  const std::string address_;
  const Clock& clock_;
  rpc::Dialer dialer_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::shared_ptr<queue::v1::Queue::Stub> stub_;  // guarded by mutex_
};

}  // namespace fluxqueue::visibility
