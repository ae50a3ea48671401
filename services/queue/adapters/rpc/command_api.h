// The calls of the queue's API that go through the loop of the replica that holds the pool:
// commands, claims, and places in line.
//
// A call begins on a worker's thread (it reads Postgres), and is answered once, on any thread. When
// another replica holds the pool, the answer says so (`elsewhere`), and nothing was done. First it
// is judged (call_judge.h).
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/job_store/fact_store.h"
#include "libs/rpc/worker_pool.h"
#include "services/queue/adapters/command_desk.h"
#include "services/queue/adapters/fact_feed.h"
#include "services/queue/adapters/rpc/call_judge.h"
#include "services/queue/adapters/rpc/caller.h"
#include "services/queue/adapters/rpc/claims_under_way.h"
#include "services/queue/adapters/rpc/command_rate.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

struct Reply {
  absl::Status status = {};
  events::v1::JobFact job = {};
  bool repeated = false;
  int64_t position = 0;
  std::optional<queue_core::Explanation> explanation = {};
  uint64_t cycle = 0;  // that is abandoned
  // The pool, when it is not held here.
  std::string elsewhere = {};
};

class CommandApi {
 public:
  using Answer = std::function<void(Reply)>;

  // References must outlive the object, and what it has posted to `workers`.
  CommandApi(const CallJudge& judge,
             job_store::FactStore& facts,
             CommandDesk& desk,
             FactFeed& feed,
             rpc::WorkerPool& workers)
      : judge_(judge), facts_(facts), desk_(desk), feed_(feed), workers_(workers) {}

  // `command`: all but who asks. REQUIRES: not a claim.
  void Command(events::v1::CommandAccepted command,
               const std::string& job_id,
               const Caller& caller,
               const Answer& answer);
  // Its place in line; and why it waits, when that is asked.
  void Position(const std::string& job_id,
                bool explain,
                const Caller& caller,
                const Answer& answer);
  // The cycle of the pool that is in flight; with an id other than 0: if it is that one.
  void AbandonCycle(const std::string& pool,
                    uint64_t cycle_id,
                    const Caller& caller,
                    const Answer& answer);
  void SubmitClaim(const v1::SubmitClaimRequest& request,
                   const Caller& caller,
                   const Answer& answer);

 private:
  // Whether he may command now, and the job (empty: none that is there) be commanded. Where callers
  // are not asked for, there is no bound.
  absl::Status TakeTurn(const Caller& caller, const std::string& job_id);
  // Whether its other queue takes the job as it is, where the command moves it.
  absl::Status CheckMove(const events::v1::CommandAccepted& command, const Caller& caller);

  // Whether the caller may have another claim, which then has a place until it is in the tables;
  // null: nobody counts.
  absl::StatusOr<std::shared_ptr<void>> MakeRoom(const std::string& pool,
                                                 const events::v1::SubmitClaim& submit,
                                                 const Caller& caller);

  // A claim that a call is about, until it is answered.
  struct Claim {
    std::string pool;
    std::string job_id;
    std::string user;  // who makes it, and alone is told of it; empty: nobody is known
    FactFeed::Wants wants;
    FactFeed::TimePoint until;  // when it is answered as it is
    Answer answer;
  };

  // `place`: among those that are on their way.
  void PutClaim(const Claim& claim,
                events::v1::CommandAccepted command,
                const Caller& caller,
                std::shared_ptr<void> place);
  void Put(Errand errand, const events::v1::JobFact& job, const Answer& answer);
  // The command of this client's id was accepted before: the answer to that. Nothing: it was not.
  std::optional<Reply> Repeated(const std::string& client_id, const std::string& job_id);
  // It exists: answered when it is as wanted, or its time is over.
  void AwaitKnown(const Claim& claim, events::v1::JobFact job);
  // Its maker may be told of it.
  static bool IsFor(const Claim& claim, const events::v1::JobFact& job);
  static void Tell(const Claim& claim, events::v1::JobFact job, bool repeated);
  // Now, as it is.
  void AnswerAsItIs(const Claim& claim, bool repeated);

  const CallJudge& judge_;
  job_store::FactStore& facts_;
  CommandDesk& desk_;
  FactFeed& feed_;
  rpc::WorkerPool& workers_;
  ClaimsUnderWay under_way_;
  CommandRate rate_;
};

}  // namespace fluxqueue::queue
