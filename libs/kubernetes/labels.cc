#include "libs/kubernetes/labels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_reader.h"

#include "keys_table.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr std::array kUserKeys = {kQueueKey,
                                  kPriorityKey,
                                  kDurationKey,
                                  kTopologyKey,
                                  kDependsOnKey,
                                  kBeginKey,
                                  kMinSlotsKey,
                                  kMaxSlotsKey,
                                  kArrayKey,
                                  kGroupNameKey,
                                  kGroupSizeKey,
                                  kGrowthKey,
                                  kIgnoreDisruptionsKey,
                                  kQosKey,
                                  kHoldKey,
                                  kCancelKey,
                                  kRetryKey,
                                  kManagedLabel};
// Beside those that are recorded.
constexpr std::array kOurKeys = {kPoolLabel, kHeldLabel, kGate, kUserAnnotation};
// What the cluster of tools/cluster reads (stages/pod.yaml), where kwok plays the pods.
constexpr std::array<std::string_view, 2> kPlayedKeys = {"fluxqueue.io/run-seconds",
                                                         "fluxqueue.io/exit"};
constexpr std::array<std::string_view, 2> kLaterKeys = {"fluxqueue.io/jobspec",
                                                        "fluxqueue.io/exclusive"};

template <typename List>
bool Contains(const List& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

template <typename Int>
bool ParseWhole(std::string_view text, Int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status CheckKeys(const StringMap& map) {
  for (auto it = map.lower_bound(kPrefix); it != map.end() && it->first.starts_with(kPrefix);
       ++it) {
    if (Contains(kUserKeys, it->first) || Contains(kOurKeys, it->first) ||
        RecordedKeys().contains(it->first) || Contains(kPlayedKeys, it->first)) {
      continue;
    }
    if (Contains(kLaterKeys, it->first)) {
      return InvalidArgument("{}=\"{}\": this version of Fluxqueue cannot honour it; remove it",
                             it->first,
                             it->second);
    }
    return InvalidArgument(
        "{}=\"{}\": no such key; known are {}", it->first, it->second, fmt::join(kUserKeys, ", "));
  }
  return absl::OkStatus();
}

// The key's value from either map; null: not there.
absl::StatusOr<const std::string*> Find(std::string_view key,
                                        const StringMap& labels,
                                        const StringMap& annotations) {
  const auto label = labels.find(key);
  const auto annotation = annotations.find(key);
  if (label == labels.end()) return annotation == annotations.end() ? nullptr : &annotation->second;
  if (annotation != annotations.end() && annotation->second != label->second) {
    return InvalidArgument("{}: the label says \"{}\", the annotation \"{}\"; keep one of them",
                           key,
                           label->second,
                           annotation->second);
  }
  return &label->second;
}

absl::StatusOr<std::string> ParseQueueName(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool good = !text.empty() && text.size() <= 63 && plain(text.front()) &&
                    plain(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
                      return plain(c) || c == '-' || c == '.';
                    });
  if (good) return std::string(text);
  return InvalidArgument(
      "\"{}\" is not the name of a FluxQueue: allowed are up to 63 of a-z, 0-9, '-' and '.', "
      "beginning and ending with a letter or digit",
      text);
}

absl::StatusOr<int32_t> ParsePriority(std::string_view text) {
  int32_t priority = 0;
  if (ParseWhole(text, &priority)) return priority;
  return InvalidArgument("\"{}\" is not a priority: allowed are whole numbers from {} to {}",
                         text,
                         std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max());
}

absl::StatusOr<int64_t> ParseSlots(std::string_view text) {
  int64_t slots = 0;
  if (ParseWhole(text, &slots) && slots >= 1) return slots;
  return InvalidArgument("\"{}\" is no number of pods: allowed are whole numbers from 1 on", text);
}

absl::StatusOr<std::string> AnyText(std::string_view text) {
  return std::string(text);
}

// Reads one key into *out, if it is there; an error names the key.
template <typename T, typename Out>
absl::Status Take(std::string_view key,
                  const StringMap& labels,
                  const StringMap& annotations,
                  absl::StatusOr<T> (*parse)(std::string_view),
                  Out* out) {
  ASSIGN_OR_RETURN(const std::string* text, Find(key, labels, annotations));
  if (text == nullptr) return absl::OkStatus();
  absl::StatusOr<T> value = parse(*text);
  if (!value.ok()) return Annotate(value.status(), key);
  *out = *std::move(value);
  return absl::OkStatus();
}

// Milliseconds of a unit, 0 if there is no such unit; takes it from the text.
int64_t TakeUnit(std::string_view& text) {
  struct Unit {
    std::string_view name;
    int64_t millis;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.millis;
  }
  return 0;
}

}  // namespace

const std::set<std::string, std::less<>>& RecordedKeys() {
  static const auto kKeys = [] {
    std::set<std::string, std::less<>> keys;
    for (const YAML::Node& key : YAML::Load(kKeysTable)) keys.insert(key.as<std::string>());
    return keys;
  }();
  return kKeys;
}

absl::StatusOr<UserKeys> ParseUserKeys(const StringMap& labels, const StringMap& annotations) {
  RETURN_IF_ERROR(CheckKeys(labels));
  RETURN_IF_ERROR(CheckKeys(annotations));
  UserKeys keys;
  bool managed = false;
  RETURN_IF_ERROR(Take(kQueueKey, labels, annotations, ParseQueueName, &keys.queue));
  RETURN_IF_ERROR(Take(kPriorityKey, labels, annotations, ParsePriority, &keys.priority));
  RETURN_IF_ERROR(Take(kDurationKey, labels, annotations, ParseDuration, &keys.duration));
  RETURN_IF_ERROR(Take(kTopologyKey, labels, annotations, ParseTopology, &keys.topology));
  RETURN_IF_ERROR(Take(kDependsOnKey, labels, annotations, ParseDependsOn, &keys.depends_on));
  RETURN_IF_ERROR(Take(kBeginKey, labels, annotations, ParseBegin, &keys.begin));
  RETURN_IF_ERROR(Take(kMinSlotsKey, labels, annotations, ParseSlots, &keys.min_slots));
  RETURN_IF_ERROR(Take(kMaxSlotsKey, labels, annotations, ParseSlots, &keys.max_slots));
  RETURN_IF_ERROR(Take(kArrayKey, labels, annotations, ParseSlots, &keys.array));
  RETURN_IF_ERROR(
      Take(kIgnoreDisruptionsKey, labels, annotations, ParseBool, &keys.ignore_disruptions));
  RETURN_IF_ERROR(Take(kHoldKey, labels, annotations, ParseBool, &keys.hold));
  RETURN_IF_ERROR(Take(kCancelKey, labels, annotations, ParseBool, &keys.cancel));
  RETURN_IF_ERROR(Take(kRetryKey, labels, annotations, AnyText, &keys.retry));
  RETURN_IF_ERROR(Take(kQosKey, labels, annotations, AnyText, &keys.qos));
  RETURN_IF_ERROR(Take(kManagedLabel, labels, {}, ParseBool, &managed));
  return keys;
}

bool MayBeElastic(const Job& job) {
  for (const StringMap* map :  // hint: a user's wishes.
       {&job.meta.labels, &job.meta.annotations, &job.template_labels, &job.template_annotations}) {
    for (const std::string_view key : {kMinSlotsKey, kMaxSlotsKey, kArrayKey}) {
      if (map->contains(key)) return true;
    }
  }
  return false;
}

absl::StatusOr<UserKeys> ParseUserKeys(const Job& job) {
  // hint: a user's wishes.
  ASSIGN_OR_RETURN(UserKeys keys, ParseUserKeys(job.meta.labels, job.meta.annotations));
  const absl::StatusOr<UserKeys> from_template =  // hint: as above
      ParseUserKeys(job.template_labels, job.template_annotations);
  if (!from_template.ok()) return Annotate(from_template.status(), "pod template");
  if (!keys.queue) keys.queue = from_template->queue;
  if (!keys.priority) keys.priority = from_template->priority;
  if (!keys.duration) keys.duration = from_template->duration;
  if (!keys.topology) keys.topology = from_template->topology;
  if (!keys.depends_on) keys.depends_on = from_template->depends_on;
  if (!keys.begin) keys.begin = from_template->begin;
  if (!keys.min_slots) keys.min_slots = from_template->min_slots;
  if (!keys.max_slots) keys.max_slots = from_template->max_slots;
  if (!keys.array) keys.array = from_template->array;
  if (!keys.ignore_disruptions) keys.ignore_disruptions = from_template->ignore_disruptions;
  keys.hold = keys.hold || from_template->hold;
  if (keys.qos.empty()) keys.qos = from_template->qos;
  return keys;
}

absl::StatusOr<Growth> ParseGrowth(std::string_view text) {
  if (text == "each") return Growth::kEach;
  if (text == "all") return Growth::kAll;
  return InvalidArgument("\"{}\": allowed are each and all", text);
}

absl::StatusOr<Millis> ParseDuration(std::string_view text) {
  constexpr int64_t kLongest = int64_t{100} * 365 * 24 * 3'600'000;  // a century
  std::string_view rest = text;
  int64_t sum = 0;
  bool good = !rest.empty();
  while (good && !rest.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    good = error == std::errc() && number >= 0 && rest.front() != '-';
    if (!good) break;
    const bool whole = end == text.data() + text.size() && rest.size() == text.size();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    const int64_t unit = whole ? 1000 : TakeUnit(rest);
    good = unit > 0 && number <= kLongest / unit && sum + number * unit <= kLongest;
    if (good) sum += number * unit;
  }
  if (good) return Millis(sum);
  return InvalidArgument(
      "\"{}\" is not a duration: allowed are seconds (\"90\") or a sum of h, m, s and ms "
      "(\"1h30m\", \"90s\"), a century at most; \"0\" means unlimited",
      text);
}

absl::StatusOr<std::vector<DependsOn>> ParseDependsOn(std::string_view text) {
  const auto is_name = [](std::string_view name) {
    return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
  };
  std::vector<DependsOn> list;
  bool good = !text.empty();
  for (std::string_view rest = text; good;) {
    const size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    const size_t colon = item.find(':');
    const auto condition = scheduling::FindCondition(item.substr(0, colon));
    good = condition.has_value() && colon != item.npos;
    while (good && !item.empty()) {
      item.remove_prefix(std::min(item.find(':'), item.size() - 1) + 1);
      const std::string_view job = item.substr(0, item.find(':'));
      good = is_name(job) && list.size() < kMaxDependencies;
      if (good) list.push_back({*condition, std::string(job)});
      if (item.find(':') == item.npos) break;
    }
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (good) return list;
  return InvalidArgument(
      "\"{}\": allowed are up to {} of CONDITION:JOB with commas between them, such as "
      "\"afterok:prepare,afterany:collect\"; CONDITION is afterok, afterany or afternotok, JOB the "
      "name of a workload of the same namespace, or its uid",
      text,
      kMaxDependencies);
}

absl::StatusOr<Begin> ParseBegin(std::string_view text) {
  if (text.starts_with('+')) {
    const absl::StatusOr<Millis> after = ParseDuration(text.substr(1));
    if (after.ok()) return Begin{.at_ms = 0, .after = *after};
  } else if (const std::optional<int64_t> at = internal::ParseTime(text)) {
    return Begin{.at_ms = *at, .after = std::nullopt};
  }
  return InvalidArgument(
      "\"{}\" is no time to begin at: allowed are a time such as \"2026-01-31T12:00:00Z\", or how "
      "long after it was made, such as \"+90s\" or \"+1h30m\"",
      text);
}

absl::StatusOr<Topology> ParseTopology(std::string_view text) {
  const auto trim = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  const auto is_name = [](std::string_view name) {
    return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.';
    });
  };
  Topology topology;
  std::string_view rest = text;
  bool good = true;
  while (good) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t colon = part.find(':');
    const std::string_view key = trim(part.substr(0, colon));
    const std::string_view level = colon == part.npos ? "" : trim(part.substr(colon + 1));
    std::string* const value = key == "required"    ? &topology.required
                               : key == "preferred" ? &topology.preferred
                                                    : nullptr;
    good = value != nullptr && value->empty() && is_name(level);
    if (good) *value = level;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (good) return topology;
  return InvalidArgument(
      "\"{}\": allowed are \"required: LEVEL\", \"preferred: LEVEL\", or both with a comma between "
      "them; LEVEL is one of the pool's, such as zone or rack",
      text);
}

std::string FormatTopology(const Topology& topology) {
  std::string text;
  if (!topology.required.empty()) text = "required: " + topology.required;
  if (topology.preferred.empty()) return text;
  return text + (text.empty() ? "" : ", ") + "preferred: " + topology.preferred;
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return InvalidArgument("\"{}\": allowed are \"true\" and \"false\"", text);
}

std::string FormatSlotName(const SlotName& name) {
  return fmt::format("{}.{}.{}/{}", name.attempt, name.part, name.slot, name.slots);
}

absl::StatusOr<SlotName> ParseSlotName(std::string_view text) {
  SlotName name;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](uint32_t* value, char closing) {
    const auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc()) return false;
    at = next;
    if (closing == 0) return at == end;
    return at != end && *at++ == closing;
  };
  if (take(&name.attempt, '.') && take(&name.part, '.') && take(&name.slot, '/') &&
      take(&name.slots, 0) && name.slot < name.slots) {
    return name;
  }
  return InvalidArgument("\"{}\" is not a slot: it must read <attempt>.<part>.<slot>/<slots>",
                         text);
}

}  // namespace fluxqueue::kubernetes
