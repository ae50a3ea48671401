#include "libs/delivery/incarnation.h"

#include <limits>
#include <random>

#include <fmt/format.h>

namespace fluxqueue::delivery {

int64_t NewIncarnation() {
  std::random_device random;
  return std::uniform_int_distribution<int64_t>(1, std::numeric_limits<int64_t>::max())(random);
}

std::string WithIncarnation(std::string_view stream, int64_t incarnation) {
  return fmt::format("{}.{:016x}", stream, incarnation);
}

std::string_view BaseOf(std::string_view stream) {
  return stream.substr(0, stream.find('.'));
}

bool HasIncarnation(std::string_view stream) {
  return stream.find('.') != std::string_view::npos;
}

}  // namespace fluxqueue::delivery
