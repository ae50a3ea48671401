// As much of a watched object as tells whether it is worth reading whole. A job's life is a dozen
// watch events, and admission needs one or two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libs/model/workload.h"

namespace fluxqueue::admission {

// A group is no object: its pods are seen.
enum class WorkloadKind { kJob, kPod, kGroup };

inline std::string_view KindName(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::kJob:
      return "Job";
    case WorkloadKind::kPod:
      return "Pod";
    case WorkloadKind::kGroup:
      return model::kGroupKind;
  }
  return "";
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
  // Their namespace, the record of their group and who made them, joined by '/': pods that have the
  // same are of one group. Of a Job: that of its pods, which name no maker themselves. Empty: none.
  std::string group;
  bool in_place = false;  // pods: take a place of another pod's job (libs/kubernetes/places.h)
  bool held = false;      // carries the label fluxqueue.io/held
  bool ended = false;     // Complete or Failed; Succeeded or Failed
  bool going = false;     // has a deletionTimestamp
  bool bound = false;     // pods: spec.nodeName is set
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
