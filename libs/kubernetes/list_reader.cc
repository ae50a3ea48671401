#include "libs/kubernetes/list_reader.h"

#include "libs/base/status_macros.h"

namespace fluxqueue::kubernetes::internal {
namespace {

namespace ondemand = simdjson::ondemand;

absl::Status Malformed(std::string_view what, simdjson::error_code error) {
  return Unavailable(
      "{} that the API server sent cannot be read: {}", what, simdjson::error_message(error));
}

// member(key, value) for each member of an object; stops at the first error.
template <typename F>
simdjson::error_code ForEachMember(ondemand::object object, F member) {
  for (auto result : object) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field)) return error;
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    if (const auto error = member(key, field.value())) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code ReadListMeta(ondemand::value value, ListPage* page) {
  ondemand::object meta;
  if (const auto error = value.get_object().get(meta)) return error;
  return ForEachMember(meta, [&](std::string_view key, ondemand::value member) {
    std::string* const out = key == "resourceVersion" ? &page->resource_version
                             : key == "continue"      ? &page->continue_token
                                                      : nullptr;
    if (out == nullptr) return simdjson::SUCCESS;
    std::string_view text;
    const auto error = member.get_string().get(text);
    if (!error) *out = text;
    return error;
  });
}

simdjson::error_code ReadItems(ondemand::value value,
                               const std::function<absl::Status(std::string_view)>& item,
                               absl::Status* status) {
  bool null = false;
  if (const auto error = value.is_null().get(null); error || null) return error;
  ondemand::array items;
  if (const auto error = value.get_array().get(items)) return error;
  for (auto result : items) {
    ondemand::object object;
    if (const auto error = result.get_object().get(object)) return error;
    std::string_view text;
    if (const auto error = object.raw_json().get(text)) return error;
    *status = item(text);
    if (!status->ok()) return simdjson::SUCCESS;
  }
  return simdjson::SUCCESS;
}

}  // namespace

simdjson::padded_string_view Padded(std::string& text) {
  if (text.capacity() - text.size() < simdjson::SIMDJSON_PADDING) {
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  }
  return simdjson::padded_string_view(text.data(), text.size(), text.capacity());
}

absl::StatusOr<ListPage> ListReader::ReadPage(
    std::string& body, const std::function<absl::Status(std::string_view)>& item) {
  ListPage page;
  absl::Status status;
  ondemand::document document;
  ondemand::object list;
  auto error = parser_.iterate(Padded(body)).get(document);
  if (!error) error = document.get_object().get(list);
  if (!error) {
    error = ForEachMember(list, [&](std::string_view key, ondemand::value value) {
      if (key == "metadata") return ReadListMeta(value, &page);
      // A list that ended early leaves the document half read: nothing after it is looked at.
      if (key == "items" && status.ok()) return ReadItems(value, item, &status);
      return simdjson::SUCCESS;
    });
  }
  RETURN_IF_ERROR(status);
  if (error) return Malformed("a list", error);
  return page;
}

absl::StatusOr<WatchLine> ListReader::ReadLine(simdjson::padded_string_view line) {
  WatchLine read;
  ondemand::document document;
  ondemand::object event;
  auto error = parser_.iterate(line).get(document);
  if (!error) error = document.get_object().get(event);
  if (!error) {
    error = ForEachMember(event, [&](std::string_view key, ondemand::value value) {
      if (key == "type") {
        std::string_view type;
        const auto failed = value.get_string().get(type);
        if (!failed) read.type = type;
        return failed;
      }
      if (key != "object") return simdjson::SUCCESS;
      ondemand::object object;
      if (const auto failed = value.get_object().get(object)) return failed;
      return object.raw_json().get(read.object);
    });
  }
  if (error) return Malformed("a watch event", error);
  return read;
}

absl::StatusOr<ObjectIdentity> ListReader::ReadIdentity(simdjson::padded_string_view object) {
  ObjectIdentity identity;
  ondemand::document document;
  ondemand::object meta;
  auto error = parser_.iterate(object).get(document);
  if (!error) error = document["metadata"].get_object().get(meta);
  if (!error) {
    error = ForEachMember(meta, [&](std::string_view key, ondemand::value value) {
      std::string_view* const out = key == "namespace"         ? &identity.space
                                    : key == "name"            ? &identity.name
                                    : key == "uid"             ? &identity.uid
                                    : key == "resourceVersion" ? &identity.resource_version
                                                               : nullptr;
      return out == nullptr ? simdjson::SUCCESS : value.get_string().get(*out);
    });
  }
  if (error) return Malformed("an object's metadata", error);
  return identity;
}

}  // namespace fluxqueue::kubernetes::internal
