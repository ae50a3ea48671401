// The months of accounting: calendar months in UTC, each a partition of queue.attempts. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fluxqueue::model {

using Month = std::chrono::year_month;

// Times are Unix milliseconds.
Month MonthOf(int64_t time_ms);
// Its first millisecond; its end is that of the next one.
int64_t BeginOf(Month month);

// "2026-11"
std::string NameOf(Month month);
// "attempts_2026_11", and back. Nothing: it is no partition's name.
std::string PartitionOf(Month month);
std::optional<Month> MonthOfPartition(std::string_view name);

}  // namespace fluxqueue::model
