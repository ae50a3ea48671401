#include "libs/postgres/array.h"

#include <iterator>

#include <fmt/format.h>

#include "libs/base/utf8.h"

namespace fluxqueue::postgres {

void ArrayText::Separate() {
  if (size_++ > 0) text_ += ',';
}

void ArrayText::AddNull() {
  Separate();
  text_ += "NULL";
}

void ArrayText::AddText(std::string_view value) {
  Separate();
  text_ += '"';
  for (size_t at = 0; at < value.size();) {
    const char c = value[at];
    const size_t length = c == '\0' ? 0 : Utf8Length(value, at);
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += length == 0 ? kReplacement : value.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  text_ += '"';
}

void ArrayText::AddNumber(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(text_), "{}", value);
}

void ArrayText::AddFlag(bool value) {
  Separate();
  text_ += value ? 't' : 'f';
}

// Hexadecimal: the fastest text form that Postgres reads.
void ArrayText::AddBytes(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  Separate();
  text_ += "\"\\\\x";
  size_t end = text_.size();
  text_.resize(end + 2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text_[end++] = kDigits[byte >> 4];
    text_[end++] = kDigits[byte & 15];
  }
  text_ += '"';
}

}  // namespace fluxqueue::postgres
