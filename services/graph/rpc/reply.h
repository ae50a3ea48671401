// The end of a unary call. It keeps the call's place until gRPC is done with the answer: a client
// that reads no answers has so many under way, and no more.
#pragma once

#include <memory>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "services/graph/rpc/client_calls.h"

namespace fluxqueue::graph_service {

// Owns itself, and goes some time after Finish.
class Reply final : public grpc::ServerUnaryReactor {
 public:
  // REQUIRES: before Finish.
  void Keep(std::shared_ptr<ClientCalls::Place> place) { place_ = std::move(place); }

  void OnDone() override { delete this; }

 private:
  std::shared_ptr<ClientCalls::Place> place_;
};

}  // namespace fluxqueue::graph_service
