#include "libs/verify/event_file.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::verify {
namespace {

using nlohmann::json;

constexpr std::string_view kVersionKey = "fluxqueue_events";

template <typename T>
void Set(const json& object, const char* key, T* value) {
  const auto field = object.find(key);
  if (field == object.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (field->is_string()) *value = field->get<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (field->is_boolean()) *value = field->get<T>();
  } else {
    if (field->is_number_integer()) *value = field->get<T>();
  }
}

json ToJson(const EventReach& reach) {
  json facts = json::object();
  for (const auto& [partition, offset] : reach.facts) facts[fmt::format("{}", partition)] = offset;
  return {{"log", reach.log}, {"facts", std::move(facts)}};
}

EventReach ReachOf(const json& header, const char* key) {
  EventReach reach;
  const auto field = header.find(key);
  if (field == header.end() || !field->is_object()) return reach;
  Set(*field, "log", &reach.log);
  const auto facts = field->find("facts");
  if (facts == field->end() || !facts->is_object()) return reach;
  for (const auto& [name, offset] : facts->items()) {
    int partition = 0;
    std::from_chars(name.data(), name.data() + name.size(), partition);
    if (offset.is_number_integer()) reach.facts[partition] = offset.get<int64_t>();
  }
  return reach;
}

}  // namespace

std::string FormatEventFileHeader(const EventFileHeader& header) {
  std::string reach;
  if (header.archived) {
    reach =
        fmt::format(R"(,"from":{},"to":{})", ToJson(header.from).dump(), ToJson(header.to).dump());
  }
  return fmt::format(R"({{"{}":{},"build":{},"rules":{},"pool":{},"whole":{}{}}})"
                     "\n",
                     kVersionKey,
                     header.version,
                     json(header.build).dump(),
                     header.rules,
                     json(header.pool).dump(),
                     header.whole,
                     reach);
}

absl::Status EventFileReader::ReadHeader(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("{}:1: it is no JSON object", file_);
  Set(object, kVersionKey.data(), &header_.version);
  Set(object, "build", &header_.build);
  if (header_.version < 1 || header_.version > kEventFileVersion) {
    return InvalidArgument(
        "{}: a file of version {}, which release {} wrote; this program reads files up to version "
        "{}",
        file_,
        header_.version,
        header_.build.empty() ? "?" : header_.build,
        kEventFileVersion);
  }
  Set(object, "rules", &header_.rules);
  Set(object, "pool", &header_.pool);
  Set(object, "whole", &header_.whole);
  header_.archived = object.contains("from") && object.contains("to");
  header_.from = ReachOf(object, "from");
  header_.to = ReachOf(object, "to");
  return absl::OkStatus();
}

absl::StatusOr<EventLine> EventFileReader::ReadRecord(std::string_view line) {
  absl::StatusOr<EventLine> event = ParseEventLine(line);
  if (!event.ok()) return Annotate(event.status(), fmt::format("{}:{}", file_, lines_));
  const std::string& pool = event->message.pool();
  if (header_.pool.empty()) header_.pool = pool;
  if (pool == header_.pool) return event;
  return InvalidArgument(
      "{0}:{1}: a record of pool {2} after those of pool {3}; a file is of one pool: take "
      "`fluxqueue events dump {3} FILE`",
      file_,
      lines_,
      pool,
      header_.pool);
}

absl::StatusOr<std::optional<EventLine>> EventFileReader::Read(std::string_view line) {
  ++lines_;
  if (line.empty()) return std::nullopt;
  if (lines_ == 1 && line.starts_with(fmt::format("{{\"{}\":", kVersionKey))) {
    RETURN_IF_ERROR(ReadHeader(line));
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(EventLine event, ReadRecord(line));
  return std::optional(std::move(event));
}

}  // namespace fluxqueue::verify
