#include "tools/fluxqueue/release_plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::cli {
namespace {

using kubernetes::StringMap;
using model::JobState;
using nlohmann::json;
namespace reason = queue_core::reason;

constexpr std::string_view kUnknown =
    "no FluxJob says whether it is held or was cancelled (--also-unknown lets go of it)";

std::string WhyKeptIn(JobState state, const std::string& why) {
  if (state == JobState::kPending) {
    if (why == reason::kHeld) return "it is held (fluxqueue hold, or fluxqueue.io/hold)";
    if (why == reason::kDependency) return "other jobs have to end first (fluxqueue.io/depends-on)";
    if (why == reason::kNotYet) return "its begin is to come (fluxqueue.io/begin)";
    return "";
  }
  if (state == JobState::kStopping) {
    const bool ends = why == reason::kCancelled || why == reason::kWithdrawn ||
                      why == reason::kDeleted || why == reason::kDependencyNeverSatisfied;
    return ends ? fmt::format("it is being cancelled ({})", why) : "";
  }
  if (!model::IsTerminal(state)) return "";
  return why.empty() ? fmt::format("it is {}", model::Name(state))
                     : fmt::format("it is {} ({})", model::Name(state), why);
}

// A user's own word, on the object or in its template.
std::string WhyKeptBy(const kubernetes::ObjectMeta& meta) {
  for (const auto& [key, why] : {std::pair{kubernetes::kHoldKey, "its user holds it"},
                                 std::pair{kubernetes::kCancelKey, "its user has cancelled it"}}) {
    for (const StringMap* map : {&meta.labels, &meta.annotations}) {
      const auto found = map->find(key);
      if (found != map->end() && found->second == "true") return fmt::format("{} ({})", why, key);
    }
  }
  return "";
}

bool IsGated(const kubernetes::PodSpec& pod) {
  return kubernetes::CarriedHold(pod) == kubernetes::Mode::kPinned;
}
bool NamesUs(const kubernetes::PodSpec& pod) {
  return pod.scheduler_name == kubernetes::kSchedulerName;
}

json OtherGates(const kubernetes::PodSpec& pod) {
  json gates = json::array();
  for (const std::string& gate : pod.gates) {
    if (gate != kubernetes::kGate) gates.push_back({{"name", gate}});
  }
  return gates;
}

// The object as it was judged, and no other: what a user has changed since is judged again.
json PatchOf(const kubernetes::ObjectMeta& meta) {
  return {{"metadata", {{"uid", meta.uid}, {"resourceVersion", meta.resource_version}}}};
}
void Unmark(json* metadata) {
  (*metadata)["labels"][std::string(kubernetes::kHeldLabel)] = nullptr;
}

Release ReleaseOf(const char* kind, const kubernetes::ObjectMeta& meta, Fate fate) {
  return {.kind = kind, .space = meta.namespace_name, .name = meta.name, .fate = fate};
}

// Of a Job that has not started the template's labels and gates may be changed, and no more.
void LetPodsGo(const kubernetes::Job& job, json* patch) {
  json& pods = (*patch)["spec"]["template"];
  Unmark(&pods["metadata"]);
  if (IsGated(job.pod)) pods["spec"]["schedulingGates"] = OtherGates(job.pod);
}

void Resume(const kubernetes::Job& job, json* patch) {
  json& annotations = (*patch)["metadata"]["annotations"];
  annotations[std::string(kubernetes::kSuspendedByAnnotation)] = nullptr;
  (*patch)["spec"]["suspend"] = false;
  const bool ours = kubernetes::OwnDeadline(job.meta, job.active_deadline_s) == 0;
  if (job.active_deadline_s == 0 || !ours) return;
  annotations[std::string(kubernetes::kDeadlineAnnotation)] = nullptr;
  (*patch)["spec"]["activeDeadlineSeconds"] = nullptr;
}

}  // namespace

std::string_view Name(Fate fate) {
  switch (fate) {
    case Fate::kResume:
      return "resume";
    case Fate::kUngate:
      return "ungate";
    case Fate::kUnmark:
      return "unmark";
    case Fate::kKeep:
      return "keep";
    case Fate::kScheduler:
      return "scheduler";
    case Fate::kComing:
      return "coming";
  }
  return "";
}

absl::Status ReleasePlan::SawFluxJob(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    const json& spec = object.at("spec");
    const json status = object.value("status", json::object());
    const auto state = model::ParseJobState(status.value("state", "Submitted"));
    std::string why = WhyKeptIn(state.value_or(JobState::kSubmitted), status.value("reason", ""));
    const json& workload = spec.at("workload");
    if (model::IsGroup(workload.at("kind").get<std::string>())) {
      groups_kept_[{object.at("metadata").at("namespace").get<std::string>(),
                    workload.at("name").get<std::string>()}] = std::move(why);
    } else {
      kept_[workload.at("uid").get<std::string>()] = std::move(why);
    }
    return absl::OkStatus();
  } catch (const json::exception& error) {
    return InvalidArgument("a FluxJob cannot be read: {}", error.what());
  }
}

void ReleasePlan::SawJob(const kubernetes::Job& job) {
  jobs_kept_[job.meta.uid] = WhyKept(job);
}

std::string ReleasePlan::WhyKept(const std::string& id) const {
  const auto known = kept_.find(id);
  if (known != kept_.end()) return known->second;
  return also_unknown_ ? "" : std::string(kUnknown);
}

std::string ReleasePlan::WhyKept(const kubernetes::Job& job) const {
  if (job.suspend && !kubernetes::IsSuspendedByUs(job)) return "its user has suspended it";
  for (const kubernetes::StringMap* annotations :
       {&job.meta.annotations, &job.template_annotations}) {
    kubernetes::ObjectMeta words;
    words.annotations = *annotations;
    words.labels = annotations == &job.meta.annotations ? job.meta.labels : job.template_labels;
    if (std::string why = WhyKeptBy(words); !why.empty()) return why;
  }
  return WhyKept(job.meta.uid);
}

std::string ReleasePlan::WhyKept(const kubernetes::Pod& pod) const {
  if (kubernetes::WaitsForItsJob(pod)) {
    const auto job = jobs_kept_.find(kubernetes::JobIdOf(pod));
    return job == jobs_kept_.end() ? WhyKept(kubernetes::JobIdOf(pod)) : job->second;
  }
  if (std::string why = WhyKeptBy(pod.meta); !why.empty()) return why;
  // hint: asked of its FluxJob; who forges it keeps his own pod held.
  const auto group = kubernetes::ParseGroup(pod.meta.Annotation(kubernetes::kGroupAnnotation));
  if (!group.has_value()) return WhyKept(kubernetes::JobIdOf(pod));
  const auto known = groups_kept_.find({pod.meta.namespace_name, group->name});
  // One that was never whole has no FluxJob.
  return known == groups_kept_.end() ? WhyKept(pod.meta.uid) : known->second;
}

std::optional<Release> ReleasePlan::Judge(const kubernetes::Job& job) const {
  const bool marked = job.meta.labels.contains(kubernetes::kHeldLabel);
  if (!marked || job.Ended() || job.meta.deleted_ms != 0) return std::nullopt;
  json patch = PatchOf(job.meta);
  if (!job.suspend) {
    const bool comes_held = kubernetes::CarriedHold(job.pod).has_value();
    Release release = ReleaseOf("Job", job.meta, comes_held ? Fate::kComing : Fate::kUnmark);
    release.scheduler = NamesUs(job.pod);
    if (comes_held) return release;
    Unmark(&patch["metadata"]);
    release.patch = kubernetes::JsonText(patch);
    return release;
  }
  Release release = ReleaseOf("Job", job.meta, Fate::kKeep);
  release.scheduler = NamesUs(job.pod);
  release.why = WhyKept(job);
  const bool started = job.started_ms != 0;
  if (release.why.empty() && started && IsGated(job.pod)) {
    release.why = "its pods are still being stopped: run this again";
    return release;
  }
  const bool marks_pods = job.template_labels.contains(kubernetes::kHeldLabel);
  if (!started && (IsGated(job.pod) || marks_pods)) LetPodsGo(job, &patch);
  if (release.why.empty()) {
    release.fate = Fate::kResume;
    Unmark(&patch["metadata"]);
    Resume(job, &patch);
  }
  if (patch.size() > 1) release.patch = kubernetes::JsonText(patch);
  return release;
}

std::optional<Release> ReleasePlan::Judge(const kubernetes::Pod& pod) const {
  const bool marked = pod.meta.labels.contains(kubernetes::kHeldLabel);
  const bool held = !pod.Bound() && kubernetes::CarriedHold(pod.spec).has_value();
  if ((!marked && !held) || pod.Ended() || pod.meta.deleted_ms != 0) return std::nullopt;
  Release release = ReleaseOf("Pod", pod.meta, Fate::kUnmark);
  if (const kubernetes::OwnerReference* owner = pod.meta.Controller(); owner != nullptr) {
    release.owner = fmt::format("{} {}", owner->kind, owner->name);
  }
  json patch = PatchOf(pod.meta);
  if (held) {
    const bool gated = IsGated(pod.spec);
    release.why = WhyKept(pod);
    release.fate = !gated ? Fate::kScheduler : release.why.empty() ? Fate::kUngate : Fate::kKeep;
    if (release.fate != Fate::kUngate) return release;
    patch["spec"]["schedulingGates"] = OtherGates(pod.spec);
  }
  Unmark(&patch["metadata"]);
  release.patch = kubernetes::JsonText(patch);
  return release;
}

}  // namespace fluxqueue::cli
