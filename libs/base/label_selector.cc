#include "libs/base/label_selector.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fluxqueue {

bool LabelSelector::Selects(const LabelMap& of) const {
  for (const auto& [key, value] : labels) {
    const auto found = of.find(key);
    if (found == of.end() || found->second != value) return false;
  }
  return std::all_of(expressions.begin(), expressions.end(), [&of](const auto& expression) {
    const auto found = of.find(expression.key);
    const bool there = found != of.end();
    if (expression.op == "Exists") return there;
    if (expression.op == "DoesNotExist") return !there;
    const auto& values = expression.values;
    const bool named =
        there && std::find(values.begin(), values.end(), found->second) != values.end();
    return expression.op == "In" ? named : expression.op == "NotIn" && !named;
  });
}

std::string LabelSelector::Text() const {
  std::vector<std::string> parts;
  for (const auto& [key, value] : labels) parts.push_back(fmt::format("{}={}", key, value));
  for (const LabelExpression& expression : expressions) {
    const auto values = fmt::format("({})", fmt::join(expression.values, ","));
    if (expression.op == "Exists") {
      parts.push_back(expression.key);
    } else if (expression.op == "DoesNotExist") {
      parts.push_back("!" + expression.key);
    } else {
      const std::string_view op = expression.op == "In" ? "in" : "notin";
      parts.push_back(fmt::format("{} {} {}", expression.key, op, values));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace fluxqueue
