// The services of the ancestors on gRPC: each call is translated (domain/ancestors.h) and handed to
// the graph that it speaks of.
#pragma once

#include <functional>
#include <string>

#include "fluxcli/fluxcli.grpc.pb.h"
#include "fluxion/fluxion.grpc.pb.h"
#include "service/external_plugin.grpc.pb.h"

#include "libs/rpc/worker_pool.h"
#include "services/graph/rpc/graph_resolver.h"

namespace fluxqueue::graph_service {

class FluxionService final : public ::fluxion::FluxionService::CallbackService {
 public:
  // Both outlive the service.
  FluxionService(GraphResolver& graphs, rpc::WorkerPool& pool) : graphs_(graphs), pool_(pool) {}

  grpc::ServerUnaryReactor* Init(grpc::CallbackServerContext* context,
                                 const ::fluxion::InitRequest* request,
                                 ::fluxion::InitResponse* response) override;
  grpc::ServerUnaryReactor* Match(grpc::CallbackServerContext* context,
                                  const ::fluxion::MatchRequest* request,
                                  ::fluxion::MatchResponse* response) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const ::fluxion::CancelRequest* request,
                                   ::fluxion::CancelResponse* response) override;

 private:
  GraphResolver& graphs_;
  rpc::WorkerPool& pool_;
};

class FluxcliService final : public ::fluxcli::FluxcliService::CallbackService {
 public:
  // `graphs` outlives the service.
  explicit FluxcliService(GraphResolver& graphs) : graphs_(graphs) {}

  grpc::ServerUnaryReactor* Match(grpc::CallbackServerContext* context,
                                  const ::fluxcli::MatchRequest* request,
                                  ::fluxcli::MatchResponse* response) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const ::fluxcli::CancelRequest* request,
                                   ::fluxcli::CancelResponse* response) override;

 private:
  GraphResolver& graphs_;
};

class ExternalPluginService final : public ::service::ExternalPluginService::CallbackService {
 public:
  // A graph of more bytes is refused: it would not be a message. `graphs` outlives the service.
  ExternalPluginService(GraphResolver& graphs, int64_t max_message)
      : graphs_(graphs), max_message_(max_message) {}

  grpc::ServerUnaryReactor* GetResources(grpc::CallbackServerContext* context,
                                         const ::service::ResourceRequest* request,
                                         ::service::ResourceResponse* response) override;
  grpc::ServerUnaryReactor* ListGroups(grpc::CallbackServerContext* context,
                                       const ::service::GroupRequest* request,
                                       ::service::GroupResponse* response) override;
  grpc::ServerUnaryReactor* GetGroup(grpc::CallbackServerContext* context,
                                     const ::service::GroupRequest* request,
                                     ::service::GroupResponse* response) override;

 private:
  grpc::ServerUnaryReactor* Group(grpc::CallbackServerContext* context,
                                  const ::service::GroupRequest& request,
                                  bool behind,
                                  ::service::GroupResponse* response);

  GraphResolver& graphs_;
  const int64_t max_message_;
};

}  // namespace fluxqueue::graph_service
