#include "services/admission/domain/place_rules.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/text.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/names.h"
#include "libs/kubernetes/places.h"
#include "libs/kubernetes/requests.h"

namespace fluxqueue::admission {
namespace {

Placing LookAt(Absent absent) {
  Verdict look = Refuse(fmt::format(
      "{} '{}' says which places the pod has or takes, and could not be looked up: try again",
      absent.group == nullptr ? "pod" : absent.group->plural,
      absent.name));
  look.absent = std::move(absent);
  return {.places = {}, .place_of = {}, .answer = std::move(look)};
}

// Null: it is no pod, or asks by no token of its own. All pods of a namespace may have the
// same account, so that says nothing.
const kubernetes::OwnerReference* MakerOf(const Review& review, const kubernetes::Pod& pod) {
  const kubernetes::OwnerReference* owner = pod.meta.Controller();
  const bool is_pod = owner != nullptr && owner->kind == "Pod" && owner->api_version == "v1" &&
                      IsUid(owner->uid) && kubernetes::IsDnsSubdomain(owner->name);
  return is_pod && review.user_pod == owner->uid ? owner : nullptr;
}

// Where the engine may place it, but for the toleration that we add.
absl::StatusOr<kubernetes::PodDemand> DemandOf(kubernetes::Pod pod) {
  std::erase_if(pod.spec.tolerations, [](const kubernetes::Toleration& toleration) {
    return toleration.key == kubernetes::kDedicatedTaint;
  });
  // hint: rules between pods go by labels, and only within the namespace.
  return kubernetes::DemandOfPod(pod.spec, pod.meta.namespace_name, pod.meta.labels);
}

bool FitsAPlace(const kubernetes::Pod& pod, const kubernetes::Pod& maker) {
  // hint: written by the webhook alone, and kept by the policies while it is held.
  const auto places = kubernetes::ParsePlaces(maker.meta.Annotation(kubernetes::kPlacesAnnotation));
  if (!places || !maker.meta.labels.contains(kubernetes::kHeldLabel)) return false;
  if (kubernetes::ForeignGate(pod.spec) != nullptr) return false;
  if (pod.spec.priority.value_or(0) > maker.spec.priority.value_or(0)) return false;
  const auto demand = DemandOf(pod);
  const auto of_maker = DemandOf(maker);
  return demand.ok() && of_maker.ok() &&
         !kubernetes::Excess(demand->requests, places->requests).has_value() &&
         demand->constraint == of_maker->constraint && demand->rules.rules == of_maker->rules.rules;
}

}  // namespace

Placing PlacingOf(const Review& review,
                  const kubernetes::Pod& pod,
                  const std::optional<Absent>& look) {
  const kubernetes::OwnerReference* owner = MakerOf(review, pod);
  if (!look && owner == nullptr) return {};
  if (!review.places) {
    return LookAt(look ? *look : Absent{.kind = Absent::Kind::kPlaces, .name = owner->name});
  }
  Placing placing;
  if (look) {
    const auto places = look->group->PlacesIn(*review.places);
    if (places) placing.places = kubernetes::Format(*places);
    return placing;
  }
  auto maker = kubernetes::ParsePod(*review.places);
  if (!maker.ok() || maker->meta.uid != owner->uid || maker->Ended()) return placing;
  if (FitsAPlace(pod, *maker)) placing.place_of = owner->uid;
  return placing;
}

}  // namespace fluxqueue::admission
