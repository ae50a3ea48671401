// A pool as it was at one moment, to be looked at and tried on: what the API says of the pools'
// graphs.
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
#include <utility>
#include <vector>

#include "fluxqueue/matcher/v1/matcher.pb.h"

#include "libs/graph/general_engine.h"
#include "libs/graph/jgf_writer.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/slot_requests.h"
#include "libs/graph/types.h"
#include "services/matcher/domain/graph_messages.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

// Of the id that the queue knows a job by: positive, the same everywhere.
int64_t NumberOf(std::string_view job_id);

struct PoolState {
  int64_t now_s = 0;
  std::string policy;
  std::vector<std::string> levels;
  std::vector<graph::NodeSpec> nodes;
  std::vector<std::pair<graph::AllocationKey, graph::Placement>> held;
};

class PoolView {
 public:
  // With another engine's policy than the native ones: `first`. Internal: the state contradicts
  // itself.
  static absl::StatusOr<std::unique_ptr<const PoolView>> Make(const PoolState& state);

  // What the job of this id, or of this number, holds. NotFound when that is nothing.
  absl::Status GetJob(const v1::GetJobRequest& request, v1::GetJobResponse* response) const;
  void WriteJob(const std::string& job_id, const Wanted& wanted, v1::Allocation* allocation) const;
  // What a change has made of it: allocated, reduced, released.
  v1::WatchAllocationsResponse::Kind KindOf(const std::string& job_id) const;
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

    const PoolView& view_;
    std::unique_ptr<graph::GeneralEngine> engine_;
    graph::JobNumber next_ = graph::JobNumber{1} << 62;
  };
  // `view` outlives it.
  Trials BeginTrials() const { return Trials(*this); }

  void Summarise(v1::GetGraphResponse* response) const;
  graph::JgfWriter Write() const { return graph::JgfWriter(engine_->graph()); }

 private:
  // What one allocation is to the engine.
  struct Held {
    std::string job_id;
    graph::Holding holding;  // of all its groups of slots; at its own time
    bool reduced = false;    // some slots were given back before the rest
  };

  PoolView() = default;

  absl::StatusOr<std::vector<graph::JobRequest>> Ways(const std::string& jobspec) const;
  v1::Allocation ToWorldTime(const graph::Holding& holding, const Wanted& wanted) const;
  graph::Holding HoldingOf(std::string_view job_id) const;

  int64_t now_s_ = 0;
  std::vector<graph::Level> levels_;
  std::vector<graph::Level> in_use_;
  std::unique_ptr<graph::GeneralEngine> engine_;
  std::unique_ptr<GraphMessages> messages_;
  std::vector<Held> held_;                        // sorted by job id
  std::map<graph::JobNumber, size_t> by_engine_;  // which of held_ a job of the engine is
};

}  // namespace fluxqueue::matcher
