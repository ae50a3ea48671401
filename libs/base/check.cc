#include "libs/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace fluxqueue {

void CheckFailed(const char* file, int line, const char* condition, std::string_view message) {
  fmt::print(stderr, "{}:{}: CHECK({}) failed: {}\n", file, line, condition, message);
  std::ignore = std::fflush(stderr);
  std::abort();
}

}  // namespace fluxqueue
