#include "libs/base/text.h"

#include <algorithm>
#include <cctype>

#include "libs/base/utf8.h"

namespace fluxqueue {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr size_t kMaxUid = 63;

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

bool IsPlain(std::string_view text, size_t most) {
  if (text.size() > most) return false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0 || IsControl(text[at])) return false;
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
    const bool stays = length > 0 && (!IsControl(text[at]) || text[at] == '\n' || text[at] == '\t');
    clean += stays ? text.substr(at, length) : kReplacement;
    at += std::max<size_t>(length, 1);
  }
  return Cut(clean, most);
}

}  // namespace fluxqueue
