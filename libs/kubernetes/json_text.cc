#include "libs/kubernetes/json_text.h"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/utf8.h"

namespace fluxqueue::kubernetes {
std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = Utf8Length(text, i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out += '"';
}

std::string JsonObject(const StringMap& members) {
  std::string out = "{";
  for (const auto& [key, value] : members) {
    if (out.size() > 1) out += ',';
    out += JsonString(key);
    out += ':';
    out += JsonString(value);
  }
  return out += '}';
}

std::string JsonText(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fluxqueue::kubernetes
