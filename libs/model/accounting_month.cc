#include "libs/model/accounting_month.h"

#include <charconv>

#include <fmt/format.h>

namespace fluxqueue::model {
namespace {

namespace chrono = std::chrono;

constexpr std::string_view kPrefix = "attempts_";

std::optional<unsigned> NumberOf(std::string_view digits) {
  unsigned number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

Month MonthOf(int64_t time_ms) {
  const chrono::sys_time<chrono::milliseconds> time{chrono::milliseconds(time_ms)};
  const chrono::year_month_day date{chrono::floor<chrono::days>(time)};
  return date.year() / date.month();
}

int64_t BeginOf(Month month) {
  const chrono::sys_days first{month / chrono::day(1)};
  return chrono::milliseconds(first.time_since_epoch()).count();
}

std::string NameOf(Month month) {
  return fmt::format(
      "{:04}-{:02}", static_cast<int>(month.year()), static_cast<unsigned>(month.month()));
}

std::string PartitionOf(Month month) {
  return fmt::format("{}{:04}_{:02}",
                     kPrefix,
                     static_cast<int>(month.year()),
                     static_cast<unsigned>(month.month()));
}

std::optional<Month> MonthOfPartition(std::string_view name) {
  if (name.size() != kPrefix.size() + 7 || !name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  const std::optional<unsigned> year = NumberOf(digits.substr(0, 4));
  const std::optional<unsigned> number = NumberOf(digits.substr(5, 2));
  if (!year.has_value() || !number.has_value() || digits[4] != '_') return std::nullopt;
  const Month month = chrono::year(static_cast<int>(*year)) / chrono::month(*number);
  if (!month.ok()) return std::nullopt;
  return month;
}

}  // namespace fluxqueue::model
