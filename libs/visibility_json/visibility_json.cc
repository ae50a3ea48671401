#include "libs/visibility_json/visibility_json.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::visibility {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = "STATE_";

char Lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

std::string Lower(std::string text) {
  for (char& c : text) c = Lower(c);
  return text;
}

// "STATE_RUNNING" → "Running"
std::string ForPeople(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::string(name);
  std::string word(name.substr(kPrefix.size()));
  for (size_t i = 1; i < word.size(); ++i) word[i] = Lower(word[i]);
  return word;
}

std::string ForProtobuf(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::string(kPrefix) + word;
}

template <typename Rename>
void RenameStates(json* value, const Rename& rename) {
  if (value->is_array()) {
    for (json& item : *value) RenameStates(&item, rename);
  }
  if (!value->is_object()) return;
  for (auto it = value->begin(); it != value->end(); ++it) {
    if (it.key() == "state" && it->is_string()) {
      *it = rename(it->template get<std::string>());
    } else {
      RenameStates(&*it, rename);
    }
  }
}

}  // namespace

json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto written = google::protobuf::util::MessageToJsonString(message, &text, options);
  CHECK(written.ok(), "a message of the queue's API as JSON: {}", written.ToString());
  json value = json::parse(text);
  RenameStates(&value, ForPeople);
  return value;
}

absl::Status FromJson(json value, google::protobuf::Message* message) {
  RenameStates(&value, ForProtobuf);
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto read = google::protobuf::util::JsonStringToMessage(
      value.dump(-1, ' ', false, json::error_handler_t::replace), message, options);
  if (read.ok()) return absl::OkStatus();
  return InvalidArgument("no {}: {}", message->GetTypeName(), read.ToString());
}

std::string StateName(queue::v1::State state) {
  return ForPeople(queue::v1::State_Name(state));
}

std::string ObjectName(const queue::v1::Job& job) {
  if (job.namespace_().empty()) return job.id();
  return fmt::format("{}-{}", Lower(job.kind()), job.name());
}

}  // namespace fluxqueue::visibility
