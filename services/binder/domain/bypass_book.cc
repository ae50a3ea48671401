#include "services/binder/domain/bypass_book.h"

#include "libs/kubernetes/ownership.h"

namespace fluxqueue::binder {

void BypassBook::Saw(const kubernetes::Namespace& space) {
  Space& known = spaces_[space.name];
  known.exists = true;
  known.managed = kubernetes::IsManaged(space);
  known.strict = kubernetes::IsStrict(space);
}

void BypassBook::NamespaceGone(std::string_view name) {
  const auto known = spaces_.find(name);
  if (known == spaces_.end()) return;
  // Of its pods the last may be told of as gone after it.
  known->second.exists = known->second.managed = known->second.strict = false;
  if (known->second.pods.empty()) spaces_.erase(known);
}

void BypassBook::Saw(const kubernetes::ObjectMeta& meta) {
  if (!kubernetes::MayBypass(meta)) return PodGone(meta.uid);
  Pod& pod = spaces_[meta.namespace_name].pods[meta.uid];
  pod.name = meta.name;
  pod.going = meta.deleted_ms != 0;
  space_of_[meta.uid] = meta.namespace_name;
}

void BypassBook::PodGone(const std::string& uid) {
  const auto space = space_of_.find(uid);
  if (space == space_of_.end()) return;
  const auto known = spaces_.find(space->second);
  known->second.pods.erase(uid);
  if (known->second.pods.empty() && !known->second.exists) spaces_.erase(known);
  space_of_.erase(space);
}

std::vector<BypassStep> BypassBook::TakeSteps(std::chrono::steady_clock::time_point now,
                                              size_t most) {
  std::vector<BypassStep> steps;
  for (const bool stops : {true, false}) {
    for (auto& [space, known] : spaces_) {
      if (!known.managed || (stops && !known.strict)) continue;
      for (auto& [uid, pod] : known.pods) {
        if (stops ? pod.going || now < pod.stop_at : pod.told) continue;
        if (steps.size() == most) return steps;
        if (stops) {
          pod.stop_at = now + kStopAgain;
        } else {
          pod.told = true;
        }
        const auto kind = stops ? BypassStep::Kind::kStop : BypassStep::Kind::kTell;
        steps.push_back({kind, space, pod.name, uid, known.strict});
      }
    }
  }
  return steps;
}

size_t BypassBook::size() const {
  size_t pods = 0;
  for (const auto& [name, space] : spaces_) pods += space.managed ? space.pods.size() : 0;
  return pods;
}

}  // namespace fluxqueue::binder
