#include "libs/testing/environment.h"

#include <charconv>
#include <cstdlib>

namespace fluxqueue::testing {

std::string TextOf(const char* variable) {
  const char* said = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return said == nullptr ? "" : said;
}

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const std::string text = TextOf(variable);
  uint64_t number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace fluxqueue::testing
