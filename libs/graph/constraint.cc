#include "libs/graph/constraint.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr std::string_view kOperators =
    "properties, hostlist, ranks, gt, lt, and, or, not, tolerations";

// RFC 31's list of what a property may not contain, and what would blur ToString().
bool IsPropertyCharacter(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != '\x7f' &&
         std::string_view("!&'\"^`|(),").find(c) == std::string_view::npos;
}

absl::Status CheckArray(const json& value, const std::string& path, bool may_be_empty) {
  if (!value.is_array()) {
    return InvalidArgument("{}: must be a list, is {}", path, value.type_name());
  }
  if (value.empty() && !may_be_empty) {
    return InvalidArgument("{}: is empty; name at least one, or leave the key out", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TextAt(const json& array, size_t index, const std::string& path) {
  if (!array[index].is_string()) {
    return InvalidArgument(
        "{}[{}]: must be a string, is {}", path, index, array[index].type_name());
  }
  return array[index].get<std::string>();
}

// The same where YAML may have made a number of it: a rank, or a host that looks like one.
absl::StatusOr<std::string> NumberOrTextAt(const json& array,
                                           size_t index,
                                           const std::string& path) {
  if (array[index].is_number_unsigned()) return array[index].dump();
  return TextAt(array, index, path);
}

// Those that overlap become one. `ranges` are sorted.
void JoinRanges(std::vector<IdRange>* ranges) {
  size_t last = 0;
  for (const IdRange& range : *ranges) {
    IdRange& before = (*ranges)[last];
    if (range.first <= before.second) {
      before.second = std::max(before.second, range.second);
    } else {
      (*ranges)[++last] = range;
    }
  }
  ranges->resize(last + 1);
}

}  // namespace

absl::StatusOr<Toleration> Toleration::Parse(const std::string& text, const std::string& path) {
  Toleration toleration;
  toleration.text_ = text;
  const size_t colon = text.rfind(':');
  std::string key = text.substr(0, colon);
  if (colon != std::string::npos) {
    toleration.effect_ = text.substr(colon + 1);
    if (toleration.effect_ != "NoSchedule" && toleration.effect_ != "NoExecute" &&
        toleration.effect_ != "PreferNoSchedule") {
      return InvalidArgument(
          "{}: \"{}\" has the effect \"{}\"; allowed are NoSchedule, PreferNoSchedule, NoExecute",
          path,
          text,
          toleration.effect_);
    }
  }
  const size_t equals = key.find('=');
  if (equals != std::string::npos) {
    toleration.any_value_ = false;
    toleration.value_ = key.substr(equals + 1);
    key.resize(equals);
  }
  if (key.empty()) {
    return InvalidArgument(
        "{}: \"{}\" names no taint; write key, key:Effect, key=value:Effect, or * for every taint",
        path,
        text);
  }
  toleration.any_key_ = key == "*";
  toleration.key_ = std::move(key);
  return toleration;
}

bool Toleration::Tolerates(const Taint& taint) const {
  return (effect_.empty() || effect_ == taint.effect) && (any_key_ || key_ == taint.key) &&
         (any_value_ || value_ == taint.value);
}

// Handed down the levels of one expression.
struct Constraint::ParseState {
  // Where `tolerations` go; null where they may not stand.
  std::optional<std::vector<Toleration>>* tolerations;
  // Hosts and ranges of ranks that may still be named.
  size_t* hosts_left;
  size_t* ranges_left;
};

absl::StatusOr<Constraint> Constraint::Parse(const json& value,
                                             const std::string& path,
                                             std::optional<std::vector<Toleration>>* tolerations) {
  size_t hosts_left = kMaxHosts;
  size_t ranges_left = kMaxRankRanges;
  return ParseObject(value, path, {tolerations, &hosts_left, &ranges_left});
}

Constraint Constraint::And(std::vector<Constraint> all) {
  Constraint constraint;
  constraint.operands_ = std::move(all);
  return constraint;
}

Constraint Constraint::Or(std::vector<Constraint> any) {
  Constraint constraint = And(std::move(any));
  constraint.kind_ = Kind::kOr;
  return constraint;
}

Constraint Constraint::Not(Constraint constraint) {
  Constraint negated;
  negated.kind_ = Kind::kNot;
  negated.children().push_back(std::move(constraint));
  return negated;
}

Constraint Constraint::HasLabel(std::string_view key, std::string_view value) {
  Constraint label;
  label.kind_ = Kind::kProperty;
  label.has_value_ = true;
  label.key_end_ = static_cast<uint32_t>(key.size());
  label.text_ = fmt::format("{}={}", key, value);
  return label;
}

Constraint Constraint::IsHost(std::string_view name) {
  return IsAnyHost({std::string(name)});
}

Constraint Constraint::IsAnyRank(std::vector<IdRange> ranges) {
  Constraint ranks;
  ranks.kind_ = Kind::kRanks;
  ranks.operands_ = std::make_shared<const std::vector<IdRange>>(std::move(ranges));
  return ranks;
}

Constraint Constraint::IsAnyHost(std::vector<std::string> names) {
  Constraint hosts;
  hosts.kind_ = Kind::kHosts;
  std::sort(names.begin(), names.end());
  hosts.text_ = fmt::format("{}", fmt::join(names, ","));
  HostSet set;
  for (std::string& name : names) set.AddName(std::move(name));
  set.Finish();
  hosts.operands_ = std::make_shared<const HostSet>(std::move(set));
  return hosts;
}

absl::StatusOr<Constraint> Constraint::ParseObject(const json& value,
                                                   const std::string& path,
                                                   ParseState state) {
  if (!value.is_object()) {
    return InvalidArgument(
        "{}: must be an object such as {{\"properties\": [\"disk=ssd\"]}}, is {}",
        path,
        value.type_name());
  }
  if (value.size() > 1) {
    return InvalidArgument(
        "{}: has {} operators; an object has one, several go into an `and`", path, value.size());
  }
  Constraint all;
  for (const auto& [name, operand] : value.items()) {
    RETURN_IF_ERROR(all.AddOperator(name, operand, fmt::format("{}.{}", path, name), state));
  }
  if (all.children().size() == 1) {
    Constraint only = std::move(all.children().front());
    return only;
  }
  all.children().shrink_to_fit();
  return all;
}

absl::Status Constraint::AddOperator(const std::string& name,
                                     const json& value,
                                     const std::string& path,
                                     ParseState state) {
  if (name == "tolerations") return ParseTolerations(value, path, state);
  if (name == "properties") {
    RETURN_IF_ERROR(CheckArray(value, path, true));
    for (size_t i = 0; i < value.size(); ++i) {
      ASSIGN_OR_RETURN(const std::string text, TextAt(value, i, path));
      ASSIGN_OR_RETURN(Constraint property, ParseProperty(text, fmt::format("{}[{}]", path, i)));
      children().push_back(std::move(property));
    }
    return absl::OkStatus();
  }
  if (name == "gt" || name == "lt") {
    RETURN_IF_ERROR(CheckArray(value, path, false));
    const Kind kind = name == "gt" ? Kind::kGreater : Kind::kLess;
    for (size_t i = 0; i < value.size(); ++i) {
      ASSIGN_OR_RETURN(const std::string text, TextAt(value, i, path));
      ASSIGN_OR_RETURN(Constraint comparison,
                       ParseComparison(kind, text, fmt::format("{}[{}]", path, i)));
      children().push_back(std::move(comparison));
    }
    return absl::OkStatus();
  }
  if (name == "hostlist") {
    ASSIGN_OR_RETURN(Constraint hosts, ParseHosts(value, path, state));
    children().push_back(std::move(hosts));
    return absl::OkStatus();
  }
  if (name == "ranks") {
    ASSIGN_OR_RETURN(Constraint ranks, ParseRanks(value, path));
    const size_t ranges = std::get<Ranks>(ranks.operands_)->size();
    if (ranges > *state.ranges_left) {
      return InvalidArgument("{}: more than {} ranges in one constraint", path, kMaxRankRanges);
    }
    *state.ranges_left -= ranges;
    children().push_back(std::move(ranks));
    return absl::OkStatus();
  }
  if (name == "and") {
    ASSIGN_OR_RETURN(Constraint nested, ParseNested(Kind::kAnd, value, path, state));
    for (Constraint& child : nested.children()) children().push_back(std::move(child));
    return absl::OkStatus();
  }
  if (name == "or" || name == "not") {
    ASSIGN_OR_RETURN(Constraint nested,
                     ParseNested(name == "or" ? Kind::kOr : Kind::kNot,
                                 value,
                                 path,
                                 ParseState{nullptr, state.hosts_left, state.ranges_left}));
    children().push_back(std::move(nested));
    return absl::OkStatus();
  }
  return InvalidArgument("{}: unknown operator; this engine knows {}", path, kOperators);
}

absl::StatusOr<Constraint> Constraint::ParseNested(Kind kind,
                                                   const json& value,
                                                   const std::string& path,
                                                   ParseState state) {
  RETURN_IF_ERROR(CheckArray(value, path, kind == Kind::kAnd));
  Constraint nested;
  nested.kind_ = kind;
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(Constraint child,
                     ParseObject(value[i], fmt::format("{}[{}]", path, i), state));
    // What only held tolerations is no term.
    if (kind == Kind::kAnd && child.kind_ == Kind::kAnd && child.children().empty()) continue;
    nested.children().push_back(std::move(child));
  }
  nested.children().shrink_to_fit();
  return nested;
}

absl::StatusOr<Constraint> Constraint::ParseProperty(const std::string& text,
                                                     const std::string& path) {
  Constraint property;
  property.kind_ = Kind::kProperty;
  property.text_ = text;
  property.wanted_ = text.empty() || text.front() != '^';
  property.key_begin_ = property.wanted_ ? 0 : 1;
  const std::string_view named = std::string_view(text).substr(property.key_begin_);
  if (!std::all_of(named.begin(), named.end(), IsPropertyCharacter)) {
    return InvalidArgument(
        "{}: \"{}\" has a character that no property may have (white space, ! & ' \" ^ ` | ( ) ,)",
        path,
        text);
  }
  const size_t equals = text.find('=');
  property.has_value_ = equals != std::string::npos;
  property.key_end_ = static_cast<uint32_t>(property.has_value_ ? equals : text.size());
  if (property.Key().empty()) {
    return InvalidArgument("{}: \"{}\" names no label; write key or key=value", path, text);
  }
  return property;
}

absl::StatusOr<Constraint> Constraint::ParseComparison(Kind kind,
                                                       const std::string& text,
                                                       const std::string& path) {
  ASSIGN_OR_RETURN(Constraint comparison, ParseProperty(text, path));
  const std::optional<int64_t> number =
      comparison.has_value_ ? WholeNumber(comparison.Value()) : std::nullopt;
  if (!comparison.wanted_ || !number) {
    return InvalidArgument(
        "{}: \"{}\" compares a label with no whole number; write key=5", path, text);
  }
  comparison.kind_ = kind;
  comparison.operands_ = *number;
  return comparison;
}

absl::StatusOr<Constraint> Constraint::ParseHosts(const json& value,
                                                  const std::string& path,
                                                  ParseState state) {
  RETURN_IF_ERROR(CheckArray(value, path, false));
  Constraint hosts;
  hosts.kind_ = Kind::kHosts;
  HostSet names;
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text, NumberOrTextAt(value, i, path));
    RETURN_IF_ERROR(
        Annotate(names.Add(text, *state.hosts_left), fmt::format("{}[{}]: \"{}\"", path, i, text)));
    hosts.text_ += (i == 0 ? "" : ",") + text;
  }
  *state.hosts_left -= names.size();
  names.Finish();
  hosts.operands_ = std::make_shared<const HostSet>(std::move(names));
  return hosts;
}

absl::StatusOr<Constraint> Constraint::ParseRanks(const json& value, const std::string& path) {
  RETURN_IF_ERROR(CheckArray(value, path, false));
  Constraint ranks;
  ranks.kind_ = Kind::kRanks;
  std::vector<IdRange> ranges;
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text, NumberOrTextAt(value, i, path));
    RETURN_IF_ERROR(Annotate(ParseIdset(text, kMaxRankRanges, &ranges),
                             fmt::format("{}[{}]: \"{}\"", path, i, text)));
    ranks.text_ += (i == 0 ? "" : ",") + text;
  }
  std::sort(ranges.begin(), ranges.end());
  JoinRanges(&ranges);
  ranks.operands_ = std::make_shared<const std::vector<IdRange>>(std::move(ranges));
  return ranks;
}

absl::Status Constraint::ParseTolerations(const json& value,
                                          const std::string& path,
                                          ParseState state) {
  if (state.tolerations == nullptr) {
    return InvalidArgument("{}: stands only at the top of the constraints or in an `and` there",
                           path);
  }
  if (state.tolerations->has_value()) {
    return InvalidArgument("{}: stands twice; put all into one list", path);
  }
  RETURN_IF_ERROR(CheckArray(value, path, true));
  std::vector<Toleration>& tolerations = state.tolerations->emplace();
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text, TextAt(value, i, path));
    ASSIGN_OR_RETURN(Toleration toleration,
                     Toleration::Parse(text, fmt::format("{}[{}]", path, i)));
    tolerations.push_back(std::move(toleration));
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::graph
