#include "tools/fluxqueue/schema_check.h"

#include <cmath>
#include <optional>
#include <regex>

#include <fmt/format.h>

namespace fluxqueue::cli {
namespace {

class Checker {
 public:
  Checker(const YAML::Node& schema,
          const YAML::Node& value,
          std::string key,
          std::vector<Problem>* problems)
      : schema_(schema), value_(value), key_(std::move(key)), problems_(problems) {}

  void Check() {
    if (schema_["x-kubernetes-int-or-string"]) {
      CheckScalar();
    } else if (const auto type = schema_["type"].as<std::string>(""); type == "object") {
      CheckObject();
    } else if (type == "array") {
      CheckArray();
    } else if (type == "integer" || type == "number") {
      if (!Number()) return Say("must be a number");
      if (type == "integer" && std::trunc(*Number()) != *Number()) Say("must be a whole number");
      CheckScalar();
    } else if (type == "boolean") {
      bool ignored = false;
      if (!value_.IsScalar() || !YAML::convert<bool>::decode(value_, ignored)) {
        Say("must be true or false");
      }
    } else if (type == "string") {
      // What YAML reads as a number or a word of its own needs quotes to be a text.
      if (value_.IsScalar() && value_.Tag() != "!" && Number())
        Say("must be a text: put it in quotes");
      CheckScalar();
    }
  }

 private:
  void Say(const std::string& allowed) {
    std::string shown = value_.IsScalar() ? "'" + value_.as<std::string>() + "' " : "";
    problems_->push_back(
        {.line = value_.Mark().line + 1, .text = fmt::format("{}: {}{}", key_, shown, allowed)});
  }

  std::optional<double> Number() const {
    double number = 0;
    if (!value_.IsScalar() || !YAML::convert<double>::decode(value_, number)) return std::nullopt;
    return number;
  }

  void CheckObject() {
    if (!value_.IsMap()) return Say("must be a map");
    const YAML::Node properties = schema_["properties"];
    const YAML::Node additional = schema_["additionalProperties"];
    for (const auto& entry : value_) {
      const auto name = entry.first.as<std::string>();
      const std::string below = key_.empty() ? name : key_ + "." + name;
      if (properties && properties[name]) {
        Checker(properties[name], entry.second, below, problems_).Check();
      } else if (additional) {
        Checker(additional, entry.second, below, problems_).Check();
      } else if (properties) {
        problems_->push_back(
            {.line = entry.first.Mark().line + 1,
             .text =
                 fmt::format("{}: there is no such key; known: {}", below, KeysOf(properties))});
      }
    }
    for (const auto& required : schema_["required"]) {
      const auto name = required.as<std::string>();
      if (!value_[name]) {
        Say(fmt::format("{} is missing", name));
      }
    }
  }

  static std::string KeysOf(const YAML::Node& properties) {
    std::string keys;
    for (const auto& entry : properties) {
      keys += (keys.empty() ? "" : ", ") + entry.first.as<std::string>();
    }
    return keys;
  }

  void CheckArray() {
    if (!value_.IsSequence()) return Say("must be a list");
    if (schema_["maxItems"] && value_.size() > schema_["maxItems"].as<size_t>()) {
      Say(fmt::format("may have {} items", schema_["maxItems"].as<size_t>()));
    }
    for (size_t i = 0; i < value_.size(); ++i) {
      Checker(schema_["items"], value_[i], fmt::format("{}[{}]", key_, i), problems_).Check();
    }
  }

  void CheckWord(const std::string& text, const YAML::Node& allowed) {
    std::string words;
    for (const auto& word : allowed) {
      if (word.as<std::string>() == text) return;
      words += (words.empty() ? "" : ", ") + word.as<std::string>();
    }
    Say("is not allowed: " + words);
  }

  void CheckScalar() {
    if (!value_.IsScalar()) return Say("must be one value");
    const auto text = value_.as<std::string>();
    if (const YAML::Node allowed = schema_["enum"]) return CheckWord(text, allowed);
    const auto number = Number();
    if (number && schema_["minimum"] && *number < schema_["minimum"].as<double>()) {
      return Say(fmt::format("must be at least {}", schema_["minimum"].as<double>()));
    }
    if (number && schema_["maximum"] && *number > schema_["maximum"].as<double>()) {
      return Say(fmt::format("must be at most {}", schema_["maximum"].as<double>()));
    }
    if (schema_["maxLength"] && text.size() > schema_["maxLength"].as<size_t>()) {
      return Say(fmt::format("may have {} characters", schema_["maxLength"].as<size_t>()));
    }
    if (schema_["minLength"] && text.size() < schema_["minLength"].as<size_t>()) {
      return Say("must not be empty");
    }
    // A number of an int-or-string is bound by its minimum, a text by the pattern.
    const bool whole = number.has_value() && schema_["x-kubernetes-int-or-string"];
    if (const YAML::Node pattern = schema_["pattern"]; pattern && !whole) {
      if (!std::regex_search(text, std::regex(pattern.as<std::string>()))) {
        Say("must look like " + pattern.as<std::string>());
      }
    }
  }

  const YAML::Node schema_;
  const YAML::Node value_;
  const std::string key_;
  std::vector<Problem>* const problems_;
};

}  // namespace

YAML::Node SchemaOf(const std::string& definition) {
  return YAML::Load(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

void CheckSchema(const YAML::Node& schema,
                 const YAML::Node& value,
                 const std::string& key,
                 std::vector<Problem>* problems) {
  Checker(schema, value, key, problems).Check();
}

}  // namespace fluxqueue::cli
