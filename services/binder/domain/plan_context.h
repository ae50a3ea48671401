// What planning one job is given, and what it gives back. Pure; lives for one pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/backoff.h"
#include "libs/base/clock.h"
#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

// What was known of a node is taken to hold for so long.
inline constexpr Millis kSureFor{5'000};

struct PlanOptions {
  // No pod came and none was bound for this long: the attempt has failed.
  Millis start_timeout{300'000};
  // Calls that failed are repeated after min, 2·min, … max.
  Millis retry_min{100};
  Millis retry_max{10'000};
  // A placement that is not there is looked for again after this.
  Millis placement_retry{1'000};
  // A pod that was told to go is given this long before its node is looked at, and then this long
  // between two looks.
  Millis node_check_interval{5'000};
  // A pod of a job that stops, and is still there so long after the stop, is killed; where its
  // queue gives its pods longer (JobFact.grace_ms), then. Nothing that its user says of its grace
  // makes it longer.
  Millis kill_wait{300'000};
};

// A message for the pool's log, to be appended under the lock of `partition`.
struct Saying {
  int partition = 0;
  events::v1::Envelope envelope;
  // JobBound, JobStopped: since the attempt, or its stop, came to us.
  Millis after{0};
};

struct PlanContext {
  const PlanOptions& options;
  PodBoard& pods;
  // Every pod that existed when the watch began has been seen, and the watch stands.
  bool pods_in_view = false;
  Millis in_view_since{0};
  Millis now{0};
  // False while a batch's rows are written already: what must be said waits for the next batch.
  bool may_speak = true;
  uint64_t* last_call = nullptr;
  std::vector<Call>* calls = nullptr;
  std::vector<Saying>* sayings = nullptr;

  // Results: when to look at the job again, and whether something waits only for may_speak.
  Millis wake = Millis::max();
  bool speak_later = false;
  // The uids of its nodes are needed, with its placement.
  bool place_again = false;

  void WakeAt(Millis at) {
    if (at < wake) wake = at;
  }
  // True when a failed call may be tried again; else sees to it that we are woken.
  bool Due(const Retry& retry) {
    if (retry.at <= now) return true;
    WakeAt(retry.at);
    return false;
  }
};

// The call, numbered and on its way once the batch commits.
uint64_t IssueForSlot(PlanContext& context, const BindJob& job, int slot, Call::Kind kind);
uint64_t IssueForJob(PlanContext& context, const BindJob& job, Call::Kind kind);

// The job's pods that are known here, in the order of their names; of a group in that of its slots.
std::vector<const PodFacts*> PodsOf(const PlanContext& context, const BindJob& job);

// Bound pods that say that they are in this attempt, in slots that we believe to be free: they are,
// where their proof holds. Happens only when rows were lost: the rows are written again, and the
// slots are not given away twice. A job that is stopped stops all that say so, proven or not.
void AdoptPods(PlanContext& context, BindJob* job);

// A slot whose pod is not known here, or not for sure: asks the API server, unless that is under
// way.
void ReadUnknownPod(PlanContext& context, BindJob* job, int slot);

// What BindFailed is to say; what was found first stays.
void SetFailure(BindJob* job, std::string reason, const std::string& message);

// "Job default/train"
std::string Describe(const events::v1::Workload& workload);

}  // namespace fluxqueue::binder
