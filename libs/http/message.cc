#include "libs/http/message.h"

#include <algorithm>
#include <cctype>

namespace fluxqueue::http {

std::string_view FindHeader(const Headers& headers, std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const auto& [key, value] : headers) {
    if (std::equal(key.begin(), key.end(), name.begin(), name.end(), same)) return value;
  }
  return {};
}

}  // namespace fluxqueue::http
