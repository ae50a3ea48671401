// What the binder asks of the API server, and what came of it. Every call can be repeated: the
// second time changes nothing. All that start or stop a pod name its uid; those that start one also
// the resourceVersion that the plan was made with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

struct Call {
  enum class Kind {
    kBind,        // Binding of a direct pod to `node`
    kRelease,     // pinned pod: node affinity to `node` and the gate's removal, in one patch
    kResume,      // Job: suspend: false, with its deadline
    kLimit,       // Job: its deadline
    kSuspend,     // Job: suspend: true, with our annotation
    kDelete,      // pod, with its own grace, or `grace_s`; `disruption` first
    kKill,        // pod that was told to go: deleted with a grace of kKillGraceS
    kFence,       // pod: annotation, so that Bindings planned earlier fail
    kReadPod,     // is it there?
    kCheckNode,   // is `node` lost?
    kLookAtNode,  // may the pod be started on `node`?
    kReadJob,     // how many completions does the Job lack?
  };

  Kind kind = Kind::kBind;
  uint64_t id = 0;
  std::string job_id;
  uint32_t attempt = 0;
  int slot = -1;  // -1: about the job itself
  uint32_t slots = 0;
  std::string space;  // namespace
  std::string name;   // of the pod or the Job
  std::string uid;
  uint64_t resource_version = 0;  // 0: no precondition
  std::string node;
  // kBind, kRelease, kLookAtNode: the uid of `node`, where it is known. After `sure_until` a pod is
  // started only while the node has it: it may be another of that name by now.
  std::string node_uid = {};
  Millis sure_until = Millis::max();
  std::vector<uint32_t> devices = {};  // of the node's GPUs; see kDevicesAnnotation
  // kDelete: so long it may write a checkpoint. Unset: its own terminationGracePeriodSeconds.
  std::optional<int64_t> grace_s = {};
  // kDelete: what its condition DisruptionTarget says, which it is given first. Unset: it is given
  // none.
  std::optional<std::string> disruption = {};
  // kResume, kLimit of a Job, kBind and kRelease of a pod without one: so long after its start
  // Kubernetes ends it. 0: it does not.
  int64_t ends_after_s = 0;
  // kResume: only if the Job carries our own suspend.
  bool only_ours = false;
  // The same has failed more than once: it may hold few of the threads that make calls.
  bool again = false;
};

// As short as a grace can be: with 0 the API server would forget a pod that runs.
inline constexpr int64_t kKillGraceS = 1;

std::string_view Name(Call::Kind kind);
// REQUIRES: it is about a slot.
kubernetes::SlotName SlotOf(const Call& call);

struct CallResult {
  enum class Outcome {
    kDone,
    kConflict,  // a precondition failed; `pod` is how it looks now
    kGone,      // no object of that uid
    kRetry,     // may succeed later; it may also have been done
    kRefused,   // never succeeds
  };

  Call call;
  Outcome outcome = Outcome::kDone;
  // How the pod looked after the call, or when it was read because of a conflict.
  std::optional<PodFacts> pod;
  bool node_lost = false;  // kCheckNode
  // kLookAtNode: why the node is closed to the pod ("is cordoned"); empty: it is open.
  std::string node_closed = {};
  int64_t completions_left = 0;  // kReadJob
  Millis retry_after{0};         // kRetry: the API server's wish
  bool unmade = false;           // kRetry: the API server was not asked
  std::string message;

  // As if the pod had not been looked at: what depends on how it looks is asked again later.
  void LoseSight();
};

}  // namespace fluxqueue::binder
