#include <array>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/constraint.h"
#include "libs/graph/json_check.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using graph::Constraint;
using nlohmann::json;

absl::StatusOr<Constraint> Parse(const json& value) {
  std::optional<std::vector<graph::Toleration>> tolerations;
  return Constraint::Parse(value, "constraints", &tolerations);
}

const std::array<graph::Labels, 3> kLabels = {
    {{}, {{"disk", "ssd"}, {"gpu", ""}}, {{"a", "1"}, {"b", "2"}}}};

bool Matches(const Constraint& constraint, int node) {
  return constraint.Matches(
      {fmt::format("node{}", node), node - 1, kLabels[static_cast<size_t>(node)]});
}

}  // namespace

void FuzzConstraint(std::string_view text) {
  // As a jobspec's: a tree is made of nothing else.
  if (!graph::CheckJson(text, {.depth = 32}).ok()) return;
  const json value = json::parse(text);
  const auto constraint = Parse(value);
  if (!constraint.ok()) {
    CHECK(absl::IsInvalidArgument(constraint.status()), "{}", Message(constraint.status()));
    CHECK(Message(constraint.status()).starts_with("constraints"));
    return;
  }
  const auto same = Parse({{"and", {value}}});
  CHECK(same.ok(), "{}", Message(same.status()));
  // Not with tolerations, which stand at the top only.
  const auto either = Parse({{"or", {value, value}}});
  const auto inverse = Parse({{"not", {value}}});
  for (int node = 0; node < 3; ++node) {
    const bool matches = Matches(*constraint, node);
    CHECK(Matches(*same, node) == matches, "{}", constraint->ToString());
    if (inverse.ok()) CHECK(Matches(*inverse, node) != matches, "{}", constraint->ToString());
    if (either.ok()) CHECK(Matches(*either, node) == matches, "{}", constraint->ToString());
    bool all = true;
    for (const Constraint* term : constraint->Terms()) all = all && Matches(*term, node);
    CHECK(all == matches, "{}", constraint->ToString());
  }
}

}  // namespace fluxqueue::fuzz
