// Pieces of JSON text, for what is written by hand: canonical jobspecs and small request bodies.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "libs/kubernetes/views.h"

namespace fluxqueue::kubernetes {

// The text as a JSON string, quotes included; bytes that are not UTF-8 are replaced.
std::string JsonString(std::string_view text);

// {"a":"b",…}
std::string JsonObject(const StringMap& members);

// Never throws, whatever texts are in it: bytes that are not UTF-8 are replaced.
std::string JsonText(const nlohmann::json& value);

}  // namespace fluxqueue::kubernetes
