// CHECK for our own broken invariants, never for input: prints the place and the message, then
// aborts.
#pragma once

#include <string_view>

#include <fmt/format.h>

namespace fluxqueue {

[[noreturn]] void CheckFailed(const char* file,
                              int line,
                              const char* condition,
                              std::string_view message);

}  // namespace fluxqueue

// CHECK(held <= size, "node {} holds {} of {}", name, held, size)
#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      ::fluxqueue::CheckFailed(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)); \
    }                                                                                        \
  } while (false)
