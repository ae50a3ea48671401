#include "libs/kubernetes/group_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_path.h"
#include "libs/kubernetes/names.h"

#include "groups_table.h"

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;

// Null: neither has it.
const std::string* Value(const std::string& key,
                         const StringMap& labels,
                         const StringMap& annotations) {
  for (const StringMap* map : {&labels, &annotations}) {
    if (const auto found = map->find(key); found != map->end()) return &found->second;
  }
  return nullptr;
}

absl::Status CheckBoth(const StringMap& labels, const StringMap& annotations) {
  const std::string name(kGroupNameKey);
  const std::string size(kGroupSizeKey);
  const bool named = Value(name, labels, annotations) != nullptr;
  if (named == (Value(size, labels, annotations) != nullptr)) return absl::OkStatus();
  return InvalidArgument(
      "{}: allowed with {} only, and the other way round: a gang has a name and a number of pods",
      named ? name : size,
      named ? size : name);
}

absl::StatusOr<uint32_t> ParseSize(const std::string& key, std::string_view text) {
  uint32_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (number && size >= 1 && size <= kMaxGroupPods) return size;
  return InvalidArgument(
      "{}: \"{}\": allowed are 1 to {}, the pods of the group", key, text, kMaxGroupPods);
}

// What a path with `each` is looked for in: the items of a list or the values of a map; where it
// has a '*' in the middle, of all that it leads to.
std::vector<const json*> Items(const json& object, const std::string& each) {
  constexpr std::string_view kInEach = "/*/";
  if (each.empty()) return {&object};
  std::vector<const json*> items;
  const size_t outer = each.find(kInEach);
  if (outer != each.npos) {
    const std::string inner = each.substr(outer + kInEach.size() - 1);
    for (const json* item : Items(object, each.substr(0, outer))) {
      const std::vector<const json*> of_item = Items(*item, inner);
      items.insert(items.end(), of_item.begin(), of_item.end());
    }
    return items;
  }
  const json* list = At(object, each);
  if (list == nullptr || !list->is_structured()) return items;
  for (const json& item : *list) items.push_back(&item);
  return items;
}

// The least number that one of the paths leads to; what is not there is 1.
absl::StatusOr<int64_t> Least(const json& item, const std::vector<std::string>& paths) {
  std::optional<int64_t> least;
  for (const std::string& path : paths) {
    const json* value = At(item, path);
    if (value == nullptr) continue;
    if (!value->is_number_integer()) {
      return InvalidArgument("{}: \"{}\": allowed is a number of pods", path, value->type_name());
    }
    least = std::min(least.value_or(INT64_MAX), value->get<int64_t>());
  }
  return least.value_or(1);
}

// Names of others may be any text.
std::string AsDnsLabel(const std::string& name) {
  if (IsDnsLabel(name)) return name;
  constexpr size_t kKept = 40;
  std::string label = name.substr(0, kKept);
  for (char& c : label) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '-';
  }
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("g-{}-{:016x}", label, hash);
}

// Null: there is nothing, or something empty.
const json* FilledAt(const json& object, const std::string& path) {
  const json* value = At(object, path);
  return value == nullptr || value->empty() ? nullptr : value;
}

bool Has(const json& object, const GroupObjects::Value& value) {
  const std::vector<const json*> items = Items(object, value.each);
  return std::any_of(items.begin(), items.end(), [&](const json* item) {
    if (!value.over.empty()) {
      return Least(*item, {value.at}).value_or(0) > Least(*item, {value.over}).value_or(0);
    }
    const json* found = FilledAt(*item, value.at);
    if (!value.differs.empty()) {
      const json* other = FilledAt(*item, value.differs);
      return found == nullptr || other == nullptr ? found != other : *found != *other;
    }
    if (found == nullptr || value.is.empty()) return found != nullptr;
    return (found->is_string() ? found->get<std::string>() : found->dump()) == value.is;
  });
}

}  // namespace

// Rows from text that people write. Throws YAML::Exception, and std::invalid_argument.
class GroupTable::Reader {
 public:
  static std::vector<Row> Rows(std::string_view yaml) {
    std::vector<Row> rows;
    for (const YAML::Node& row : YAML::Load(std::string(yaml))) {
      try {
        rows.push_back(ReadRow(row));
      } catch (const std::exception& problem) {
        throw std::invalid_argument(fmt::format("row {}: {}", rows.size() + 1, problem.what()));
      }
    }
    return rows;
  }

 private:
  static Row ReadRow(const YAML::Node& node) {
    CheckKeys(node,
              {"name",
               "field",
               "owner",
               "growth",
               "if",
               "size",
               "object",
               "pods",
               "places",
               "unless",
               "else",
               "of"});
    Row row;
    if (node["owner"]) {
      row.owners = ReadOwners(node);
    } else if (node["field"]) {
      row.by_pod_group = node["field"].as<std::string>() == "schedulingGroup";
      if (!row.by_pod_group) throw std::invalid_argument("field: allowed is schedulingGroup");
    } else {
      row.name = node["name"].as<std::vector<std::string>>();
      if (row.name.empty()) throw std::invalid_argument("name: wanted a list of keys");
    }
    if (node["if"]) row.conditions = node["if"].as<std::map<std::string, std::string>>();
    if (node["size"]) row.size = node["size"].as<std::string>();
    if (node["object"]) row.objects = ReadObjects(node);
    if (row.size.empty() != row.objects.has_value()) {
      throw std::invalid_argument("wanted one of size and object");
    }
    if (row.name.empty() && !row.objects) {
      throw std::invalid_argument("object: wanted with owner and field");
    }
    return row;
  }

  static Owners ReadOwners(const YAML::Node& row) {
    Owners owners;
    owners.kind = row["owner"].as<std::string>();
    const absl::StatusOr<Growth> growth = ParseGrowth(row["growth"].as<std::string>(""));
    if (!growth.ok()) throw std::invalid_argument("growth: " + Message(growth.status()));
    owners.at_first = *growth == Growth::kAll;
    return owners;
  }

  static GroupObjects ReadObjects(const YAML::Node& row) {
    const YAML::Node object = row["object"];
    CheckKeys(object, {"group", "version", "resource"});
    GroupObjects objects;
    objects.group = object["group"].as<std::string>();
    objects.version = object["version"].as<std::string>();
    objects.plural = object["resource"].as<std::string>();
    for (const YAML::Node& term : row["pods"]) objects.pods.push_back(ReadPods(term));
    if (row["places"]) {
      objects.has_places = row["places"].as<std::string>() == "spark";
      if (!objects.has_places) throw std::invalid_argument("places: allowed is spark");
    }
    if (objects.pods.empty() != objects.has_places) {
      throw std::invalid_argument("pods: wanted with object, or places instead");
    }
    const auto otherwise = row["else"].as<std::string>("");
    if (!otherwise.empty() && otherwise != "each") {
      throw std::invalid_argument(fmt::format("else: '{}': allowed is each", otherwise));
    }
    objects.or_each = otherwise == "each";
    for (const YAML::Node& value : row["unless"]) {
      CheckKeys(value, {"each", "at", "is", "over", "differs"});
      objects.unless.push_back({PathIn(value["each"]),
                                PathIn(value["at"]),
                                value["is"].as<std::string>(""),
                                PathIn(value["over"]),
                                PathIn(value["differs"])});
      if (objects.unless.back().at.empty()) throw std::invalid_argument("unless: wanted at");
    }
    return objects;
  }

  static GroupObjects::Pods ReadPods(const YAML::Node& term) {
    CheckKeys(term, {"count", "each", "times"});
    GroupObjects::Pods pods;
    pods.count = term["count"].as<int64_t>(1);
    if (pods.count < 1 || pods.count > kMaxGroupPods) {
      throw std::invalid_argument(fmt::format("count: allowed are 1 to {}", kMaxGroupPods));
    }
    pods.each = PathIn(term["each"]);
    for (const YAML::Node& factor : term["times"]) {
      std::vector<std::string>& paths = pods.times.emplace_back();
      if (!factor.IsSequence()) {
        paths.push_back(PathIn(factor));
        continue;
      }
      for (const YAML::Node& path : factor) paths.push_back(PathIn(path));
    }
    return pods;
  }

  // Empty: it is not there.
  static std::string PathIn(const YAML::Node& node) {
    if (!node) return "";
    auto path = node.as<std::string>();
    try {
      if (path.empty()) throw std::invalid_argument("it is empty");
      (void)json::json_pointer(path);
    } catch (const std::exception& problem) {
      throw std::invalid_argument(
          fmt::format("'{}' is no path: wanted a JSON Pointer such as /spec/replicas ({})",
                      path,
                      problem.what()));
    }
    return path;
  }

  static void CheckKeys(const YAML::Node& node, const std::vector<std::string_view>& allowed) {
    if (!node.IsMap()) throw std::invalid_argument("wanted a map");
    for (const auto& field : node) {
      const auto key = field.first.as<std::string>();
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        throw std::invalid_argument(
            fmt::format("'{}': allowed are {}", key, fmt::join(allowed, ", ")));
      }
    }
  }
};

absl::StatusOr<uint32_t> GroupObjects::SizeIn(std::string_view object) const {
  const json parsed = json::parse(object, nullptr, false);
  if (parsed.is_discarded()) return InvalidArgument("{}: not an object", plural);
  const auto made_later = [&parsed](const Value& value) { return Has(parsed, value); };
  if (std::any_of(unless.begin(), unless.end(), made_later)) return 0;
  int64_t size = 0;
  for (const Pods& term : pods) {
    for (const json* item : Items(parsed, term.each)) {
      int64_t of_item = term.count;
      for (const std::vector<std::string>& paths : term.times) {
        ASSIGN_OR_RETURN(const int64_t factor, Least(*item, paths));
        of_item *= std::clamp<int64_t>(factor, 0, kMaxGroupPods + 1);
        of_item = std::min<int64_t>(of_item, kMaxGroupPods + 1);
      }
      size = std::min<int64_t>(size + of_item, kMaxGroupPods + 1);
    }
  }
  if (size <= kMaxGroupPods) return static_cast<uint32_t>(size);
  if (or_each) return 0;
  return InvalidArgument("it asks for more than the {} pods that a gang may have", kMaxGroupPods);
}

std::optional<Places> GroupObjects::PlacesIn(std::string_view object) const {
  const json parsed = json::parse(object, nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  const auto has = [&parsed](const Value& value) { return Has(parsed, value); };
  if (std::any_of(unless.begin(), unless.end(), has)) return std::nullopt;
  return SparkExecutors(parsed);
}

const GroupTable& GroupTable::Known() {
  static const GroupTable kKnown = [] {
    GroupTable table;
    table.rows_ = Reader::Rows(kGroupsTable);
    return table;
  }();
  return kKnown;
}

absl::StatusOr<GroupTable> GroupTable::With(std::string_view rows) {
  GroupTable table = Known();
  try {
    std::vector<Row> more = Reader::Rows(rows);
    // What all pods of an owner are is the last word.
    const auto owners = std::find_if(
        table.rows_.begin(), table.rows_.end(), [](const Row& row) { return row.owners; });
    table.rows_.insert(owners, more.begin(), more.end());
  } catch (const std::exception& problem) {
    return InvalidArgument("{}", problem.what());
  }
  return table;
}

absl::StatusOr<std::optional<AskedGroup>> GroupTable::Asked(const PodKeys& pods) const {
  const auto& [labels, annotations, pod_group, owner] = pods;
  RETURN_IF_ERROR(CheckBoth(labels, annotations));
  std::optional<Growth> growth;
  if (const auto* text = Value(std::string(kGrowthKey), labels, annotations); text != nullptr) {
    absl::StatusOr<Growth> value = ParseGrowth(*text);
    if (!value.ok()) return Annotate(value.status(), kGrowthKey);
    growth = *value;
  }
  const auto says = [&](const auto& condition) {
    const std::string* value = Value(condition.first, labels, annotations);
    return value != nullptr && *value == condition.second;
  };
  for (const Row& row : rows_) {
    if (row.by_pod_group) {
      if (pod_group.empty()) continue;
      const std::string name(pod_group);
      return AskedGroup{
          .group = {.name = AsDnsLabel(name)}, .objects = &*row.objects, .object = name};
    }
    if (row.owners) {
      const Growth grows = growth.value_or(row.owners->at_first ? Growth::kAll : Growth::kEach);
      if (owner == nullptr || owner->kind != row.owners->kind || grows == Growth::kEach) continue;
      AskedGroup asked{.group = {.name = AsDnsLabel(owner->name), .or_each = true},
                       .objects = &*row.objects,
                       .object = owner->name};
      asked.group.at_first = true;
      return asked;
    }
    std::string name;
    bool named = true;
    for (const std::string& key : row.name) {
      const std::string* part = Value(key, labels, annotations);
      named = named && part != nullptr;
      if (named) name += (name.empty() ? "" : "-") + *part;
    }
    const std::string* size = Value(row.size, labels, annotations);
    if (!named || (!row.objects && size == nullptr)) continue;
    if (!std::all_of(row.conditions.begin(), row.conditions.end(), says)) continue;
    AskedGroup asked;
    asked.group.name = name;
    if (row.objects) {
      asked.objects = &*row.objects;
      asked.group.or_each = row.objects->or_each;
      asked.object = *Value(row.name.front(), labels, annotations);
    } else {
      ASSIGN_OR_RETURN(asked.group.size, ParseSize(row.size, *size));
    }
    if (row.name.front() != kGroupNameKey) {
      asked.group.name = AsDnsLabel(name);
    } else if (!IsDnsLabel(name)) {
      return InvalidArgument(
          "{}: \"{}\" is no name of a group: allowed are up to 63 of a-z, 0-9 and '-', beginning "
          "and ending with a letter or digit",
          row.name.front(),
          name);
    }
    if (asked.group.size == 1) return std::nullopt;
    return asked;
  }
  return std::nullopt;
}

}  // namespace fluxqueue::kubernetes
