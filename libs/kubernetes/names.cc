#include "libs/kubernetes/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace fluxqueue::kubernetes {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestSubdomain = 253;

bool IsLowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsLabelOfAnyLength(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::all_of(
             text.begin(), text.end(), [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsUnreserved(char c) {
  return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

}  // namespace

bool IsDnsLabel(std::string_view text) {
  return text.size() <= kLongestLabel && IsLabelOfAnyLength(text);
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.size() > kLongestSubdomain) return false;
  for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    if (!IsLabelOfAnyLength(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return IsLabelOfAnyLength(text);
}

std::string PathSegment(std::string_view text) {
  const bool climbs = text == "." || text == "..";
  std::string segment;
  for (const char c : text) {
    if (IsUnreserved(c) && !climbs) {
      segment += c;
    } else {
      segment += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return segment;
}

}  // namespace fluxqueue::kubernetes
