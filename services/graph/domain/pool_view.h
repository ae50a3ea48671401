// A pool as it was at one moment, to be looked at and tried on, beside what is promised and with
// the windows closed: what the API says of the pools' graphs.
//
//   cluster ─► zone ─► rack ─► node ─► cpu | memory | pods | …        amounts, as in libs/graph
//
// Jobs have the numbers that NumberOf makes of their ids. Times are seconds since the pool's
// beginning.
//
// Pure; immutable, so that several threads may use it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/graph/general_engine.h"
#include "libs/graph/jgf_writer.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/slot_requests.h"
#include "services/graph/domain/api.h"
#include "services/graph/domain/graph_messages.h"
#include "services/graph/domain/pool_state.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

// Of the id that the queue knows a job by: positive, the same everywhere.
int64_t NumberOf(std::string_view job_id);

// What a change has made of it: allocated, reduced, released.
v1::WatchAllocationsResponse::Kind KindOf(const HeldByJob& held);

class PoolView {
 public:
  // With another engine's policy than the native ones: `first`. Internal: the state contradicts
  // itself.
  static absl::StatusOr<std::unique_ptr<const PoolView>> Make(const PoolState& state);

  // On these nodes, whether or not it is held here: of it all only the nodes are looked at.
  // ResourceExhausted: GraphMessages::WriteAllocation, as of Find and Try.
  absl::Status WriteJob(const HeldByJob& held,
                        const Wanted& wanted,
                        v1::Allocation* allocation) const;
  absl::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse* response) const;
  absl::Status Find(const v1::FindRequest& request, v1::FindResponse* response) const;
  // Of operations that hold nothing.
  absl::Status Try(const v1::MatchRequest& request, v1::MatchResponse* response) const;

  // Jobs one after the other, each with the places of those before it taken. InvalidArgument for
  // the jobspec; also for one whose slots differ, which only the queue can place.
  class Trials {
   public:
    absl::Status Try(const v1::WhatIfRequest& request,
                     const std::string& jobspec,
                     v1::WhatIfResponse::Trial* trial);

   private:
    friend class PoolView;
    explicit Trials(const PoolView& view) : view_(view), engine_(view.engine_->Snapshot()) {}

    absl::StatusOr<graph::MatchAnswer> Place(const std::vector<graph::JobRequest>& ways);

    const PoolView& view_;
    std::unique_ptr<graph::GeneralEngine> engine_;
    graph::JobNumber job_ = graph::JobNumber{1} << 62;  // the last one
  };
  // `view` outlives it.
  Trials BeginTrials() const { return Trials(*this); }

  void Summarise(v1::GetGraphResponse* response) const;
  graph::JgfWriter Write() const { return graph::JgfWriter(engine_->graph()); }

 private:
  PoolView() = default;

  // By vertex: how much of it.
  using Vertices = std::map<graph::VertexId, graph::HeldVertex>;

  // What the jobspec stands for, in the order in which it is tried.
  absl::StatusOr<std::vector<graph::JobRequest>> Ways(const std::string& text) const;
  // Why it has no place now, for people.
  absl::StatusOr<std::string> ReasonFor(const std::string& jobspec) const;
  absl::Status WriteInWorldTime(const graph::Holding& holding,
                                const Wanted& wanted,
                                v1::Allocation* allocation) const;
  void AddSlot(const graph::PlacedSlot& slot,
               const graph::Amounts& request,
               Vertices* vertices) const;
  graph::HeldVertex& At(graph::VertexId v, Vertices* vertices) const;
  // It is held, or only on the way to what is held.
  void Hold(graph::VertexId v, int64_t amount, Vertices* vertices) const;
  void Pass(graph::VertexId v, Vertices* vertices) const;

  int64_t now_s_ = 0;
  std::vector<graph::Level> levels_;
  std::vector<graph::Level> in_use_;
  std::unique_ptr<graph::GeneralEngine> engine_;
  std::unique_ptr<GraphMessages> messages_;
  std::unordered_map<std::string, graph::VertexId> nodes_;  // by name
  std::map<graph::JobNumber, std::string> job_ids_;         // of the engine's jobs, if they run
};

}  // namespace fluxqueue::graph_service
