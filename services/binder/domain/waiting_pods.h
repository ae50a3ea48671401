// What pods that wait say of it in their condition PodScheduled, where people look (`kubectl
// describe pod`) and autoscalers do.
//
// The reason Unschedulable makes autoscalers add nodes. Only pods of jobs that lack nothing but
// nodes say it (the queue's table lack_nodes). So what is to be said is compared with what is said,
// again and again: a write that failed is made again, a pod whose job no longer lacks nodes says
// something else, whichever replica held the pool before, and however its job ended.
//
// All others say the reason and the sentence of their job's last fact, once it has been so for
// kToldAfter: what starts at once, or is in line and was not tried yet, is told nothing. That is
// lost where it cannot be written, or a process ends, as an Event is; the next reason is told
// again.
//
// Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
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

// A Job that is held by its suspend, and waits: it has no pods.
bool HasNoPods(const events::v1::JobFact& fact);

// A row of lack_nodes. `partition`: of its pool; unset: another replica sees to it.
struct LackingJob {
  std::optional<int> partition;
  events::v1::JobFact fact;
};

class WaitingPods {
 public:
  static constexpr Millis kToldAfter{5000};
  // Of jobs that are to be told; beyond that only ends come in.
  static constexpr size_t kMostJobs = 10'000;

  // A fact from the log, in its order.
  void Learn(int partition, const events::v1::JobFact& fact, Millis now);
  // The partition is another's.
  void Drop(int partition);

  // Of jobs whose last fact is old enough: what those of their pods are to say that do not say it
  // yet, each once. Stops after `most` pods, and goes on with the next call.
  std::vector<PodCondition> TakeDue(const PodBoard& board, size_t most, Millis now);
  // When TakeDue has something to look at.
  std::optional<Millis> NextDue() const;

  struct Others {
    // Whether this replica sees to pods of which no job is known any more.
    bool ours = false;
    // A job that has its slots, and that the pod is of, is being started or stopped.
    std::function<bool(const PodFacts&)> starts;
  };
  // `lacking`: all rows there are. What is taken back comes first, with half of `most`; in the rest
  // the jobs that lack nodes take turns.
  std::vector<PodCondition> Compare(const PodBoard& board,
                                    const std::vector<LackingJob>& lacking,
                                    const Others& others,
                                    size_t most);

 private:
  struct Due {
    int partition = 0;
    Millis at{0};
    size_t told = 0;  // of its pods
    events::v1::JobFact fact;
  };
  struct Named {
    int partition = 0;
    bool lacks = false;  // as was read last
    events::v1::JobFact fact;
  };

  void LearnNamed(const std::vector<LackingJob>& lacking);
  void TakeBack(const PodBoard& board, std::vector<PodCondition>* conditions);

  std::unordered_map<std::string, Due> jobs_;
  std::set<std::pair<Millis, std::string>> due_;
  // Jobs that were read to lack nodes, until none of their pods says so.
  std::map<std::string, Named> named_;
  // Uids of pods that said so when it was compared last, and of which no job was known.
  std::set<std::string> strangers_;
};

}  // namespace fluxqueue::binder
