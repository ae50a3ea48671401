// Texts in messages. A proto3 string that is not UTF-8 is written without complaint, and refused
// by each reader: the whole message is lost then, however small the text.
#pragma once

#include <google/protobuf/message.h>

namespace fluxqueue::delivery {

// Bytes that are not UTF-8 become "?" in all strings of the message and of what is in it. It gets
// no longer by that.
void MakeTextsValid(google::protobuf::Message* message);

}  // namespace fluxqueue::delivery
