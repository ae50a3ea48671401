#include "libs/delivery/texts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "libs/base/utf8.h"

namespace fluxqueue::delivery {
namespace {

using google::protobuf::FieldDescriptor;

void MakeValid(std::string* text) {
  for (size_t at = 0; at < text->size();) {
    const size_t length = Utf8Length(*text, at);
    if (length == 0) (*text)[at] = '?';
    at += std::max<size_t>(length, 1);
  }
}

}  // namespace

void MakeTextsValid(google::protobuf::Message* message) {
  const google::protobuf::Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!is_message && field->type() != FieldDescriptor::TYPE_STRING) continue;
    if (!field->is_repeated()) {
      if (is_message) {
        MakeTextsValid(reflection->MutableMessage(message, field));
      } else {
        std::string text = reflection->GetString(*message, field);
        MakeValid(&text);
        reflection->SetString(message, field, std::move(text));
      }
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      if (is_message) {
        MakeTextsValid(reflection->MutableRepeatedMessage(message, field, i));
      } else {
        std::string text = reflection->GetRepeatedString(*message, field, i);
        MakeValid(&text);
        reflection->SetRepeatedString(message, field, i, std::move(text));
      }
    }
  }
}

}  // namespace fluxqueue::delivery
