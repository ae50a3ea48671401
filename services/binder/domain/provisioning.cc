#include "services/binder/domain/provisioning.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/views.h"
#include "services/binder/domain/waiting_pods.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using nlohmann::json;

// Conditions after which nothing comes of a request any more.
constexpr std::string_view kOver[] = {"Failed", "BookingExpired", "CapacityRevoked"};

bool IsAskedFor(const ProvisioningClasses& classes, const JobFact& fact) {
  return HasNoPods(fact) && classes.contains(fact.pool());
}

constexpr std::string_view kNamePrefix = "fluxqueue-";

json MetaOf(const JobFact& fact) {
  const events::v1::Workload& job = fact.workload();
  return {{"name", ProvisionName(fact)},
          {"namespace", job.namespace_()},
          {"labels", {{kManagedByLabel, kManagedBy}}},
          {"ownerReferences",
           json::array({{{"apiVersion", job.api_version()},
                         {"kind", job.kind()},
                         {"name", job.name()},
                         {"uid", job.uid()}}})}};
}

bool IsOver(const json& request) {
  const json conditions = request.value("/status/conditions"_json_pointer, json::array());
  return std::ranges::any_of(conditions, [](const json& condition) {
    return condition.value("status", "") == "True" &&
           std::ranges::find(kOver, condition.value("type", "")) != std::end(kOver);
  });
}

}  // namespace

absl::StatusOr<ProvisioningClasses> ParseProvisioningClasses(
    const std::vector<std::string>& words) {
  ProvisioningClasses classes;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return InvalidArgument("'{}' is not POOL=CLASS, such as 'default={}'",
                             word,
                             "best-effort-atomic-scale-up.autoscaling.x-k8s.io");
    }
    if (!classes.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      return InvalidArgument("pool '{}' has two classes", word.substr(0, equals));
    }
  }
  return classes;
}

absl::StatusOr<Provision> ParseProvision(std::string_view text) {
  ASSIGN_OR_RETURN(kubernetes::ObjectMeta meta, kubernetes::ParseMeta(text));
  const json request = json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    return Provision{.space = std::move(meta.namespace_name),
                     .name = std::move(meta.name),
                     .uid = std::move(meta.uid),
                     .provisioning_class =
                         request.value("/spec/provisioningClassName"_json_pointer, std::string()),
                     .over = IsOver(request),
                     .created_ms = meta.created_ms};
  } catch (const json::exception& error) {
    return InvalidArgument(
        "ProvisioningRequest {}/{}: {}", meta.namespace_name, meta.name, error.what());
  }
}

ProvisionPlan PlanProvisions(const ProvisioningClasses& classes,
                             const std::vector<JobFact>& lacking,
                             const std::vector<Provision>& there,
                             Millis now,
                             std::map<std::string, Millis>* unwanted) {
  using Name = std::pair<std::string, std::string>;  // namespace, name
  ProvisionPlan plan;
  std::set<Name> known;
  for (const Provision& request : there) known.emplace(request.space, request.name);
  std::map<Name, std::string> wanted;  // their classes
  for (const JobFact& fact : lacking) {
    if (!IsAskedFor(classes, fact)) continue;
    Name name{fact.workload().namespace_(), ProvisionName(fact)};
    if (!known.contains(name)) plan.ask.push_back(&fact);
    wanted.emplace(std::move(name), classes.at(fact.pool()));
  }
  const std::map<std::string, Millis> before = std::exchange(*unwanted, {});
  for (const Provision& request : there) {
    // Others may use the label, too.
    if (!request.name.starts_with(kNamePrefix)) continue;
    const auto as = wanted.find({request.space, request.name});
    if (as == wanted.end()) {
      const auto since = before.find(request.uid);
      const Millis from = since == before.end() ? now : since->second;
      unwanted->emplace(request.uid, from);
      if (now - from >= kUnwantedFor || classes.empty()) plan.remove.push_back(request);
      continue;
    }
    const bool spent = request.over && request.created_ms + kAskAgain.count() <= now.count();
    if (spent || request.provisioning_class != as->second) plan.remove.push_back(request);
  }
  return plan;
}

std::string ProvisionName(const JobFact& fact) {
  return fmt::format("{}{}-{}", kNamePrefix, fact.workload().uid(), fact.revision());
}

absl::StatusOr<std::string> ProvisionTemplate(const JobFact& fact, std::string_view job) {
  const json object = json::parse(job, nullptr, /*allow_exceptions=*/false);
  const json::json_pointer at("/spec/template/spec");
  if (!object.is_object() || !object.contains(at) || !object[at].is_object()) {
    return InvalidArgument(
        "Job {}/{} has no template", fact.workload().namespace_(), fact.workload().name());
  }
  json spec = object[at];
  for (const char* held : {"schedulingGates", "schedulerName", "nodeName"}) spec.erase(held);
  const json::json_pointer labels("/spec/template/metadata/labels");
  json meta = json::object();
  if (object.contains(labels)) meta["labels"] = object[labels];
  return kubernetes::JsonText({{"apiVersion", "v1"},
                               {"kind", "PodTemplate"},
                               {"metadata", MetaOf(fact)},
                               {"template", {{"metadata", meta}, {"spec", spec}}}});
}

std::string ProvisionRequest(const JobFact& fact, const std::string& provisioning_class) {
  const uint32_t count = fact.min_slots() > 0 ? fact.min_slots() : fact.slots();
  return kubernetes::JsonText(
      {{"apiVersion", "autoscaling.x-k8s.io/v1"},
       {"kind", "ProvisioningRequest"},
       {"metadata", MetaOf(fact)},
       {"spec",
        {{"provisioningClassName", provisioning_class},
         {"podSets",
          json::array(
              {{{"count", count}, {"podTemplateRef", {{"name", ProvisionName(fact)}}}}})}}}});
}

}  // namespace fluxqueue::binder
