// Who makes a call, and whether he may: every call is judged here before anything else is done for
// it, by the table of libs/access/rights.h.
//
// A job that the caller may not look at is one that is not there. What he may look at and not act
// on is PERMISSION_DENIED, with the right that he lacks. Where nobody can be asked the call is
// UNAVAILABLE, also about a job that is not there.
//
// Without an authority (callers are not asked for) all may do everything.
//
// The functions wait for the authority: not for gRPC's own threads. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/queue.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/access/authority.h"
#include "libs/job_store/fact_store.h"
#include "services/queue/adapters/rpc/caller.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

// Jobs that a caller asks for, as far as he may see them.
struct JobScope {
  job_store::FactFilter filter{};
  // The queue grants it: one that has left it is seen no more.
  bool only_in_queue = false;
  std::string tenant{};  // who asks (access::TenantOf); empty: nobody is known
};

// What the claims of one user may come to; unset: any number.
struct ClaimQuota {
  std::optional<int64_t> claims{};
  std::optional<int64_t> bytes{};  // of their jobspecs

  bool empty() const { return !claims && !bytes; }
  friend bool operator==(const ClaimQuota&, const ClaimQuota&) = default;
};

// What the command does to its job. REQUIRES: it is about one that is there.
access::Act ActOf(const events::v1::CommandAccepted& command);

class CallJudge {
 public:
  // Null: all may do everything. It outlives the object.
  explicit CallJudge(access::Authority* authority) : authority_(authority) {}

  // Callers are known: what they make is theirs.
  bool on() const { return authority_ != nullptr; }

  // Finds out whose its token is, if it has one. REQUIRES: then on().
  absl::Status Identify(Caller* caller) const;

  // The job, if it is there for this caller.
  absl::StatusOr<events::v1::JobFact> FindJob(const Caller& caller,
                                              job_store::FactStore& facts,
                                              const std::string& job_id,
                                              access::Act act) const;
  // Unavailable: not now, so that an authority that is away says nothing of what is not there.
  absl::Status CanBeAsked(const Caller& caller) const;
  // NotFound: it is not there for him.
  absl::Status MayDoTo(const Caller& caller,
                       access::Act act,
                       const events::v1::JobFact& fact) const;
  // What the command wants of the job, beyond the right to command it: a priority, another queue.
  absl::Status MayWant(const Caller& caller,
                       const events::v1::CommandAccepted& command,
                       const events::v1::JobFact& job) const;
  // Whether the queue takes the job as it would a new one: its limits, its classes of QOS, its
  // quota. `use`: of the job's namespace.
  absl::Status TakesAsNew(const Caller& caller,
                          const std::string& queue,
                          const v1::JobRow& job,
                          const std::map<std::string, job_store::QueueUse>& use) const;
  absl::Status MayClaim(const Caller& caller,
                        const std::string& pool,
                        const events::v1::SubmitClaim& claim) const;
  // What claims of one user in the queue may come to. The replica that holds the pool asks, whoever
  // has judged the caller: it knows which are on their way.
  absl::StatusOr<ClaimQuota> QuotaFor(const std::string& pool, const std::string& queue) const;
  absl::Status MayAbandon(const Caller& caller, const std::string& pool) const;
  // `queue` empty: all of them.
  absl::Status MaySeeQueues(const Caller& caller, const std::string& queue) const;

  // What he may see of what he asks for. `verb`: list, watch.
  absl::StatusOr<JobScope> MayList(const Caller& caller,
                                   std::string_view verb,
                                   job_store::FactFilter asked) const;

  // Of jobs that he may not look at leaves the sizes and times.
  void Redact(const Caller& caller, v1::ExplainResponse* response) const;
  // Of promises leaves out for which jobs they moved; but those of the same namespace, and all for
  // who may list jobs of all namespaces. `space_of`: the namespace of the job with this id; empty:
  // it has none, or is not known.
  using SpaceOfJob = std::function<std::string(const std::string& job_id)>;
  void Redact(const Caller& caller, const SpaceOfJob& space_of, v1::GetJobResponse* response) const;

 private:
  // Somebody else has judged it, or nobody is to.
  bool Passes(const Caller& caller) const { return authority_ == nullptr || caller.judged; }
  absl::StatusOr<bool> MayDo(const Caller& caller, access::Act act, const access::Job& job) const;
  absl::StatusOr<bool> Granted(const Caller& caller,
                               std::string_view verb,
                               const std::string& pool,
                               const std::string& queue) const;
  // `field`: of the request, that has the right's name.
  absl::Status Allowed(const Caller& caller,
                       std::string_view field,
                       const access::Right& right) const;
  absl::Status MayMove(const Caller& caller,
                       const std::string& queue,
                       const events::v1::JobFact& job) const;
  absl::Status MayRaise(int32_t priority, const events::v1::JobFact& job) const;
  // Why the queues of `way` take no job of this user and namespace.
  absl::Status Takes(const std::string& user,
                     const std::string& space,
                     const access::Way& way) const;

  access::Authority* const authority_;
};

}  // namespace fluxqueue::queue
