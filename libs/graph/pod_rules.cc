#include "libs/graph/pod_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "libs/graph/json_fields.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kPodKeys = {"labels", "namespace"};
constexpr std::array<std::string_view, 3> kPodsKeys = {"apart", "beside", "spread"};
constexpr std::array<std::string_view, 2> kRuleKeys = {"key", "pods"};
constexpr std::array<std::string_view, 6> kSpreadKeys = {
    "affinity", "domains", "key", "pods", "skew", "taints"};
constexpr std::array<std::string_view, 2> kPreferredKeys = {"even", "near"};
constexpr std::array<std::string_view, 3> kNearKeys = {"key", "pods", "weight"};
constexpr std::array<std::string_view, 4> kEvenKeys = {"affinity", "key", "pods", "taints"};
constexpr std::array<std::string_view, 2> kSelectorKeys = {"expressions", "labels"};
constexpr std::array<std::string_view, 3> kExpressionKeys = {"key", "op", "values"};
constexpr std::array<std::string_view, 4> kOperators = {"DoesNotExist", "Exists", "In", "NotIn"};
constexpr int64_t kMostPods = int64_t{1} << 31;
constexpr int64_t kMaxPodWeight = 100;

absl::Status CheckSize(const json& value, const std::string& path) {
  const size_t bytes = value.dump().size();
  if (bytes <= kMaxPodRuleBytes) return absl::OkStatus();
  return InvalidArgument("{}: has {} bytes, at most {} are allowed", path, bytes, kMaxPodRuleBytes);
}

absl::StatusOr<LabelMap> ParseLabels(const json& object, const std::string& path) {
  LabelMap labels;
  const auto found = object.find("labels");
  if (found == object.end()) return labels;
  if (!found->is_object()) {
    return InvalidArgument("{}.labels: must be an object, is {}", path, found->type_name());
  }
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) {
      return InvalidArgument("{}.labels.{}: must be a string, is {}", path, key, value.dump());
    }
    labels.emplace(key, value.get<std::string>());
  }
  return labels;
}

absl::StatusOr<std::string> ParseValue(const json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  return InvalidArgument("{}: must be a string, is {}", path, value.dump());
}

absl::StatusOr<LabelExpression> ParseExpression(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kExpressionKeys));
  LabelExpression expression;
  ASSIGN_OR_RETURN(expression.key, Text(value, "key", path));
  ASSIGN_OR_RETURN(expression.op, Text(value, "op", path));
  if (std::find(kOperators.begin(), kOperators.end(), expression.op) == kOperators.end()) {
    return InvalidArgument(
        "{}.op: must be one of {}, is \"{}\"", path, fmt::join(kOperators, ", "), expression.op);
  }
  ASSIGN_OR_RETURN(expression.values, ParseItems<std::string>(value, "values", path, ParseValue));
  return expression;
}

absl::StatusOr<LabelSelector> ParseSelector(const json& rule, const std::string& of_rule) {
  ASSIGN_OR_RETURN(const json* value, Member(rule, "pods", of_rule));
  const std::string path = of_rule + ".pods";
  RETURN_IF_ERROR(CheckObject(*value, path, kSelectorKeys));
  LabelSelector selector;
  ASSIGN_OR_RETURN(selector.labels, ParseLabels(*value, path));
  ASSIGN_OR_RETURN(selector.expressions,
                   ParseItems<LabelExpression>(*value, "expressions", path, ParseExpression));
  return selector;
}

absl::StatusOr<PodRule> ParseRule(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kRuleKeys));
  PodRule rule;
  ASSIGN_OR_RETURN(rule.key, Text(value, "key", path));
  ASSIGN_OR_RETURN(rule.pods, ParseSelector(value, path));
  return rule;
}

absl::StatusOr<bool> Flag(const json& object, const char* key, const std::string& path) {
  ASSIGN_OR_RETURN(const json* value, Member(object, key, path));
  if (value->is_boolean()) return value->get<bool>();
  return InvalidArgument("{}.{}: must be true or false, is {}", path, key, value->dump());
}

absl::StatusOr<SpreadRule> ParseWhereCounted(const json& value, const std::string& path) {
  SpreadRule rule;
  ASSIGN_OR_RETURN(rule.key, Text(value, "key", path));
  ASSIGN_OR_RETURN(rule.pods, ParseSelector(value, path));
  ASSIGN_OR_RETURN(rule.heeds_constraint, Flag(value, "affinity", path));
  ASSIGN_OR_RETURN(rule.heeds_taints, Flag(value, "taints", path));
  return rule;
}

absl::StatusOr<SpreadRule> ParseSpread(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kSpreadKeys));
  ASSIGN_OR_RETURN(SpreadRule rule, ParseWhereCounted(value, path));
  ASSIGN_OR_RETURN(rule.skew, Integer(value, "skew", path, 1, kMostPods));
  ASSIGN_OR_RETURN(rule.domains, Integer(value, "domains", path, 1, kMostPods));
  return rule;
}

absl::StatusOr<SpreadRule> ParseEven(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kEvenKeys));
  return ParseWhereCounted(value, path);
}

absl::StatusOr<PodPreference> ParseNear(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kNearKeys));
  PodPreference preference;
  ASSIGN_OR_RETURN(preference.key, Text(value, "key", path));
  ASSIGN_OR_RETURN(preference.pods, ParseSelector(value, path));
  ASSIGN_OR_RETURN(preference.weight,
                   Integer(value, "weight", path, -kMaxPodWeight, kMaxPodWeight));
  return preference;
}

absl::Status CheckCount(size_t count, const std::string& path) {
  if (count > 0 && count <= kMaxPodRules) return absl::OkStatus();
  return InvalidArgument("{}: has {} rules, 1 to {} are allowed", path, count, kMaxPodRules);
}

}  // namespace

absl::Status ParsePodOf(const json& pod, PodRules* rules) {
  const std::string path = "attributes.system.job.pod";
  RETURN_IF_ERROR(CheckObject(pod, path, kPodKeys));
  RETURN_IF_ERROR(CheckSize(pod, path));
  ASSIGN_OR_RETURN(rules->space, Text(pod, "namespace", path));
  ASSIGN_OR_RETURN(rules->labels, ParseLabels(pod, path));
  return absl::OkStatus();
}

absl::Status ParsePodRules(const json& pods, PodRules* rules) {
  const std::string path = "attributes.system.pods";
  RETURN_IF_ERROR(CheckObject(pods, path, kPodsKeys));
  RETURN_IF_ERROR(CheckSize(pods, path));
  ASSIGN_OR_RETURN(rules->apart, ParseItems<PodRule>(pods, "apart", path, ParseRule));
  ASSIGN_OR_RETURN(rules->beside, ParseItems<PodRule>(pods, "beside", path, ParseRule));
  ASSIGN_OR_RETURN(rules->spread, ParseItems<SpreadRule>(pods, "spread", path, ParseSpread));
  RETURN_IF_ERROR(
      CheckCount(rules->apart.size() + rules->beside.size() + rules->spread.size(), path));
  rules->signature = Digested(pods.dump());
  return absl::OkStatus();
}

absl::Status ParsePodPreferences(const json& pods, PodPreferences* preferences) {
  const std::string path = "attributes.system.job.pods";
  RETURN_IF_ERROR(CheckObject(pods, path, kPreferredKeys));
  RETURN_IF_ERROR(CheckSize(pods, path));
  ASSIGN_OR_RETURN(preferences->near, ParseItems<PodPreference>(pods, "near", path, ParseNear));
  ASSIGN_OR_RETURN(preferences->even, ParseItems<SpreadRule>(pods, "even", path, ParseEven));
  return CheckCount(preferences->near.size() + preferences->even.size(), path);
}

}  // namespace fluxqueue::graph
