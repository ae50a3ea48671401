#include "libs/kubernetes/json_reader.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/base/utf8.h"

namespace fluxqueue::kubernetes::internal {
namespace {

// Two or four digits at `at`; -1 if they are not.
int Digits(std::string_view text, size_t at, size_t count) {
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// "Z", "+01:00": minutes east of Greenwich.
std::optional<int> ZoneMinutes(std::string_view zone) {
  if (zone == "Z" || zone == "z") return 0;
  if (zone.size() != 6 || zone[3] != ':' || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const int hours = Digits(zone, 1, 2);
  const int minutes = Digits(zone, 4, 2);
  if (hours < 0 || minutes < 0) return std::nullopt;
  return (zone[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
}

simdjson::dom::parser& Parser() {
  static thread_local simdjson::dom::parser parser;
  return parser;
}

// A NUL is allowed in JSON, and in nothing that a text goes into after this: C strings, Postgres.
std::string WithoutNul(std::string_view text) {
  std::string out(text);
  for (size_t at = out.find('\0'); at != std::string::npos; at = out.find('\0', at)) {
    out.replace(at, 1, kReplacement);
  }
  return out;
}

}  // namespace

// 2026-01-31T12:00:00Z, also with a fraction or an offset.
std::optional<int64_t> ParseTime(std::string_view text) {
  namespace chrono = std::chrono;
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  const int year = Digits(text, 0, 4);
  const int month = Digits(text, 5, 2);
  const int day = Digits(text, 8, 2);
  const int hour = Digits(text, 11, 2);
  const int minute = Digits(text, 14, 2);
  const int second = Digits(text, 17, 2);
  const chrono::year_month_day date{chrono::year(year),
                                    chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (year < 0 || month < 0 || day < 0 || !date.ok() || hour < 0 || minute < 0 || second < 0) {
    return std::nullopt;
  }
  int64_t millis = 0;
  size_t at = 19;
  if (text[at] == '.') {
    int64_t weight = 100;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, weight /= 10) {
      millis += weight * (text[at] - '0');
    }
  }
  const std::optional<int> zone = ZoneMinutes(text.substr(at));
  if (!zone) return std::nullopt;
  const int64_t days = chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute - *zone) * 60 + second) * 1000 + millis;
}

Document::Document(std::string_view kind, std::string_view json) : kind_(kind) {
  const auto error = Parser().parse(json.data(), json.size()).get(root_);
  if (error != simdjson::SUCCESS) {
    error_ = fmt::format("{}: not JSON: {}", kind, simdjson::error_message(error));
    return;
  }
  if (!root_.is_object()) {
    error_ = fmt::format("{}: must be a JSON object", kind);
    return;
  }
  parsed_ = true;
  std::string_view name;
  std::string_view space;
  if (root_["metadata"]["name"].get(name) == simdjson::SUCCESS) {
    const bool in = root_["metadata"]["namespace"].get(space) == simdjson::SUCCESS;
    name_ = in ? fmt::format("{}/{}", space, name) : std::string(name);
  }
  steps_.reserve(64);
}

Field Document::root() {
  Field field(this, -1);
  field.present_ = parsed_;
  field.value_ = root_;
  return field;
}

absl::Status Document::status() const {
  if (error_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(ToAbsl(error_));
}

std::string Document::PathOf(int path) const {
  if (path < 0) return "";
  const Step& step = steps_[static_cast<size_t>(path)];
  std::string parent = PathOf(step.parent);
  if (step.key.empty()) return fmt::format("{}[{}]", parent, step.index);
  return parent.empty() ? std::string(step.key) : fmt::format("{}.{}", parent, step.key);
}

Field Field::Child(simdjson::dom::element value, std::string_view key, int index) const {
  document_->steps_.push_back({path_, key, index});
  Field child(document_, static_cast<int>(document_->steps_.size()) - 1);
  child.present_ = !value.is_null();
  child.value_ = value;
  return child;
}

Field Field::operator[](std::string_view key) const {
  simdjson::dom::object object;
  simdjson::dom::element value;
  if (!Read(&object, "must be an object") || object[key].get(value) != simdjson::SUCCESS) {
    return Field(document_, path_);
  }
  return Child(value, key, 0);
}

void Field::Fail(std::string_view what) const {
  if (!document_->error_.empty()) return;
  const std::string path = document_->PathOf(path_);
  document_->error_ = fmt::format("{}{}{}: {}: {}",
                                  document_->kind_,
                                  document_->name_.empty() ? "" : " ",
                                  document_->name_,
                                  path,
                                  what);
}

std::string Field::String() const {
  return StringOr("");
}

std::string Field::StringOr(std::string_view fallback) const {
  std::string_view text = fallback;
  Read(&text, "must be a string");
  return WithoutNul(text);
}

int64_t Field::Int(int64_t fallback) const {
  Read(&fallback, "must be a whole number");
  return fallback;
}

std::optional<int64_t> Field::OptionalInt(int64_t min, int64_t max) const {
  int64_t value = 0;
  if (!Read(&value, "must be a whole number")) return std::nullopt;
  if (value >= min && value <= max) return value;
  Fail(fmt::format("{} is outside of {} to {}", value, min, max));
  return std::nullopt;
}

bool Field::Bool() const {
  bool value = false;
  Read(&value, "must be true or false");
  return value;
}

int64_t Field::TimeMs() const {
  std::string_view text;
  if (!Read(&text, "must be a time")) return 0;
  const std::optional<int64_t> time = ParseTime(text);
  if (!time) Fail(fmt::format("\"{}\" is not a time such as 2026-01-31T12:00:00Z", text));
  return time.value_or(0);
}

std::vector<std::string> Field::Strings() const {
  std::vector<std::string> strings;
  ForEach([&](const Field& field) { strings.push_back(field.String()); });
  return strings;
}

StringMap Field::StringMembers() const {
  StringMap members;
  simdjson::dom::object object;
  if (!Read(&object, "must be an object")) return members;
  for (const auto [key, value] : object) {
    members.emplace(WithoutNul(key), Child(value, key, 0).String());
  }
  return members;
}

std::map<std::string, std::vector<std::string>> Field::StringLists() const {
  std::map<std::string, std::vector<std::string>> lists;
  simdjson::dom::object object;
  if (!Read(&object, "must be an object")) return lists;
  for (const auto [key, value] : object) {
    lists.emplace(WithoutNul(key), Child(value, key, 0).Strings());
  }
  return lists;
}

std::optional<int64_t> Field::OptionalQuantity(std::string_view resource) const {
  if (!present_) return std::nullopt;
  std::string text;
  if (value_.is_string()) {
    text = String();
  } else if (value_.is_number()) {
    text = simdjson::minify(value_);
  } else {
    Fail("must be a quantity");
    return std::nullopt;
  }
  const absl::StatusOr<int64_t> amount = ParseQuantity(resource, text);
  if (amount.ok()) return *amount;
  Fail(FromAbsl(amount.status().message()));
  return std::nullopt;
}

Amounts Field::Quantities() const {
  Amounts amounts;
  simdjson::dom::object object;
  if (!Read(&object, "must be an object")) return amounts;
  for (const auto [resource, value] : object) {
    const std::optional<int64_t> amount = Child(value, resource, 0).OptionalQuantity(resource);
    if (amount) amounts.emplace(WithoutNul(resource), *amount);
  }
  return amounts;
}

}  // namespace fluxqueue::kubernetes::internal
