// What a constraint means, and how it is written. constraint.cc reads it.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/graph/constraint.h"

namespace fluxqueue::graph {

using nlohmann::json;

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

const std::string* Constraint::LabelOf(const Labels& properties) const {
  const std::string_view key = Key();
  const auto label = std::lower_bound(
      properties.begin(), properties.end(), key, [](const auto& entry, std::string_view wanted) {
        return entry.first < wanted;
      });
  return label != properties.end() && label->first == key ? &label->second : nullptr;
}

bool Constraint::MatchesProperty(const Labels& properties) const {
  const std::string* value = LabelOf(properties);
  const bool has = value != nullptr && (!has_value_ || *value == Value());
  return has == wanted_;
}

bool Constraint::MatchesNumber(const Labels& properties) const {
  const std::string* value = LabelOf(properties);
  const std::optional<int64_t> number = value != nullptr ? WholeNumber(*value) : std::nullopt;
  if (!number) return false;
  const int64_t than = std::get<int64_t>(operands_);
  return kind_ == Kind::kGreater ? *number > than : *number < than;
}

bool Constraint::MatchesRank(int64_t rank) const {
  // The last that begins at the rank or before it.
  const std::vector<IdRange>& ranks = *std::get<Ranks>(operands_);
  const auto after =
      std::upper_bound(ranks.begin(), ranks.end(), rank, [](int64_t wanted, const IdRange& range) {
        return wanted < range.first;
      });
  return after != ranks.begin() && rank <= std::prev(after)->second;
}

std::string Constraint::RanksText() const {
  if (!text_.empty()) return text_;
  std::string text;
  for (const auto& [first, last] : *std::get<Ranks>(operands_)) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

bool Constraint::Matches(const ConstraintSubject& node) const {
  const auto matches = [&node](const Constraint& child) { return child.Matches(node); };
  switch (kind_) {
    case Kind::kAnd:
      return std::all_of(children().begin(), children().end(), matches);
    case Kind::kOr:
      return std::any_of(children().begin(), children().end(), matches);
    case Kind::kNot:
      return !std::all_of(children().begin(), children().end(), matches);
    case Kind::kProperty:
      return MatchesProperty(node.properties);
    case Kind::kGreater:
    case Kind::kLess:
      return MatchesNumber(node.properties);
    case Kind::kHosts:
      return std::get<Hosts>(operands_)->Contains(node.name);
    case Kind::kRanks:
      return MatchesRank(node.rank);
  }
  return false;
}

std::vector<const Constraint*> Constraint::Terms() const {
  if (kind_ != Kind::kAnd) return {this};
  std::vector<const Constraint*> terms;
  for (const Constraint& child : children()) {
    for (const Constraint* term : child.Terms()) terms.push_back(term);
  }
  return terms;
}

Constraint Constraint::WithoutComparisons(const std::vector<const NodeSpec*>& nodes) const {
  if (kind_ == Kind::kAnd || kind_ == Kind::kOr || kind_ == Kind::kNot) {
    Constraint same;
    same.kind_ = kind_;
    for (const Constraint& child : children()) {
      same.children().push_back(child.WithoutComparisons(nodes));
    }
    return same;
  }
  if (kind_ != Kind::kGreater && kind_ != Kind::kLess) return *this;
  std::set<std::string_view> values;
  for (const NodeSpec* node : nodes) {
    if (MatchesNumber(node->labels)) values.insert(*LabelOf(node->labels));
  }
  std::vector<Constraint> any;
  // RFC 31 has no `or` of nothing: of no node it is true that it has the label and has it not.
  if (values.empty()) {
    Constraint has;
    has.kind_ = Kind::kProperty;
    has.text_ = Key();
    has.key_end_ = static_cast<uint32_t>(has.text_.size());
    any = {has, Not(has)};
    return And(std::move(any));
  }
  for (const std::string_view value : values) any.push_back(HasLabel(Key(), value));
  return Or(std::move(any));
}

std::string Constraint::Join(std::string_view separator) const {
  std::string text;
  for (const Constraint& child : children()) {
    if (!text.empty()) text += separator;
    text += child.ToString();
  }
  return text;
}

std::string Constraint::ToString() const {
  switch (kind_) {
    case Kind::kAnd:
      return fmt::format("({})", Join(" and "));
    case Kind::kOr:
      return fmt::format("({})", Join(" or "));
    case Kind::kNot:
      return fmt::format("not ({})", Join(" and "));
    case Kind::kProperty:
      return text_;
    case Kind::kGreater:
    case Kind::kLess:
      // No property has a space.
      return fmt::format("{} {} {}", Key(), kind_ == Kind::kGreater ? ">" : "<", Value());
    case Kind::kHosts:
      return fmt::format("hostlist({})", text_);
    case Kind::kRanks:
      return fmt::format("ranks({})", RanksText());
  }
  return {};
}

json Constraint::ToJson() const {
  json children = json::array();
  if (const auto* all = std::get_if<Children>(&operands_)) {
    for (const Constraint& child : *all) children.push_back(child.ToJson());
  }
  switch (kind_) {
    case Kind::kAnd:
      // What is true for every node is no term.
      std::erase_if(children.get_ref<json::array_t&>(),
                    [](const json& term) { return term.empty(); });
      if (children.empty()) return json::object();
      return children.size() == 1 ? children[0] : json{{"and", children}};
    case Kind::kOr:
      return {{"or", children}};
    case Kind::kNot:
      return {{"not", children}};
    case Kind::kProperty: {
      json property = {{"properties", json::array({text_.substr(wanted_ ? 0 : 1)})}};
      if (wanted_) return property;
      return {{"not", json::array({std::move(property)})}};
    }
    case Kind::kGreater:
    case Kind::kLess:
      return {{kind_ == Kind::kGreater ? "gt" : "lt", json::array({text_})}};
    case Kind::kHosts:
      return {{"hostlist", json::array({text_})}};
    case Kind::kRanks: {
      // Each of them may have stood in brackets, and all of them together may not.
      std::string ranks = RanksText();
      std::erase_if(ranks, [](char c) { return c == '[' || c == ']'; });
      return {{"ranks", json::array({ranks})}};
    }
  }
  return {};
}

bool IsCondition(const Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") ||
         taint.key.starts_with("node.cloudprovider.kubernetes.io/");
}

const Taint* FirstUntolerated(std::span<const Taint> taints,
                              const std::vector<Toleration>& tolerations,
                              bool lasting) {
  for (const Taint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (lasting && IsCondition(taint)) continue;
    const bool tolerated =
        std::any_of(tolerations.begin(), tolerations.end(), [&taint](const Toleration& entry) {
          return entry.Tolerates(taint);
        });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

}  // namespace fluxqueue::graph
