#include "libs/verify/json_message.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "libs/base/status_macros.h"

#include "absl/strings/escaping.h"

namespace fluxqueue::verify {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using simdjson::dom::element;

// 64 bits stand in quotes.
template <typename T>
bool ReadNumber(const element& json, T* value) {
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) {
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && at == text.data() + text.size();
  }
  int64_t number = 0;
  if (json.get(number) != simdjson::SUCCESS || !std::in_range<T>(number)) return false;
  *value = static_cast<T>(number);
  return true;
}

bool ReadText(const element& json, bool base64, std::string* value) {
  std::string_view text;
  if (json.get(text) != simdjson::SUCCESS) return false;
  if (base64) return absl::Base64Unescape(ToAbsl(text), value);
  *value = text;
  return true;
}

// What a field is given: one value, or one more.
class Target {
 public:
  Target(Message* message, const FieldDescriptor* field)
      : message_(message), field_(field), reflection_(message->GetReflection()) {}

  bool Read(const element& json);

 private:
  template <typename T>
  using Put = void (Reflection::*)(Message*, const FieldDescriptor*, T) const;

  template <typename T>
  bool Number(const element& json, Put<T> set, Put<T> add) {
    T value{};
    return ReadNumber(json, &value) && Store(value, set, add);
  }
  template <typename T>
  bool Store(T value, Put<T> set, Put<T> add) {
    (reflection_->*(field_->is_repeated() ? add : set))(message_, field_, std::move(value));
    return true;
  }
  bool Bool(const element& json);
  bool Enum(const element& json);
  bool Text(const element& json);
  bool Object(const element& json);

  Message* const message_;
  const FieldDescriptor* const field_;
  const Reflection* const reflection_;
};

bool Target::Bool(const element& json) {
  bool value = false;
  return json.get(value) == simdjson::SUCCESS &&
         Store(value, &Reflection::SetBool, &Reflection::AddBool);
}

bool Target::Enum(const element& json) {
  std::string name;
  if (!ReadText(json, false, &name)) return false;
  const auto* value = field_->enum_type()->FindValueByName(name);
  return value != nullptr &&
         Store<int>(value->number(), &Reflection::SetEnumValue, &Reflection::AddEnumValue);
}

bool Target::Text(const element& json) {
  std::string value;
  return ReadText(json, field_->type() == FieldDescriptor::TYPE_BYTES, &value) &&
         Store<std::string>(std::move(value), &Reflection::SetString, &Reflection::AddString);
}

bool Target::Object(const element& json) {
  simdjson::dom::object object;
  if (field_->is_map() || json.get(object) != simdjson::SUCCESS) return false;
  return ReadJsonMessage(object,
                         field_->is_repeated() ? reflection_->AddMessage(message_, field_)
                                               : reflection_->MutableMessage(message_, field_));
}

bool Target::Read(const element& json) {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Number<int32_t>(json, &Reflection::SetInt32, &Reflection::AddInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return Number<int64_t>(json, &Reflection::SetInt64, &Reflection::AddInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Number<uint32_t>(json, &Reflection::SetUInt32, &Reflection::AddUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Number<uint64_t>(json, &Reflection::SetUInt64, &Reflection::AddUInt64);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Bool(json);
    case FieldDescriptor::CPPTYPE_ENUM:
      return Enum(json);
    case FieldDescriptor::CPPTYPE_STRING:
      return Text(json);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Object(json);
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return false;
  }
  return false;
}

// Fields by name. They mostly come in the order of the message, so the next one is looked for from
// the last one on.
class Fields {
 public:
  explicit Fields(const Descriptor* of) : of_(of) {}

  const FieldDescriptor* Find(std::string_view name) {
    for (; next_ < of_->field_count(); ++next_) {
      const FieldDescriptor* field = of_->field(next_);
      if (field->name() == name) {
        ++next_;
        return field;
      }
    }
    return of_->FindFieldByName(std::string(name));
  }

 private:
  const Descriptor* const of_;
  int next_ = 0;
};

bool ReadField(const element& json, const FieldDescriptor* field, Message* message) {
  Target target(message, field);
  if (!field->is_repeated()) return target.Read(json);
  simdjson::dom::array values;
  if (json.get(values) != simdjson::SUCCESS) return false;
  for (const element& value : values) {
    if (!target.Read(value)) return false;
  }
  return true;
}

}  // namespace

bool ReadJsonMessage(const simdjson::dom::object& json, Message* message) {
  Fields fields(message->GetDescriptor());
  for (const auto& [key, value] : json) {
    const FieldDescriptor* field = fields.Find(key);
    if (field == nullptr) return false;
    // protobuf's reader knows what is wrong with two.
    const auto* choice = field->containing_oneof();
    if (choice != nullptr && message->GetReflection()->HasOneof(*message, choice)) return false;
    if (!ReadField(value, field, message)) return false;
  }
  return true;
}

}  // namespace fluxqueue::verify
