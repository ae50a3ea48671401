#include "libs/verify/json_message.h"

#include <string>

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::verify {
namespace {

using events::v1::Envelope;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool Read(const std::string& json, Message* message) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  return parser.parse(json).get(object) == simdjson::SUCCESS && ReadJsonMessage(object, message);
}

std::string Printed(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
  return json;
}

// Sets all that there is, lists with two of each, of a choice the one that `choice` counts.
class Filler {
 public:
  explicit Filler(int choice) : choice_(choice) {}

  void Fill(Message* message) {
    const auto* descriptor = message->GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const auto* choice = field->real_containing_oneof();
      if (choice != nullptr && field->index_in_oneof() != choice_ % choice->field_count()) continue;
      for (int n = 0; n < (field->is_repeated() ? 2 : 1); ++n) Put(field, message);
    }
  }

 private:
  template <typename T, typename Set, typename Add>
  static void Store(const FieldDescriptor* field, Message* message, T value, Set set, Add add) {
    const auto* reflection = message->GetReflection();
    if (field->is_repeated()) {
      (reflection->*add)(message, field, value);
    } else {
      (reflection->*set)(message, field, value);
    }
  }

  void Put(const FieldDescriptor* field, Message* message) {
    using google::protobuf::Reflection;
    const auto* reflection = message->GetReflection();
    ++number_;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Store<int32_t>(
            field, message, -number_, &Reflection::SetInt32, &Reflection::AddInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return Store<int64_t>(field,
                              message,
                              -(int64_t{1} << 60) - number_,
                              &Reflection::SetInt64,
                              &Reflection::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Store<uint32_t>(field,
                               message,
                               4'000'000'000U + static_cast<uint32_t>(number_),
                               &Reflection::SetUInt32,
                               &Reflection::AddUInt32);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Store<uint64_t>(
            field, message, ~uint64_t{0} - number_, &Reflection::SetUInt64, &Reflection::AddUInt64);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Store<bool>(field, message, true, &Reflection::SetBool, &Reflection::AddBool);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Store<int>(
            field,
            message,
            field->enum_type()->value(field->enum_type()->value_count() - 1)->number(),
            &Reflection::SetEnumValue,
            &Reflection::AddEnumValue);
      case FieldDescriptor::CPPTYPE_STRING: {
        const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
        const std::string text =
            bytes ? std::string("\0\xff\x7f{", 4) : "\"ä\" \\ \n" + std::to_string(number_);
        return Store<std::string>(
            field, message, text, &Reflection::SetString, &Reflection::AddString);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(field->is_repeated() ? reflection->AddMessage(message, field)
                                         : reflection->MutableMessage(message, field));
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        FAIL() << field->full_name() << ": events have none";
    }
  }

  const int choice_;
  int number_ = 0;
};

TEST(JsonMessageTest, EveryFieldOfEveryEvent) {
  const int events = Envelope::descriptor()->FindOneofByName("event")->field_count();
  for (int event = 0; event < events; ++event) {
    Envelope message;
    Filler(event).Fill(&message);
    Envelope read;
    const std::string json = Printed(message);
    ASSERT_TRUE(Read(json, &read)) << json;
    EXPECT_EQ(read.SerializeAsString(), message.SerializeAsString()) << json;
  }
}

TEST(JsonMessageTest, InAnyOrder) {
  Envelope message;
  EXPECT_TRUE(Read(R"({"tick":{},"pool":"p","sequence":7,"stream":"s"})", &message));
  EXPECT_EQ(message.pool(), "p");
  EXPECT_EQ(message.sequence(), 7);
  EXPECT_TRUE(message.has_tick());
}

TEST(JsonMessageTest, WhatItLeavesToOthers) {
  for (const char* json : {R"({"pool":null})",
                           R"({"pool":1})",
                           R"({"sequence":"x"})",
                           R"({"sequence":"1 "})",
                           R"({"sequence":-1})",
                           R"({"sequence":1.5})",
                           R"({"nothing":1})",
                           R"({"tick":[]})",
                           R"({"timeMs":1})",
                           R"({"tick":{},"released":{}})",
                           R"({"job_ended":{"result":1}})",
                           R"({"job_ended":{"result":"RESULT_NONE"}})",
                           R"({"cycle_requested":{"candidates":{}}})"}) {
    Envelope message;
    EXPECT_FALSE(Read(json, &message)) << json;
  }
}

}  // namespace
}  // namespace fluxqueue::verify
