// Calls to the API server that the watch shard asks for and does not wait for: objects to be looked
// at again, Events for users, new lists. One thread, in order.
//
// A look is repeated until it is answered (found: Seen; not there, or another uid: Gone). An Event
// is tried once: it is a courtesy. What belongs to an opening of the feed that is over is dropped.
// Of each object one look and one Event wait, the last: there are no more than workloads.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/kubernetes/cluster.h"
#include "services/admission/adapters/workload_feed.h"
#include "services/admission/domain/tracker.h"

#include "absl/status/status.h"

namespace fluxqueue::admission {

class ErrandRunner {
 public:
  // `instance` is named in Events. All must outlive the runner.
  ErrandRunner(kubernetes::Cluster& cluster,
               WorkloadFeed& feed,
               const Clock& clock,
               std::string instance);

  void Look(std::vector<Fetch> fetches);
  void Tell(std::vector<Refusal> refusals);
  void Relist();

  // Until `stop`.
  absl::Status Run(std::stop_token stop);

  // For metrics.
  const auto& mailbox() const { return errands_; }

 private:
  struct NewList {};
  struct Errand {
    uint64_t opening = 0;
    std::variant<Fetch, Refusal, NewList> what;
  };

  void Do(const Errand& errand, const std::stop_token& stop);
  void Do(uint64_t opening, const Fetch& fetch, const std::stop_token& stop);
  void Do(const Refusal& refusal);

  kubernetes::Cluster& cluster_;
  WorkloadFeed& feed_;
  const Clock& clock_;
  const std::string instance_;

  Mailbox<Errand> errands_{"errands"};
  Bell posted_;  // into it, when it was empty
};

}  // namespace fluxqueue::admission
