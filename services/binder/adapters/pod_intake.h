// News on their way into the planner, and what becomes of a pod that it cannot handle.
//
// Nothing in the planner throws. If something does all the same, it must not end the binder at each
// start, for as long as the pod is there. So what is thrown while a pod is seen, or while its job
// is planned, is caught here. The job's pods are set aside, and come again one by one; the pod with
// which it is thrown again is left out until it changes (delivery/quarantine.h), or the binder
// starts anew. So is a pod that cannot be read. The planner goes on with what it knew of such a pod
// before, if anything; of a slot whose pod is left out it asks the API server again and again, and
// the slot stays taken.
//
// What is thrown while a job is planned that has no pods ends the process, as does a CHECK: a pod
// is only blamed for what can be caught. Nothing is kept in tables, since each replica sees every
// pod.
//
// Confined to the loop's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/quarantine.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/domain/bind_planner.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class PodIntake {
 public:
  // What was left out is looked at again after this, as far as its quarantine lets it.
  static constexpr Millis kLookAgain{10'000};
  // Of news, in one batch: what more has come stays in the inbox, whose limit holds for it.
  static constexpr size_t kMostTaken = 1'000;

  // All must outlive it.
  PodIntake(BindPlanner& planner,
            Inbox& inbox,
            delivery::Quarantine& quarantine,
            const Clock& clock)
      : planner_(planner), inbox_(inbox), quarantine_(quarantine), clock_(clock) {}

  bool HasWork() const { return !taken_.empty() || !inbox_.empty(); }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const;
  // The pod watch has told every pod there is.
  bool listed() const { return listed_; }

  // Hands on what has come: the first kMostTaken, or, while a pod is looked for, the first.
  absl::Status Take();
  // Has the planner plan. Unavailable: one of its pods is to blame, and the batch must be rolled
  // back and made again.
  absl::Status Plan(const std::function<void()>& plan);

 private:
  absl::Status Hand(News news);
  absl::Status HandPod(PodFacts pod);
  absl::Status HandAnswer(CallResult result);
  absl::Status Blame(const std::string& what);
  // `one`: the pod that came alone.
  void LeaveOut(PodFacts pod, const std::string& one, const std::string& what);
  // It is left out.
  void Remember(PodFacts pod);
  // Those that were left out and may have to be looked at by now.
  void LookAgain();

  BindPlanner& planner_;
  Inbox& inbox_;
  delivery::Quarantine& quarantine_;
  const Clock& clock_;

  std::deque<News> taken_;  // from the inbox, or set aside
  bool listed_ = false;
  std::string one_;  // uid of the pod that came alone, in this batch
  // Left out, as they were seen last, by uid; as many as the quarantine has rows for.
  std::map<std::string, PodFacts> left_out_;
  std::chrono::steady_clock::time_point look_at_{};
};

}  // namespace fluxqueue::binder
