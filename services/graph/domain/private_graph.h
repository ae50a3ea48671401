// A graph that belongs to one client: what the API does on it, in the API's own messages.
//
// A match of a jobspec that came before costs no parsing, and writes only what it is asked for.
// Jobs that were given back are known for a time (kReleasedKept of them).
//
// Pure: no clock, thread or I/O; does not throw. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "libs/graph/jgf_writer.h"
#include "libs/reapi/session.h"
#include "services/graph/domain/allocation_watch.h"
#include "services/graph/domain/api.h"
#include "services/graph/domain/graph_messages.h"
#include "services/graph/domain/slot_units.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

class PrivateGraph {
 public:
  static constexpr size_t kReleasedKept = 100'000;
  static constexpr int kMostTrials = 1000;
  // All jobs together hold and have reserved so many vertices, each time that one is held: so many
  // for each vertex of the graph, and some more for small ones. What a job only leads through
  // counts, too.
  static constexpr int64_t kHeldOfEach = 16;
  static constexpr int64_t kHeldBesides = 100'000;

  // InvalidArgument, with the field, for a graph or options that cannot be read.
  // ResourceExhausted, with the reason GRAPH_SIZE: an R names more than `most_vertices`, which it
  // can do in few bytes.
  static absl::StatusOr<std::unique_ptr<PrivateGraph>> Make(const v1::CreateGraphRequest& request,
                                                            int64_t most_vertices);

  // In all of these the status is the call's; `response` is filled when it is OK. NotFound,
  // InvalidArgument (with the field) and AlreadyExists, as the proto says; ResourceExhausted: the
  // jobs would hold too much (HOLD_LIMIT), or the answer would be too large (ANSWER_SIZE); then a
  // Match holds nothing. It leaves `overhead` and the reason out.
  absl::Status Match(const v1::MatchRequest& request, v1::MatchResponse* response);
  // The reason that `request.explain` asks for; nothing happens when there was a place. A look at
  // every node, so it stands apart.
  absl::Status GiveReason(const v1::MatchRequest& request, v1::MatchResponse* response);
  absl::Status Release(const v1::ReleaseRequest& request, v1::ReleaseResponse* response);
  absl::Status GetJob(const v1::GetJobRequest& request, v1::GetJobResponse* response) const;
  absl::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse* response);
  absl::Status Find(const v1::FindRequest& request, v1::FindResponse* response) const;

  // What WhatIf is tried on: a copy, which may be used on another thread.
  class Trials {
   public:
    explicit Trials(std::unique_ptr<PrivateGraph> copy) : copy_(std::move(copy)) {}
    // One more, with the places of those before it taken. InvalidArgument for the jobspec.
    absl::Status Try(const v1::WhatIfRequest& request,
                     const std::string& jobspec,
                     v1::WhatIfResponse::Trial* trial);

   private:
    std::unique_ptr<PrivateGraph> copy_;
  };
  Trials BeginTrials() const;

  // Sums by type, in the order in which a walk from the top comes to the types.
  void Summarise(v1::GetGraphResponse* response) const;
  graph::JgfWriter Write() const { return graph::JgfWriter(engine().graph()); }

  // InvalidArgument for one that is not known.
  static absl::Status CheckFormat(v1::Format format);

  // Tells `watch` a piece of what is held, by the jobs' numbers, and from now on what happens to
  // the jobs that it was told of. True: called again, it tells the next piece. REQUIRES: its format
  // is known.
  bool Watch(const std::shared_ptr<AllocationWatch>& watch);
  // Ends all watches: the graph goes.
  void EndWatches(const absl::Status& why);

  // The first job behind `job` that holds something, and on how many nodes; nothing: there is none.
  struct Group {
    graph::JobNumber job = 0;
    int64_t nodes = 0;
  };
  std::optional<Group> GroupBehind(graph::JobNumber job) const;
  // NotFound when it holds nothing.
  absl::StatusOr<Group> GroupOf(graph::JobNumber job) const;

  const SlotUnits& units() const { return units_; }
  int64_t vertices() const { return static_cast<int64_t>(engine().graph().vertices().size()); }

 private:
  using Request = std::shared_ptr<const graph::JobRequest>;

  explicit PrivateGraph(std::unique_ptr<reapi::Session> session);

  const graph::GeneralEngine& engine() const { return session_->engine(); }
  absl::StatusOr<Request> Parse(const std::string& jobspec);
  absl::StatusOr<graph::JobNumber> NumberFor(int64_t asked);
  struct Watcher {
    std::shared_ptr<AllocationWatch> watch;
    graph::JobNumber told = 0;  // the last job of the list so far
    bool synced = false;        // that was all
  };

  // ResourceExhausted, with the reason HOLD_LIMIT: jobs hold so much that no other may.
  absl::Status CheckRoom(graph::MatchOperation operation) const;
  // Vertices that the job holds or has reserved.
  int64_t HeldBy(graph::JobNumber job) const;
  // Held now.
  std::map<graph::TypeId, int64_t> HeldByType() const;
  // `holding`: null when the job holds nothing any more.
  void Tell(v1::WatchAllocationsResponse::Kind kind,
            graph::JobNumber job,
            const graph::Holding* holding);
  v1::WatchAllocationsResponse EventOf(v1::WatchAllocationsResponse::Kind kind,
                                       graph::JobNumber job,
                                       const graph::Holding* holding,
                                       const Wanted& wanted) const;
  void Released(graph::JobNumber job);

  std::unique_ptr<reapi::Session> session_;
  GraphMessages messages_;
  SlotUnits units_;
  std::unordered_map<std::string, Request> parsed_;  // by their text
  std::deque<graph::JobNumber> released_;            // oldest first
  int64_t held_ = 0;                                 // vertices, of all jobs together
  std::vector<Watcher> watchers_;
};

}  // namespace fluxqueue::graph_service
