#include "tools/fluxqueue/structured_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

std::string Dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// Whether a reader of YAML 1.1 or 1.2 takes the bare word for a text, and for this one.
bool IsPlain(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kNoTexts = {
      "true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"};
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (std::find(kNoTexts.begin(), kNoTexts.end(), lower) != kNoTexts.end()) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

// JSON's texts in quotes are YAML's, too.
std::string Scalar(const json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) {
    return value.get<std::string>();
  }
  return Dump(value, -1);
}

bool IsBlock(const json& value) {
  return value.is_structured() && !value.empty();
}

// `value` begins where the text ends: behind "- " or at the beginning of a line with `indent`.
void Write(const json& value, size_t indent, std::string* out) {
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) out->append(indent, ' ');
    first = false;
    const json& inner = item.value();
    if (value.is_array()) {
      *out += "- ";
      if (IsBlock(inner)) {
        Write(inner, indent + 2, out);
        continue;
      }
    } else {
      *out += Scalar(item.key()) + ":";
      if (IsBlock(inner)) {
        *out += '\n';
        out->append(indent + 2, ' ');
        Write(inner, indent + 2, out);
        continue;
      }
      *out += ' ';
    }
    *out += Scalar(inner) + '\n';
  }
}

}  // namespace

std::string JsonText(const json& value) {
  return Dump(value, 2) + '\n';
}

std::string YamlText(const json& value) {
  if (!IsBlock(value)) return Scalar(value) + '\n';
  std::string out;
  Write(value, 0, &out);
  return out;
}

}  // namespace fluxqueue::cli
