// What the RPCs ask of a graph: a private one (private_graph_calls.h), or the pools' (the
// implementation that the app hands in as ClusterGraph).
//
// Every call is asynchronous: it returns at once, or after a few microseconds of work, and says
// `done` once, from any thread, also before it returns. Until then request and response live; the
// response is filled when the status is OK. A call whose client has gone or whose deadline is over
// (CallInfo::cancelled) may be ended early with Cancelled. Match gives back what it has placed when
// the answer is more than the caller may have in memory (CallInfo::Hold). Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "service/external_plugin.pb.h"

#include "libs/access/rights.h"
#include "libs/rpc/caller.h"
#include "services/graph/domain/allocation_watch.h"
#include "services/graph/domain/api.h"
#include "services/graph/domain/slot_units.h"
#include "services/graph/rpc/client_calls.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

struct CallInfo {
  // The far future when the client gave none.
  std::chrono::system_clock::time_point deadline;
  // May be asked until `done`.
  std::function<bool()> cancelled;
  // Of the call, for calls on its behalf; empty: none.
  std::string traceparent = {};
  rpc::Caller caller = {};
  // Its place among the caller's calls, until the last copy has gone. Null: it is one of ours.
  std::shared_ptr<ClientCalls::Place> place = {};

  // Whose turn it takes among the workers.
  std::string Tenant() const { return std::string(access::TenantOf(caller.user)); }
  // As Place::Hold.
  absl::Status Hold(size_t bytes) const {
    return place == nullptr ? absl::OkStatus() : place->Hold(static_cast<int64_t>(bytes));
  }
};

using Done = std::function<void(const absl::Status&)>;

// A graph, piece by piece. One Next at a time.
class GraphReader {
 public:
  virtual ~GraphReader() = default;
  // True: `piece` is the next one. False: that was all.
  using DonePiece = std::function<void(absl::StatusOr<bool>)>;
  virtual void Next(v1::GetGraphResponse* piece, DonePiece done) = 0;
};

class GraphCalls {
 public:
  virtual ~GraphCalls() = default;

  virtual void Match(CallInfo call,
                     const v1::MatchRequest* request,
                     v1::MatchResponse* response,
                     Done done) = 0;
  virtual void Release(CallInfo call,
                       const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response,
                       Done done) = 0;
  virtual void GetJob(CallInfo call,
                      const v1::GetJobRequest* request,
                      v1::GetJobResponse* response,
                      Done done) = 0;
  virtual void Explain(CallInfo call,
                       const v1::ExplainRequest* request,
                       v1::ExplainResponse* response,
                       Done done) = 0;
  virtual void Find(CallInfo call,
                    const v1::FindRequest* request,
                    v1::FindResponse* response,
                    Done done) = 0;
  virtual void WhatIf(CallInfo call,
                      const v1::WhatIfRequest* request,
                      v1::WhatIfResponse* response,
                      Done done) = 0;

  // Errors are said by the reader.
  virtual std::unique_ptr<GraphReader> GetGraph(CallInfo call,
                                                const v1::GetGraphRequest& request) = 0;
  // Tells `watch` what is held, KIND_SYNCED, then what happens, until it has ended. Errors end it.
  virtual void Watch(CallInfo call, std::shared_ptr<AllocationWatch> watch) = 0;

  // What ExternalPluginService asks of the pool's groups (external_plugin.proto). `behind`: the
  // first behind that name, without a name when there is none; else the group of that name.
  virtual void GetGroup(CallInfo call,
                        const std::string& pool,
                        const std::string& name,
                        bool behind,
                        ::service::GroupResponse* response,
                        Done done) = 0;
  // How it names and counts what pods need.
  virtual SlotUnits UnitsOf(const std::string& pool) const = 0;
  // At stop: calls under way come to their end.
  virtual void Drain() {}
};

// The graphs of the pools (adapters/cluster_calls.h). A request without a pool is about the pool
// "default". Match is a command to the queue that submits a claim, and says `done` when its cycle
// has answered; its `job_id` makes a repeated call the same command. Ancestors' clients know jobs
// by `job` alone, a number that Release and GetJob know again.
using ClusterGraph = GraphCalls;

}  // namespace fluxqueue::graph_service
