#include "services/admission/domain/hold_patch.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/labels.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;

using KeyValues = std::vector<std::pair<std::string_view, std::string>>;

// Collects operations; paths are JSON Pointers without the escaped last key.
class PatchBuilder {
 public:
  void Set(std::string path, json value) {
    operations_.push_back({{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}});
  }

  // Keys of a map of strings. JSON Patch makes no parents, and `current` shows whether there is
  // one: an empty map may be absent, and is replaced whole.
  void SetKeys(const std::string& map_path,
               const kubernetes::StringMap& current,
               const KeyValues& keys) {
    json whole = json::object();
    for (const auto& [key, value] : keys) {
      const auto found = current.find(key);
      if (found != current.end() && found->second == value) continue;
      if (current.empty()) {
        whole[std::string(key)] = value;
      } else {
        Set(fmt::format("{}/{}", map_path, Escape(key)), value);
      }
    }
    if (!whole.empty()) Set(map_path, std::move(whole));
  }
  void SetKey(const std::string& map_path,
              const kubernetes::StringMap& current,
              std::string_view key,
              std::string_view value) {
    SetKeys(map_path, current, {{key, std::string(value)}});
  }

  void RemoveKey(const std::string& map_path,
                 const kubernetes::StringMap& current,
                 std::string_view key) {
    if (current.count(key) == 0) return;
    operations_.push_back(
        {{"op", "remove"}, {"path", fmt::format("{}/{}", map_path, Escape(key))}});
  }

  void Append(const std::string& list_path, bool list_is_empty, json item) {
    if (list_is_empty) {
      Set(list_path, json::array({std::move(item)}));
    } else {
      Set(list_path + "/-", std::move(item));
    }
  }

  std::string Text() const {
    if (operations_.empty()) return {};
    return kubernetes::JsonText(operations_);
  }

 private:
  static std::string Escape(std::string_view key) {
    std::string escaped;
    for (const char c : key) {
      if (c == '~') {
        escaped += "~0";
      } else if (c == '/') {
        escaped += "~1";
      } else {
        escaped += c;
      }
    }
    return escaped;
  }

  json operations_ = json::array();
};

bool ToleratesDedicated(const kubernetes::PodSpec& spec) {
  return std::any_of(
      spec.tolerations.begin(),
      spec.tolerations.end(),
      [](const kubernetes::Toleration& toleration) {
        return toleration.op == "Exists" && toleration.effect.empty() &&
               (toleration.key.empty() || toleration.key == kubernetes::kDedicatedTaint);
      });
}

// `path`: of the pod spec.
void HoldSpec(const std::string& path,
              const kubernetes::PodSpec& spec,
              kubernetes::Mode mode,
              PatchBuilder* patch) {
  const std::string_view scheduler = mode == kubernetes::Mode::kDirect
                                         ? kubernetes::kSchedulerName
                                         : kubernetes::kDefaultScheduler;
  if (spec.scheduler_name != scheduler) patch->Set(path + "/schedulerName", scheduler);
  const bool gated =
      std::find(spec.gates.begin(), spec.gates.end(), kubernetes::kGate) != spec.gates.end();
  if (mode == kubernetes::Mode::kPinned && !gated) {
    patch->Append(path + "/schedulingGates", spec.gates.empty(), {{"name", kubernetes::kGate}});
  }
  if (!ToleratesDedicated(spec)) {
    patch->Append(path + "/tolerations",
                  spec.tolerations.empty(),
                  {{"key", kubernetes::kDedicatedTaint}, {"operator", "Exists"}});
  }
}

// In front of the user's own rules, as the first one that matches decides.
void IgnoreDisruptions(const kubernetes::Job& job, PatchBuilder* patch) {
  const json condition = {{"type", kubernetes::kDisruptionTarget}, {"status", "True"}};
  const json rule = {{"action", "Ignore"}, {"onPodConditions", json::array({condition})}};
  if (job.failure_rules > 0) {
    patch->Set("/spec/podFailurePolicy/rules/0", rule);
    return;
  }
  patch->Set("/spec/podFailurePolicy", {{"rules", json::array({rule})}});
  // The API server has filled in what goes without a podFailurePolicy, and takes only this with
  // one.
  if (!job.pod_replacement.empty() && job.pod_replacement != "Failed") {
    patch->Set("/spec/podReplacementPolicy", "Failed");
  }
}

KeyValues AnnotationsOf(const Making& making, const kubernetes::ObjectMeta& meta) {
  KeyValues annotations;
  if (!making.user.empty()) annotations.emplace_back(kubernetes::kUserAnnotation, making.user);
  if (!making.admitted_to.empty()) {
    annotations.emplace_back(kubernetes::kAdmittedToAnnotation, making.admitted_to);
  }
  if (!making.span.has_value()) return annotations;
  // Asked again in the same request, the webhook has another span.
  const auto before =
      tracing::ParseTraceparent(meta.Annotation(kubernetes::kTraceparentAnnotation));
  if (!before.has_value() || before->trace_id != making.span->trace_id) {
    annotations.emplace_back(kubernetes::kTraceparentAnnotation, tracing::Format(*making.span));
  }
  return annotations;
}

// What its maker wrote himself is no record of ours.
void RemoveForged(const std::string& annotations_path,
                  const Making& making,
                  const kubernetes::ObjectMeta& meta,
                  PatchBuilder* patch) {
  if (!making.admitted_to.empty()) return;
  patch->RemoveKey(annotations_path, meta.annotations, kubernetes::kAdmittedToAnnotation);
}

std::string_view HeldValue(kubernetes::Mode mode) {
  return mode == kubernetes::Mode::kDirect ? kubernetes::kHeldDirect : kubernetes::kHeldPinned;
}

}  // namespace

std::string HoldPatch(const kubernetes::Pod& pod, kubernetes::Mode mode, const Making& making) {
  PatchBuilder patch;
  patch.SetKeys("/metadata/annotations", pod.meta.annotations, AnnotationsOf(making, pod.meta));
  RemoveForged("/metadata/annotations", making, pod.meta, &patch);
  patch.SetKey("/metadata/labels", pod.meta.labels, kubernetes::kHeldLabel, HeldValue(mode));
  HoldSpec("/spec", pod.spec, mode, &patch);
  return patch.Text();
}

std::string HoldPatch(const kubernetes::Job& job,
                      kubernetes::Mode mode,
                      const Making& making,
                      const JobChanges& changes) {
  PatchBuilder patch;
  patch.SetKey("/metadata/labels", job.meta.labels, kubernetes::kHeldLabel, HeldValue(mode));
  // The API server always writes a template's metadata, if only as {}: the map can be added to it.
  patch.SetKey("/spec/template/metadata/labels",
               job.template_labels,
               kubernetes::kHeldLabel,
               HeldValue(mode));
  HoldSpec("/spec/template/spec", job.pod, mode, &patch);
  KeyValues annotations = AnnotationsOf(making, job.meta);
  if (changes.suspend) {
    annotations.emplace_back(kubernetes::kSuspendedByAnnotation, kubernetes::kSuspendedByUs);
  }
  patch.SetKeys("/metadata/annotations", job.meta.annotations, annotations);
  RemoveForged("/metadata/annotations", making, job.meta, &patch);
  if (changes.suspend && !job.suspend) patch.Set("/spec/suspend", true);
  if (changes.ignore_disruptions) IgnoreDisruptions(job, &patch);
  return patch.Text();
}

std::string StampPatch(const std::string& path,
                       const kubernetes::ObjectMeta& meta,
                       const Making& making) {
  PatchBuilder patch;
  const std::string annotations = path + "/metadata/annotations";
  // The span is of this request, and what comes of the template is of others.
  const Making stamp{.user = making.user, .span = std::nullopt, .admitted_to = making.admitted_to};
  patch.SetKeys(annotations, meta.annotations, AnnotationsOf(stamp, meta));
  RemoveForged(annotations, making, meta, &patch);
  return patch.Text();
}

}  // namespace fluxqueue::admission
