// What is to become of what Fluxqueue holds, when it goes for good: `uninstall --release-workloads`
// (deploy/docs/uninstall.md). Pure, thread-safe once it is filled.
//
// What is held has the label fluxqueue.io/held. It is taken off with the hold, in the same write,
// so that a second run finds what the first one has left. What is to stay as it is keeps it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "libs/kubernetes/views.h"

#include "absl/status/status.h"

namespace fluxqueue::cli {

enum class Fate {
  kResume,     // a Job: the suspend is ours, and is taken away
  kUngate,     // a pod: our scheduling gate is taken away
  kUnmark,     // nothing holds it: the label is taken off
  kKeep,       // it is not ours to start
  kScheduler,  // a pod that names our scheduler, which cannot be changed
  kComing,     // a Job that is under way: what its template says of pods to come cannot be changed
};
inline constexpr Fate kFates[] = {
    Fate::kResume, Fate::kUngate, Fate::kUnmark, Fate::kKeep, Fate::kScheduler, Fate::kComing};
// For programs: "resume".
std::string_view Name(Fate fate);

struct Release {
  std::string kind{};  // "Job", "Pod"
  std::string space{};
  std::string name{};
  Fate fate = Fate::kUnmark;
  // Of kKeep; of kScheduler also, where the job is held and that scheduler would start it.
  std::string why{};
  std::string owner{};     // of a pod: "ReplicaSet web"; empty: none
  bool scheduler = false;  // of a Job: its pods name our scheduler
  std::string patch{};     // a merge patch with preconditions; empty: nothing is to be written
};

class ReleasePlan {
 public:
  // `also_unknown`: also what no FluxJob tells of is let go.
  explicit ReleasePlan(bool also_unknown) : also_unknown_(also_unknown) {}

  // All FluxJobs come first, then all Jobs, then pods. An object that is none is an
  // InvalidArgument.
  absl::Status SawFluxJob(std::string_view text);
  void SawJob(const kubernetes::Job& job);

  // Nothing: it is not held, or it is over.
  std::optional<Release> Judge(const kubernetes::Job& job) const;
  std::optional<Release> Judge(const kubernetes::Pod& pod) const;

 private:
  // Why it is not ours to start; "": it is.
  std::string WhyKept(const kubernetes::Job& job) const;
  std::string WhyKept(const kubernetes::Pod& pod) const;
  std::string WhyKept(const std::string& id) const;

  const bool also_unknown_;
  std::map<std::string, std::string> kept_;                                 // by the job's id
  std::map<std::pair<std::string, std::string>, std::string> groups_kept_;  // namespace, group
  std::map<std::string, std::string> jobs_kept_;  // what Jobs say themselves, by uid
};

}  // namespace fluxqueue::cli
