#include "libs/config/units.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::config {
namespace {

using Unit = std::pair<std::string_view, int64_t>;

constexpr std::array<Unit, 5> kDurationUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 5> kSizeUnits = {{{"TiB", int64_t{1} << 40},
                                             {"GiB", int64_t{1} << 30},
                                             {"MiB", int64_t{1} << 20},
                                             {"KiB", int64_t{1} << 10},
                                             {"", 1}}};

// The number at the front of `text`, which it is taken off.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

template <size_t N>
std::optional<int64_t> FactorOf(const std::array<Unit, N>& units, std::string_view name) {
  for (const auto& [unit, factor] : units) {
    if (unit == name) return factor;
  }
  return std::nullopt;
}

absl::Status BadDuration(std::string_view text) {
  return InvalidArgument("\"{}\" is not a duration: write it like 250ms, 3s, 5m, 1h30m or 0", text);
}

}  // namespace

absl::StatusOr<Millis> ParseDuration(std::string_view text) {
  if (text == "0") return Millis(0);
  std::string_view rest = text;
  int64_t total = 0;
  int64_t last_factor = std::numeric_limits<int64_t>::max();
  while (!rest.empty()) {
    const std::optional<int64_t> number = TakeNumber(rest);
    const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789"));
    const std::optional<int64_t> factor = FactorOf(kDurationUnits, unit);
    // Units fall, so that 1m1h is seen as the slip that it is.
    if (!number || !factor || *factor >= last_factor) return BadDuration(text);
    int64_t part = 0;
    if (__builtin_mul_overflow(*number, *factor, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return BadDuration(text);
    }
    last_factor = *factor;
    rest.remove_prefix(unit.size());
  }
  if (text.empty()) return BadDuration(text);
  return Millis(total);
}

std::string FormatDuration(Millis duration) {
  int64_t rest = duration.count();
  if (rest == 0) return "0";
  std::string text;
  if (rest < 0) {
    text = "-";
    rest = -rest;
  }
  for (const auto& [unit, factor] : kDurationUnits) {
    if (rest >= factor) text += fmt::format("{}{}", rest / factor, unit);
    rest %= factor;
  }
  return text;
}

absl::StatusOr<int64_t> ParseSize(std::string_view text) {
  std::string_view rest = text;
  const std::optional<int64_t> number = TakeNumber(rest);
  const std::optional<int64_t> factor = FactorOf(kSizeUnits, rest);
  int64_t bytes = 0;
  if (!number || !factor || __builtin_mul_overflow(*number, *factor, &bytes)) {
    return InvalidArgument("\"{}\" is not a size: write it like 4096, 64KiB, 3MiB or 1GiB", text);
  }
  return bytes;
}

std::string FormatSize(int64_t bytes) {
  for (const auto& [unit, factor] : kSizeUnits) {
    if (bytes >= factor && bytes % factor == 0) return fmt::format("{}{}", bytes / factor, unit);
  }
  return fmt::format("{}", bytes);
}

}  // namespace fluxqueue::config
