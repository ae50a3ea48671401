#include "libs/verify/event_line.h"

#include <optional>
#include <utility>

#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/verify/json_message.h"

namespace fluxqueue::verify {
namespace {

using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonPrintOptions;
using nlohmann::json;

// Missing: 0. Unset: it is no whole number.
std::optional<int64_t> Number(const json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end()) return 0;
  if (!field->is_number_integer()) return std::nullopt;
  return field->get<int64_t>();
}

template <typename T>
bool ReadNumber(const simdjson::dom::object& object, std::string_view key, T* value) {
  const auto field = object[key];
  if (field.error() == simdjson::NO_SUCH_FIELD) return true;
  int64_t number = 0;
  if (field.get(number) != simdjson::SUCCESS || !std::in_range<T>(number)) return false;
  *value = static_cast<T>(number);
  return true;
}

// A line as FormatEventLine writes it, of a record that no service has buried: nearly all. Unset:
// the line is not like that.
std::optional<EventLine> ParsePlainLine(std::string_view text) {
  static thread_local simdjson::dom::parser parser;
  simdjson::dom::object object;
  simdjson::dom::object envelope;
  if (parser.parse(text.data(), text.size()).get(object) != simdjson::SUCCESS ||
      object["buried"].error() != simdjson::NO_SUCH_FIELD ||
      object["envelope"].get(envelope) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  EventLine line;
  int64_t time_ms = -1;
  if (!ReadNumber(object, "append_ms", &time_ms) || time_ms < 0 ||
      !ReadNumber(object, "partition", &line.partition) ||
      !ReadNumber(object, "offset", &line.offset) || !ReadJsonMessage(envelope, &line.message) ||
      line.message.event_case() == events::v1::Envelope::EVENT_NOT_SET) {
    return std::nullopt;
  }
  line.time = Millis(time_ms);
  return line;
}

}  // namespace

std::string FormatEventLine(const EventLine& line) {
  std::string envelope;
  JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto printed =
      google::protobuf::util::MessageToJsonString(line.message, &envelope, options);
  CHECK(printed.ok(), "{}", printed.ToString());
  const std::string buried =
      line.buried.empty() ? "" : fmt::format(R"("buried":{},)", json(line.buried).dump());
  return fmt::format("{{\"append_ms\":{},\"partition\":{},\"offset\":{},{}\"envelope\":{}}}\n",
                     line.time.count(),
                     line.partition,
                     line.offset,
                     buried,
                     envelope);
}

absl::StatusOr<EventLine> ParseEventLine(std::string_view text) {
  if (std::optional<EventLine> plain = ParsePlainLine(text)) return *std::move(plain);
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("append_ms") || !object.contains("envelope")) {
    return InvalidArgument(
        "it is no JSON object with \"append_ms\" and \"envelope\", as `fluxqueue events dump` "
        "writes them");
  }
  EventLine line;
  const auto time = Number(object, "append_ms");
  const auto partition = Number(object, "partition");
  const auto offset = Number(object, "offset");
  if (!time || !partition || !offset) {
    return InvalidArgument("append_ms, partition and offset: allowed are whole numbers");
  }
  line.time = Millis(*time);
  line.partition = static_cast<int>(*partition);
  line.offset = *offset;
  if (const auto buried = object.find("buried"); buried != object.end() && buried->is_array()) {
    for (const json& service : *buried) {
      if (service.is_string()) line.buried.push_back(service.get<std::string>());
    }
  }
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      object.at("envelope").dump(), &line.message, JsonParseOptions());
  if (!parsed.ok()) return InvalidArgument("envelope: {}", parsed.ToString());
  if (line.message.event_case() == events::v1::Envelope::EVENT_NOT_SET) {
    return InvalidArgument("envelope: it has no event");
  }
  return line;
}

}  // namespace fluxqueue::verify
