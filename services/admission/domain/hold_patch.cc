#include "services/admission/domain/hold_patch.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/places.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;

using KeyValues = std::vector<std::pair<std::string_view, std::string>>;

// Those of our records that the webhook writes.
constexpr std::array kStamped = {kubernetes::kAdmittedToAnnotation,
                                 kubernetes::kGroupAnnotation,
                                 kubernetes::kPlaceOfAnnotation,
                                 kubernetes::kPlacesAnnotation,
                                 kubernetes::kSuspendedByAnnotation,
                                 kubernetes::kTraceparentAnnotation};

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

  // REQUIRES: the map has it.
  void StripKey(const std::string& map_path, std::string_view key) {
    operations_.push_back(
        {{"op", "remove"}, {"path", fmt::format("{}/{}", map_path, Escape(key))}});
    stripped_.emplace(key);
  }
  // Our records in the map that are not among the keys.
  void StripRecords(const std::string& map_path,
                    const kubernetes::StringMap& current,
                    const KeyValues& keys) {
    for (auto it = current.lower_bound(kubernetes::kPrefix);
         it != current.end() && it->first.starts_with(kubernetes::kPrefix);
         ++it) {
      const bool kept = std::any_of(
          keys.begin(), keys.end(), [&](const auto& key) { return key.first == it->first; });
      if (!kept && kubernetes::RecordedKeys().contains(it->first)) StripKey(map_path, it->first);
    }
  }

  void Append(const std::string& list_path, bool list_is_empty, json item) {
    if (list_is_empty) {
      Set(list_path, json::array({std::move(item)}));
    } else {
      Set(list_path + "/-", std::move(item));
    }
  }

  Patch Done() const {
    Patch patch;
    if (!operations_.empty()) patch.text = kubernetes::JsonText(operations_);
    patch.stripped.assign(stripped_.begin(), stripped_.end());
    return patch;
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
  std::set<std::string> stripped_;
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
  if (!making.group.empty()) annotations.emplace_back(kubernetes::kGroupAnnotation, making.group);
  if (!making.queue.empty()) annotations.emplace_back(kubernetes::kQueueKey, making.queue);
  if (!making.places.empty()) {
    annotations.emplace_back(kubernetes::kPlacesAnnotation, making.places);
  }
  if (!making.place_of.empty()) {
    annotations.emplace_back(kubernetes::kPlaceOfAnnotation, making.place_of);
  }
  if (!making.span.has_value()) return annotations;
  // Asked again in the same request, the webhook has another span.
  const std::string& written = meta.Annotation(kubernetes::kTraceparentAnnotation);
  const auto before = tracing::ParseTraceparent(written);
  const bool same = before.has_value() && before->trace_id == making.span->trace_id;
  annotations.emplace_back(kubernetes::kTraceparentAnnotation,
                           same ? written : tracing::Format(*making.span));
  return annotations;
}

// What the pods of a Job say that are of a group: the group, and what the Job asks for, as each of
// them is asked.
KeyValues KeysOfMembers(const kubernetes::Job& job, const Making& making) {
  constexpr std::array kAsked = {kubernetes::kQueueKey,
                                 kubernetes::kQosKey,
                                 kubernetes::kPriorityKey,
                                 kubernetes::kDurationKey,
                                 kubernetes::kHoldKey,
                                 kubernetes::kBeginKey,
                                 kubernetes::kDependsOnKey,
                                 kubernetes::kTopologyKey};
  if (making.group.empty()) return {};
  KeyValues keys = {{kubernetes::kGroupAnnotation, making.group}};
  if (!making.queue.empty()) keys.emplace_back(kubernetes::kQueueKey, making.queue);
  for (const std::string_view key : kAsked) {
    for (const kubernetes::StringMap* of : {&job.meta.labels, &job.meta.annotations}) {
      // hint: a user's wishes.
      const auto found = of->find(key);
      if (found == of->end() || job.template_labels.contains(key)) continue;
      keys.emplace_back(key, found->second);
      break;
    }
  }
  return keys;
}

// The object has these of our records, and no others.
void SetRecords(const std::string& annotations_path,
                const kubernetes::ObjectMeta& meta,
                const std::vector<std::string>& forged,
                const KeyValues& annotations,
                PatchBuilder* patch) {
  for (const std::string& key : forged) patch->StripKey(annotations_path, key);
  patch->StripRecords(annotations_path, meta.annotations, annotations);
  patch->SetKeys(annotations_path, meta.annotations, annotations);
}

std::string_view HeldValue(kubernetes::Mode mode) {
  return mode == kubernetes::Mode::kDirect ? kubernetes::kHeldDirect : kubernetes::kHeldPinned;
}

}  // namespace

std::vector<std::string> TakeForged(kubernetes::StringMap* annotations) {
  std::vector<std::string> forged;
  auto it = annotations->lower_bound(kubernetes::kPrefix);
  while (it != annotations->end() && it->first.starts_with(kubernetes::kPrefix)) {
    const bool stamped = std::find(kStamped.begin(), kStamped.end(), it->first) != kStamped.end();
    if (stamped || !kubernetes::RecordedKeys().contains(it->first)) {
      ++it;
    } else {
      forged.push_back(it->first);
      it = annotations->erase(it);
    }
  }
  return forged;
}

Patch HoldPatch(const kubernetes::Pod& pod, kubernetes::Mode mode, const Making& making) {
  PatchBuilder patch;
  SetRecords(
      "/metadata/annotations", pod.meta, making.forged, AnnotationsOf(making, pod.meta), &patch);
  patch.SetKey("/metadata/labels", pod.meta.labels, kubernetes::kHeldLabel, HeldValue(mode));
  HoldSpec("/spec", pod.spec, mode, &patch);
  return patch.Done();
}

Patch HoldPatch(const kubernetes::Job& job,
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
  const KeyValues of_pods = KeysOfMembers(job, making);
  patch.StripRecords("/spec/template/metadata/annotations", job.template_annotations, of_pods);
  patch.SetKeys("/spec/template/metadata/annotations", job.template_annotations, of_pods);
  HoldSpec("/spec/template/spec", job.pod, mode, &patch);
  KeyValues annotations = AnnotationsOf(making, job.meta);
  if (changes.suspend) {
    annotations.emplace_back(kubernetes::kSuspendedByAnnotation, kubernetes::kSuspendedByUs);
  }
  SetRecords("/metadata/annotations", job.meta, making.forged, annotations, &patch);
  if (changes.suspend && !job.suspend) patch.Set("/spec/suspend", true);
  if (changes.ignore_disruptions) IgnoreDisruptions(job, &patch);
  return patch.Done();
}

Patch StampPatch(const Template& of, const Making& making) {
  PatchBuilder patch;
  // The span is of this request, and what comes of the template is of others.
  const Making stamp{.user = making.user, .span = std::nullopt, .admitted_to = making.admitted_to};
  patch.StripRecords("/metadata/annotations", of.root.annotations, {});
  SetRecords(of.path + "/metadata/annotations",
             of.meta,
             making.forged,
             AnnotationsOf(stamp, of.meta),
             &patch);
  if (of.pods != nullptr) {
    patch.StripRecords(of.path + "/spec/template/metadata/annotations", *of.pods, {});
  }
  return patch.Done();
}

}  // namespace fluxqueue::admission
