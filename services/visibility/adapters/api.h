// The server of the aggregated API: what the API server hands on of
// /apis/visibility.fluxqueue.io. It has authenticated and authorised who asks; nobody else is
// answered, as only it has a certificate of its front proxy. What it asks to know what there is
// (discovery) is answered without the queue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/http/server.h"
#include "libs/kubernetes/client.h"
#include "libs/lifecycle/loop_component.h"
#include "services/visibility/adapters/front_proxy.h"
#include "services/visibility/adapters/queue_calls.h"
#include "services/visibility/config.h"
#include "services/visibility/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::visibility {

// Thread-safe.
class Api {
 public:
  // References must outlive the object.
  Api(const VisibilityConfig& config,
      kubernetes::Client& client,
      const Clock& clock,
      VisibilityMetrics& metrics);
  ~Api();

  // Serves until it is told to stop, as the API server's front proxy is now; looks again at times.
  absl::Status Run(lifecycle::LoopContext& loop);
  // OK: it answers.
  absl::Status Ready() const;

 private:
  class Turn;

  absl::StatusOr<FrontProxy> Look();
  absl::Status Serve(const FrontProxy& proxy);
  // Stops the server, and waits for what it has begun to answer.
  void Drain();
  void Answer(const http::Request& request, const http::Respond& respond);
  void Ask(const http::Request& request, std::string_view path, std::shared_ptr<Turn> turn);

  const VisibilityConfig& config_;
  kubernetes::Client& client_;
  const Clock& clock_;
  VisibilityMetrics& metrics_;
  QueueCalls queue_;
  const std::string folder_;  // of the authority's file

  // Written while no server runs.
  FrontProxy proxy_;
  mutable std::mutex mutex_;
  std::condition_variable over_;          // a request has been answered
  std::map<std::string, int> under_way_;  // by user; guarded by mutex_
  int together_ = 0;                      // likewise
  bool serving_ = false;                  // likewise
  std::unique_ptr<http::Server> server_;  // the last: its handlers use the others
};

}  // namespace fluxqueue::visibility
