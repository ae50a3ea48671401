#include "libs/base/text.h"

#include <algorithm>
#include <cctype>

#include "libs/base/utf8.h"

namespace fluxqueue {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr size_t kMaxUid = 63;

// A well-formed sequence. Sequences of two and of three bytes are in the order of what they stand
// for.
bool IsControl(std::string_view character) {
  const auto within = [character](std::string_view first, std::string_view last) {
    return character.size() == first.size() && first <= character && character <= last;
  };
  if (character.size() == 1) {
    const auto byte = static_cast<unsigned char>(character.front());
    return byte < 0x20 || byte == 0x7f;
  }
  return within("\u0080", "\u009f") || within("\u202a", "\u202e") || within("\u2066", "\u2069");
}

}  // namespace

bool IsPlain(std::string_view text, size_t most) {
  if (text.size() > most) return false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0 || IsControl(text.substr(at, length))) return false;
    at += length;
  }
  return true;
}

bool IsUid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUid &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
         });
}

std::string Cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)).append(kEllipsis);
}

std::string Clean(std::string_view text, size_t most) {
  std::string clean;
  clean.reserve(std::min(text.size(), most));
  // One character more than fits, for Cut to see that something is missing.
  for (size_t at = 0; at < text.size() && clean.size() <= most;) {
    const size_t length = Utf8Length(text, at);
    const std::string_view character = text.substr(at, length);
    const bool stays =
        length > 0 && (!IsControl(character) || character == "\n" || character == "\t");
    clean += stays ? character : kReplacement;
    at += std::max<size_t>(length, 1);
  }
  return Cut(clean, most);
}

}  // namespace fluxqueue
