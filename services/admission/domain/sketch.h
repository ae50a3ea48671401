// As much of a watched object as tells whether it is worth reading whole. A job's life is a dozen
// watch events, and admission needs one or two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fluxqueue::admission {

enum class WorkloadKind { kJob, kPod };

inline std::string_view KindName(WorkloadKind kind) {
  return kind == WorkloadKind::kJob ? "Job" : "Pod";
}

struct Sketch {
  WorkloadKind kind = WorkloadKind::kJob;
  std::string space;
  std::string name;
  std::string uid;
  std::string resource_version;
  // Pods: uid of the Job that is their controller; empty: they are jobs of their own, with whatever
  // other controller.
  std::string controller_job;
  bool held = false;   // carries the label fluxqueue.io/held
  bool ended = false;  // Complete or Failed; Succeeded or Failed
  bool going = false;  // has a deletionTimestamp
  bool bound = false;  // pods: spec.nodeName is set
  // Of generation, labels and annotations: all that JobUpdated can come from. Never 0.
  uint64_t digest = 0;
};

// What a user is told of a refusal quotes what he wrote, which may be of any length. Fits into an
// Event.
inline constexpr size_t kMostRefusalBytes = 1024;

// What a watch or a GET has shown.
struct Observation {
  Sketch sketch;
  std::string object;  // JSON; read only if the sketch is news
  uint64_t look = 0;   // the Fetch that has found it (tracker.h); 0: a watch tells of it
};

}  // namespace fluxqueue::admission
