#include "libs/base/failure_point.h"

#include <atomic>
#include <charconv>
#include <cstdlib>

#include <signal.h>

namespace fluxqueue {
namespace {

struct Armed {
  std::string_view name{};
  int times = 1;
};

// "commit.after:3"; once where no number is said.
Armed ReadArmed() {
  const char* said = std::getenv("FLUXQUEUE_DIE_AT");  // NOLINT(concurrency-mt-unsafe)
  if (said == nullptr) return {};
  const std::string_view text = said;
  const size_t colon = text.find(':');
  Armed armed{.name = text.substr(0, colon)};
  if (colon != text.npos) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), armed.times);
  }
  return armed;
}

}  // namespace

void FailurePoint(std::string_view name) {
  static const Armed armed = ReadArmed();
  if (armed.name.empty() || armed.name != name) return;
  static std::atomic<int> passed = 0;
  if (++passed == armed.times) raise(SIGKILL);
}

}  // namespace fluxqueue
