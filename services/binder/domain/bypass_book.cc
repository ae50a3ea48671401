#include "services/binder/domain/bypass_book.h"

#include <utility>

namespace fluxqueue::binder {

void BypassBook::Saw(const kubernetes::Namespace& space) {
  Space& known = spaces_[space.name];
  known.exists = true;
  if (!known.managed) {
    known.looked = false;
    known.look_at = {};
  }
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
  Pod& pod = spaces_[meta.namespace_name].pods[meta.uid];
  pod.name = meta.name;
  pod.going = meta.deleted_ms != 0;
  Claim(&pod, kubernetes::NodesOwn(meta));
  space_of_[meta.uid] = meta.namespace_name;
}

void BypassBook::PodGone(const std::string& uid) {
  const auto space = space_of_.find(uid);
  if (space == space_of_.end()) return;
  const auto known = spaces_.find(space->second);
  const auto pod = known->second.pods.find(uid);
  Claim(&pod->second, std::nullopt);
  known->second.pods.erase(pod);
  if (known->second.pods.empty() && !known->second.exists) spaces_.erase(known);
  space_of_.erase(space);
}

void BypassBook::Claim(Pod* pod, std::optional<kubernetes::OwnerClaim> claim) {
  if (pod->claim == claim) return;
  if (claim.has_value()) ++owners_[*claim].pods;
  if (pod->claim.has_value() && --owners_[*pod->claim].pods == 0) owners_.erase(*pod->claim);
  pod->claim = std::move(claim);
}

void BypassBook::Checked(const kubernetes::OwnerClaim& claim, bool exists) {
  const auto owner = owners_.find(claim);
  if (owner != owners_.end()) owner->second.exists = exists;
}

void BypassBook::LookFailed(std::string_view space, Time now) {
  const auto known = spaces_.find(space);
  if (known == spaces_.end()) return;
  known->second.looked = false;
  known->second.look_at = now + kCheckAgain;
}

bool BypassBook::Bypasses(const Pod& pod) const {
  return !pod.claim.has_value() || !owners_.at(*pod.claim).exists.value_or(true);
}

std::vector<BypassStep> BypassBook::TakeSteps(Time now, size_t most) {
  std::vector<BypassStep> steps;
  TakeChecks(now, most, &steps);
  TakeStops(now, most, &steps);
  TakeTellings(most, &steps);
  TakeLooks(now, most, &steps);
  return steps;
}

void BypassBook::TakeChecks(Time now, size_t most, std::vector<BypassStep>* steps) {
  for (const auto& [name, space] : spaces_) {
    if (!space.managed) continue;
    for (const auto& [uid, pod] : space.pods) {
      if (!pod.claim.has_value()) continue;
      Owner& owner = owners_.at(*pod.claim);
      if (owner.exists.has_value() || now < owner.check_at) continue;
      if (steps->size() == most) return;
      owner.check_at = now + kCheckAgain;
      steps->push_back({.kind = BypassStep::Kind::kCheck, .claim = *pod.claim});
    }
  }
}

void BypassBook::TakeStops(Time now, size_t most, std::vector<BypassStep>* steps) {
  for (auto& [name, space] : spaces_) {
    if (!space.strict) continue;
    for (auto& [uid, pod] : space.pods) {
      if (pod.going || now < pod.stop_at || !Bypasses(pod)) continue;
      if (steps->size() == most) return;
      pod.stop_at = now + kStopAgain;
      steps->push_back({BypassStep::Kind::kStop, name, pod.name, uid, space.strict});
    }
  }
}

void BypassBook::TakeTellings(size_t most, std::vector<BypassStep>* steps) {
  for (auto& [name, space] : spaces_) {
    if (!space.managed) continue;
    for (auto& [uid, pod] : space.pods) {
      if (pod.told || !Bypasses(pod)) continue;
      if (steps->size() == most) return;
      pod.told = true;
      steps->push_back({BypassStep::Kind::kTell, name, pod.name, uid, space.strict});
    }
  }
}

void BypassBook::TakeLooks(Time now, size_t most, std::vector<BypassStep>* steps) {
  for (auto& [name, space] : spaces_) {
    if (!space.managed || space.looked) continue;
    if (space.look_at == Time{}) space.look_at = now + kSettle;
    if (now < space.look_at) continue;
    if (steps->size() == most) return;
    space.looked = true;
    steps->push_back({.kind = BypassStep::Kind::kLook, .space = name});
  }
}

size_t BypassBook::size() const {
  size_t pods = 0;
  for (const auto& [name, space] : spaces_) {
    if (!space.managed) continue;
    for (const auto& [uid, pod] : space.pods) pods += Bypasses(pod) ? 1 : 0;
  }
  return pods;
}

}  // namespace fluxqueue::binder
