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

// Several lines that need no escape. None that begin with white space: a reader takes the
// indentation from the first.
bool IsLiteral(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (text.find('\n') == text.npos || std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    return false;
  }
  // Line breaks of YAML 1.1, and its byte order mark.
  for (const char* mark : {"\u0085", "\u2028", "\u2029", "\ufeff"}) {
    if (text.find(mark) != text.npos) return false;
  }
  const auto is_control = [](unsigned char c) {
    return std::iscntrl(c) != 0 && c != '\n' && c != '\t';
  };
  return std::none_of(text.begin(), text.end(), is_control) &&
         json::parse(Dump(value, -1)) == value;
}

// "|" and the lines; behind it how many line breaks end the text: none, one, or all that there are.
std::string Literal(std::string_view text, size_t indent) {
  std::string block = text.back() != '\n' ? "|-" : text.ends_with("\n\n") ? "|+" : "|";
  if (text.back() == '\n') text.remove_suffix(1);
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    block += '\n' + std::string(line.empty() ? 0 : indent, ' ') + std::string(line);
    if (end == text.npos) return block;
    text.remove_prefix(end + 1);
  }
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
    *out += (IsLiteral(inner) ? Literal(inner.get_ref<const std::string&>(), indent + 2)
                              : Scalar(inner)) +
            '\n';
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
