// The fields and values of protos as lines of text, so that a change of one that logs and tables
// rest on shows. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

namespace fluxqueue {

// By message or enumeration, and number: "string stream", "repeated fluxqueue.x.v1.Label labels",
// "JOB_STATE_PENDING".
using FieldSummary = std::map<std::pair<std::string, int>, std::string>;

inline std::string TypeOf(const google::protobuf::FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

inline void Add(const google::protobuf::EnumDescriptor& values, FieldSummary* summary) {
  for (int i = 0; i < values.value_count(); ++i) {
    (*summary)[{values.full_name(), values.value(i)->number()}] = values.value(i)->name();
  }
}

inline void Add(const google::protobuf::Descriptor& message, FieldSummary* summary) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    (*summary)[{message.full_name(), field.number()}] =
        fmt::format("{}{} {}", field.is_repeated() ? "repeated " : "", TypeOf(field), field.name());
  }
  for (int i = 0; i < message.nested_type_count(); ++i) Add(*message.nested_type(i), summary);
  for (int i = 0; i < message.enum_type_count(); ++i) Add(*message.enum_type(i), summary);
}

inline void Add(const google::protobuf::FileDescriptor& file, FieldSummary* summary) {
  for (int i = 0; i < file.message_type_count(); ++i) Add(*file.message_type(i), summary);
  for (int i = 0; i < file.enum_type_count(); ++i) Add(*file.enum_type(i), summary);
}

// What must not become of `before`: sentences. `reserved`: numbers that are given to nothing else.
inline std::vector<std::string> Breaks(const FieldSummary& before,
                                       const FieldSummary& now,
                                       const std::set<std::pair<std::string, int>>& reserved) {
  std::vector<std::string> breaks;
  for (const auto& [key, text] : before) {
    const auto found = now.find(key);
    const bool is_reserved = reserved.contains(key);
    if (found == now.end() && !is_reserved) {
      breaks.push_back(fmt::format("{} {}: \"{}\" is gone; say `reserved {};` there",
                                   key.first,
                                   key.second,
                                   text,
                                   key.second));
    } else if (found != now.end() && found->second != text) {
      breaks.push_back(
          fmt::format("{} {}: was \"{}\", and is \"{}\"; give what is new a new number",
                      key.first,
                      key.second,
                      text,
                      found->second));
    }
  }
  return breaks;
}

}  // namespace fluxqueue
