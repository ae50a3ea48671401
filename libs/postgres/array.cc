#include "libs/postgres/array.h"

#include <iterator>

#include <fmt/format.h>

namespace fluxqueue::postgres {

void ArrayText::Separate() {
  if (size_++ > 0) text_ += ',';
}

void ArrayText::AddNull() {
  Separate();
  text_ += "NULL";
}

void TextArray::Add(std::string_view value) {
  Separate();
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}

void BigintArray::Add(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(text_), "{}", value);
}

void BoolArray::Add(bool value) {
  Separate();
  text_ += value ? 't' : 'f';
}

// Hexadecimal: the fastest text form that Postgres reads.
void ByteaArray::Add(std::string_view bytes) {
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
