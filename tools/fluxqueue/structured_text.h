// A result for programs: the same value as JSON or as YAML. Pure.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace fluxqueue::cli {

// Both end with a line break. What is not UTF-8 is replaced. Texts of several lines are YAML's
// literal blocks where that can hold them.
std::string JsonText(const nlohmann::json& value);
std::string YamlText(const nlohmann::json& value);

}  // namespace fluxqueue::cli
