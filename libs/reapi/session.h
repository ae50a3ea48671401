// What a context of Fluxion's C interface does, on our engine: reapi_cli.cc makes C of it.
//
// Jobs are matched at time 0, as Fluxion's interface does. A job that was cancelled is still known
// (Info). What is copied, grown or shrunk is this session alone: Fluxion shares the jobs of a clone
// with its origin, and goes on counting the nodes that were up when it was loaded.
//
// Pure; not thread-safe, but sessions share nothing. The status codes, and Fluxion's errno for
// each:
//   InvalidArgument EINVAL     NotFound ENOENT      AlreadyExists EEXIST
//   ResourceExhausted EBUSY (not now)               FailedPrecondition ENODEV (not ever)
//   DataLoss EPROTO (a text that makes no graph)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libs/graph/general_engine.h"
#include "libs/reapi/session_options.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::reapi {

using graph::JobNumber;

enum class JobMode { kAllocated, kReserved, kCanceled };

// ALLOCATED, RESERVED, CANCELED.
std::string_view NameOf(JobMode mode);

struct JobInfo {
  JobMode mode = JobMode::kAllocated;
  int64_t at_s = 0;
};

struct Placement {
  bool reserved = false;
  int64_t at_s = 0;
  graph::Holding holding;  // empty: satisfiable, nothing was placed
  std::string resources;   // the same in the session's match format
};

class Session {
 public:
  // InvalidArgument for the options, and for properties that are no strings; DataLoss for a graph
  // that is none.
  static absl::StatusOr<std::unique_ptr<Session>> Make(std::string_view graph,
                                                       std::string_view options);

  std::unique_ptr<Session> Clone() const;

  // ResourceExhausted, FailedPrecondition; InvalidArgument for the jobspec; AlreadyExists when the
  // job holds something.
  absl::StatusOr<Placement> Match(graph::MatchOperation operation,
                                  std::string_view jobspec,
                                  JobNumber job);
  // By Fluxion's number, from 1 on; InvalidArgument when it is none.
  absl::StatusOr<Placement> Match(int operation, std::string_view jobspec, JobNumber job);
  // The two halves of Match, for jobspecs that come again and resources that are not written.
  // InvalidArgument for the jobspec.
  absl::StatusOr<graph::JobRequest> Parse(std::string_view jobspec) const;
  // That there is no place is an answer. AlreadyExists as above. REQUIRES: `request` is by Parse.
  absl::StatusOr<graph::MatchAnswer> Place(graph::MatchOperation operation,
                                           const graph::JobRequest& request,
                                           JobNumber job);
  // A number that no job has had, for Match. Each is given once.
  JobNumber NextJob();

  // Holds again what R says; what is given back is R as the session writes it. AlreadyExists when
  // the job holds something; InvalidArgument for an R that is none, that names what the graph does
  // not have, or what is held by another job at that time.
  absl::StatusOr<Placement> Restore(JobNumber job, std::string_view resources);

  // NotFound for a job that never was, or was cancelled.
  absl::Status Cancel(JobNumber job);
  // Gives back what R names; true when that was all. With the scheduling key: those vertices.
  // Without it: all that the job holds on those ranks; InvalidArgument when R names only a part of
  // that. NotFound when nothing is allocated to the job (it may be reserved).
  absl::StatusOr<bool> CancelPart(JobNumber job, std::string_view resources);

  // Of a job that was cancelled nothing is known any more; others stay.
  void Forget(JobNumber job);

  // NotFound for a job that never held anything.
  absl::StatusOr<JobInfo> Info(JobNumber job) const;
  // All that ever held something.
  const std::map<JobNumber, JobInfo>& jobs() const { return jobs_; }

  // Nothing: no vertex meets the criteria. `format`: the session's own when there is none.
  absl::StatusOr<std::optional<std::string>> Find(std::string_view criteria,
                                                  std::optional<std::string_view> format) const;

  // As if they were held; empty when no vertex meets the criteria.
  absl::StatusOr<graph::Holding> FindVertices(std::string_view criteria) const;

  absl::Status AddSubgraph(std::string_view jgf);
  // From the jobs that hold some of it, too; one that held nothing else goes on, holding nothing,
  // until it is cancelled. NotFound for an unknown path.
  absl::Status RemoveSubgraph(std::string_view path);

  // InvalidArgument for an unknown path. What is below a vertex that is down is not given out.
  absl::Status SetUp(std::string_view path, bool up);
  // Whether the vertex was marked up.
  absl::StatusOr<bool> IsUp(std::string_view path) const;
  // NotFound for an unknown path.
  absl::Status SetProperty(std::string_view path, std::string key, std::string value);

  const graph::GeneralEngine& engine() const { return *engine_; }

 private:
  Session(std::unique_ptr<graph::GeneralEngine> engine, graph::SetFormat format)
      : engine_(std::move(engine)), format_(format) {}

  Placement PlacementOf(graph::Holding holding) const;
  absl::Status CheckFree(const graph::Holding& wanted) const;
  absl::StatusOr<std::vector<graph::VertexId>> WholeRanks(const graph::Holding& held,
                                                          const graph::Holding& named) const;

  std::unique_ptr<graph::GeneralEngine> engine_;
  graph::SetFormat format_;
  std::map<JobNumber, JobInfo> jobs_;
  JobNumber next_job_ = 1;
};

}  // namespace fluxqueue::reapi
