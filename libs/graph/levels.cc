#include "libs/graph/levels.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

constexpr std::array<std::string_view, 3> kTakenNames = {"cluster", "node", "slot"};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Takes the number that the text begins with, without leading zeros.
std::string_view TakeNumber(std::string_view* text) {
  size_t end = 0;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  std::string_view number = text->substr(0, end);
  text->remove_prefix(end);
  while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
  return number;
}

}  // namespace

absl::StatusOr<std::vector<Level>> ParseLevels(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxLevels) {
    return InvalidArgument(
        "levels: {} are given, at most {} are allowed", texts.size(), kMaxLevels);
  }
  std::vector<Level> levels;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    Level level;
    level.label = equals == std::string::npos ? text : text.substr(equals + 1);
    level.name =
        equals == std::string::npos ? text.substr(text.rfind('/') + 1) : text.substr(0, equals);
    if (level.name.empty() || level.label.empty()) {
      return InvalidArgument(
          "levels: \"{}\": must be a node label such as topology.kubernetes.io/zone, or a name and "
          "a "
          "label such as rack=example.com/rack-number",
          text);
    }
    if (std::find(kTakenNames.begin(), kTakenNames.end(), level.name) != kTakenNames.end()) {
      return InvalidArgument(
          "levels: \"{}\": a level cannot be called \"{}\"; write name=label", text, level.name);
    }
    for (const Level& other : levels) {
      if (other.name != level.name && other.label != level.label) continue;
      return InvalidArgument("levels: \"{}\": the {} is another level's",
                             text,
                             other.name == level.name ? "name" : "label");
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

const std::string* LabelOf(const NodeSpec& node, std::string_view label) {
  const auto found = std::lower_bound(
      node.labels.begin(), node.labels.end(), label, [](const auto& entry, std::string_view key) {
        return entry.first < key;
      });
  return found == node.labels.end() || found->first != label ? nullptr : &found->second;
}

std::string GroupOf(const NodeSpec& node, std::span<const Level> levels) {
  std::string group;
  for (const Level& level : levels) {
    const std::string* value = LabelOf(node, level.label);
    if (!group.empty()) group += "/";
    // No label's value has a colon.
    group += value != nullptr ? *value : node.name + ":" + level.name;
  }
  return group;
}

bool NaturallyBefore(std::string_view a, std::string_view b) {
  const std::string_view all_of_a = a;
  const std::string_view all_of_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view x = TakeNumber(&a);
      const std::string_view y = TakeNumber(&b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  // "r01" and "r1" are not the same.
  if (a.empty() && b.empty()) return all_of_a < all_of_b;
  return a.empty();
}

}  // namespace fluxqueue::graph
