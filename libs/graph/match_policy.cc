#include "libs/graph/match_policy.h"

#include <array>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using Order = MatchPolicy::Order;
using SetsAside = MatchPolicy::SetsAside;

constexpr std::array<std::pair<std::string_view, MatchPolicy>, 13> kPolicies = {{
    {"first", {Order::kHigh, true, false, true}},
    {"firstnodex", {Order::kHigh, true, true, true}},
    {"high", {Order::kHigh, false, false, false}},
    {"hinode", {Order::kHigh, true, false, false}},
    {"hinodex", {Order::kHigh, true, true, false}},
    {"locality", {Order::kLocality, false, false, false}},
    {"lonode", {Order::kLow, true, false, false}},
    {"lonodex", {Order::kLow, true, true, false}},
    {"low", {Order::kLow, false, false, false}},
    {"packed", {Order::kPacked, false, false, false, SetsAside::kUnexpected}},
    {"packed-3", {Order::kPacked, false, false, false, SetsAside::kNothing}},
    {"packed-4", {Order::kPacked, false, false, false, SetsAside::kExpected}},
    {"variation", {Order::kVariation, false, false, false}},
}};

absl::StatusOr<bool> ParseFlag(std::string_view key, std::string_view value) {
  if (value == "true") return true;
  if (value == "false") return false;
  return InvalidArgument("policy: {} must be true or false, is \"{}\"", key, value);
}

absl::Status ParseSetting(std::string_view setting, MatchPolicy* policy, bool* ordered) {
  const size_t equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : setting.substr(equals + 1);
  if (key == "policy") {
    if (value != "high" && value != "low") {
      return InvalidArgument("policy: policy must be high or low, is \"{}\"", value);
    }
    policy->order = value == "high" ? Order::kHigh : Order::kLow;
    *ordered = true;
    return absl::OkStatus();
  }
  for (const auto& [name, flag] : {std::pair{"node_centric", &policy->node_centric},
                                   std::pair{"node_exclusive", &policy->node_exclusive},
                                   std::pair{"stop_on_1_matches", &policy->stop_on_first}}) {
    if (key != name) continue;
    ASSIGN_OR_RETURN(*flag, ParseFlag(key, value));
    return absl::OkStatus();
  }
  return InvalidArgument(
      "policy: \"{}\" is neither one of first, firstnodex, high, hinode, hinodex, locality, "
      "lonode, lonodex, low, packed, variation, nor settings of policy=high|low, node_centric=, "
      "node_exclusive=, stop_on_1_matches=",
      setting);
}

}  // namespace

absl::StatusOr<MatchPolicy> MatchPolicy::Parse(std::string_view text) {
  for (const auto& [name, policy] : kPolicies) {
    if (name == text) return policy;
  }
  MatchPolicy policy;
  bool ordered = false;
  while (true) {
    const size_t space = text.find(' ');
    RETURN_IF_ERROR(ParseSetting(text.substr(0, space), &policy, &ordered));
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  if (!ordered) return InvalidArgument("policy: settings need policy=high or policy=low");
  return policy;
}

}  // namespace fluxqueue::graph
