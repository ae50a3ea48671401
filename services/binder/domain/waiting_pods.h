// What pods that wait say of it in their condition PodScheduled, where people look (`kubectl
// describe pod`) and autoscalers do.
//
// The reason Unschedulable makes autoscalers add nodes. Only pods of jobs that lack nothing but
// nodes say it, of each queue the first (the queue's table lack_nodes). So what is to be said is
// compared with what is said, again and again: a write that failed is made again, a pod whose job
// no longer lacks nodes says something else, whoever held the pool before, and however its job
// ended.
//
// All others say the reason and the sentence of their job's last fact, once it has been so for
// kToldAfter: what starts at once is told nothing. That is lost where it cannot be written, or a
// process ends, as an Event is; the next reason is told again.
//
// Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

// A pod's condition PodScheduled is to be False, with these.
struct PodCondition {
  std::string space;  // namespace
  std::string name;
  std::string uid;
  std::string reason;
  std::string message;
  int64_t since_ms = 0;  // the job's creation: the same words twice are the same bytes
};

class WaitingPods {
 public:
  static constexpr Millis kToldAfter{5000};
  // Of jobs. Of what comes while so many wait to be told nothing is told.
  static constexpr size_t kMostJobs = 10'000;

  // A fact from the log, in its order.
  void Learn(const events::v1::JobFact& fact, Millis now);
  // Of jobs whose last fact is old enough: what those of their pods are to say that do not say it
  // yet. Stops after `most` pods, and goes on with the next call.
  std::vector<PodCondition> TakeDue(const PodBoard& board, size_t most, Millis now);
  // When TakeDue has something to look at.
  std::optional<Millis> NextDue() const;

 private:
  struct Entry {
    Millis due{0};
    events::v1::JobFact fact;  // what is needed of it
  };

  std::unordered_map<std::string, Entry> jobs_;
  std::set<std::pair<Millis, std::string>> due_;
};

// What pods are to say by what the queue's tables say: `lacking`, facts of the jobs that lack
// nothing but nodes.
std::vector<PodCondition> SayUnschedulable(const PodBoard& board,
                                           const std::vector<events::v1::JobFact>& lacking);
// Pods that say Unschedulable, and are of none of these jobs.
std::vector<const PodFacts*> WronglyUnschedulable(const PodBoard& board,
                                                  const std::vector<events::v1::JobFact>& lacking);
// What such a pod is to say. `fact`: of its job; null: nothing is known of it. Unset: it is about
// to be bound.
std::optional<PodCondition> TakeBack(const PodFacts& pod, const events::v1::JobFact* fact);

}  // namespace fluxqueue::binder
