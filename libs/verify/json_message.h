// Messages from protobuf's JSON with the fields' own names, as verify::FormatEventLine prints it:
// read so much faster than by protobuf's reader that a log of years can be. Pure.
#pragma once

#include <google/protobuf/message.h>
#include <simdjson.h>

namespace fluxqueue::verify {

// Into an empty message. False: there is something that this does not read, be it right or wrong
// (null, floats, maps, enums by number, names in camelCase, unknown fields); the message is then of
// no use, and protobuf's reader the one to ask.
bool ReadJsonMessage(const simdjson::dom::object& json, google::protobuf::Message* message);

}  // namespace fluxqueue::verify
