#include "services/admission/domain/scale_rules.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/kinds.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/names.h"
#include "services/admission/domain/makers.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;

// Empty where there is no text.
std::string TextAt(const json& object, const json::json_pointer& path) {
  if (!object.contains(path)) return {};
  const json& value = object[path];
  return value.is_string() ? value.get<std::string>() : "";
}

// Of which more pods are asked for. Null: of nothing that makes pods for us.
std::pair<const kubernetes::Kind*, std::string> ScaledBy(const Review& review) {
  if (review.subresource == "scale") {
    return {kubernetes::FindKind(review.group, review.resource), review.name};
  }
  const json object = json::parse(review.object, nullptr, false);
  const json::json_pointer target("/spec/scaleTargetRef");
  // The autoscaler's controller takes any version of the group.
  std::string group = TextAt(object, target / "apiVersion");
  const size_t slash = group.find('/');
  group.resize(slash == std::string::npos ? 0 : slash);
  for (const kubernetes::Kind& kind : kubernetes::Kinds()) {
    if (kind.makes == "pods" && kind.kind == TextAt(object, target / "kind") &&
        kind.group == group) {
      return {&kind, TextAt(object, target / "name")};
    }
  }
  return {nullptr, ""};
}

// `pod`: where its template is.
bool GoesPast(const json& object, const json::json_pointer& pod) {
  const auto opts_out = [&object](const json::json_pointer& of) {
    // hint: a user's own word, which the policy fluxqueue-bypass keeps as it is.
    return TextAt(object, of / "metadata" / "labels" / std::string(kubernetes::kManagedLabel)) ==
           "false";
  };
  return opts_out(json::json_pointer()) || opts_out(pod) ||
         !TextAt(object, pod / "spec" / "nodeName").empty();
}

}  // namespace

bool IsScale(const Review& review) {
  return review.subresource == "scale" ||
         (review.group == "autoscaling" && review.resource == "horizontalpodautoscalers");
}

Verdict DecideScale(const Review& review) {
  const auto [kind, name] = ScaledBy(review);
  if (kind == nullptr || !kubernetes::IsDnsSubdomain(name)) return {};
  if (!review.scaled.has_value()) {
    Verdict verdict = Refuse(fmt::format(
        "whose pods {} '{}' makes could not be looked up: try again", kind->resource, name));
    verdict.absent = Absent{Absent::Kind::kScaled, name, kind};
    return verdict;
  }
  const json object = json::parse(*review.scaled, nullptr, false);
  const json::json_pointer pod(kind->template_);
  if (GoesPast(object, pod)) {
    return Refuse(
        "the pods go past the queue of their namespace, and more of them would take more: have an "
        "administrator do it, or give you the ClusterRole fluxqueue-autoscaler");
  }
  // hint: the stamp of a template, which the policies keep.
  const std::string user =
      TextAt(object, pod / "metadata" / "annotations" / std::string(kubernetes::kUserAnnotation));
  if (user.empty() || user == review.user || user == UnknownMakerOf(review.space)) return {};
  return Refuse(
      "the pods are another's, and who has more of them made asks for these in his name: let him "
      "do it, or have an administrator give you the ClusterRole fluxqueue-autoscaler");
}

}  // namespace fluxqueue::admission
