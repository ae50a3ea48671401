#include "tools/fluxqueue/table.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "libs/base/check.h"

namespace fluxqueue::cli {
namespace {

// Characters of valid UTF-8: all bytes but the continuations.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string_view Code(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kRed:
      return "\033[31m";
    case Colour::kBlue:
      return "\033[34m";
    case Colour::kMagenta:
      return "\033[35m";
    case Colour::kCyan:
      return "\033[36m";
    case Colour::kDim:
      return "\033[2m";
    case Colour::kBold:
      return "\033[1m";
  }
  return "";
}

std::tm Local(int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm time{};
  localtime_r(&seconds, &time);
  return time;
}

std::string Binary(int64_t bytes) {
  static constexpr std::string_view kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const std::string digits = value == static_cast<double>(static_cast<int64_t>(value))
                                 ? fmt::format("{:.0f}", value)
                                 : fmt::format("{:.1f}", value);
  return fmt::format("{}{}", digits, kUnits[unit]);
}

}  // namespace

std::string Paint(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::kNone || text.empty()) return std::string(text);
  return fmt::format("{}{}\033[0m", Code(colour), text);
}

Colour StateColour(std::string_view state) {
  if (state == "Running" || state == "Bound" || state == "Succeeded") return Colour::kGreen;
  if (state == "Failed" || state == "Rejected") return Colour::kRed;
  if (state == "Stopping" || state == "Submitted") return Colour::kYellow;
  if (state == "Cancelled") return Colour::kDim;
  return Colour::kNone;
}

Colour ColourOf(size_t index) {
  static constexpr Colour kColours[] = {Colour::kGreen,
                                        Colour::kBlue,
                                        Colour::kMagenta,
                                        Colour::kCyan,
                                        Colour::kYellow,
                                        Colour::kRed};
  return kColours[index % std::size(kColours)];
}

void Table::Add(std::vector<Cell> row) {
  CHECK(row.size() <= header_.size(),
        "{} cells in a table of {} columns",
        row.size(),
        header_.size());
  rows_.push_back(std::move(row));
}

std::string Table::Render(bool colour) const {
  std::vector<size_t> widths;
  for (const std::string& name : header_) widths.push_back(Width(name));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i].text));
  }
  std::string out;
  // Blanks are owed until something follows them.
  const auto line = [&](size_t columns, const auto& cell) {
    size_t owed = 0;
    for (size_t i = 0; i < columns; ++i) {
      const Cell& next = cell(i);
      if (!next.text.empty()) {
        out.append(owed, ' ');
        owed = 0;
        out += Paint(next.text, next.colour, colour);
      }
      owed += widths[i] - Width(next.text) + 2;
    }
    out += '\n';
  };
  std::vector<Cell> head(header_.begin(), header_.end());
  line(head.size(), [&](size_t i) -> const Cell& { return head[i]; });
  for (const auto& row : rows_) {
    line(row.size(), [&](size_t i) -> const Cell& { return row[i]; });
  }
  return out;
}

std::string ShortDuration(Millis duration) {
  const int64_t ms = std::max<int64_t>(0, duration.count());
  const int64_t s = ms / 1000;
  if (ms % 1000 != 0 && s < 10) return fmt::format("{}.{:03}s", s, ms % 1000);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{}h", s / 86400, s % 86400 / 3600);
}

std::string ShortTime(int64_t time_ms, int64_t now_ms) {
  if (time_ms == 0) return "-";
  const std::tm time = Local(time_ms);
  const std::tm now = Local(now_ms);
  if (time.tm_year != now.tm_year) return fmt::format("{:%Y %b %d %H:%M}", time);
  if (time.tm_yday != now.tm_yday) return fmt::format("{:%b %d %H:%M}", time);
  return fmt::format("{:%H:%M:%S}", time);
}

std::string ShortAmount(std::string_view resource, int64_t amount) {
  if (resource == "cpu") {
    return amount % 1000 == 0 ? fmt::format("{}", amount / 1000)
                              : fmt::format("{:g}", static_cast<double>(amount) / 1000);
  }
  if (resource == "memory" || resource.find("storage") != std::string_view::npos ||
      resource.starts_with("hugepages-")) {
    return Binary(amount);
  }
  return fmt::format("{}", amount);
}

std::string Thousands(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

std::vector<std::string> NearMatches(const std::string& wanted,
                                     std::vector<std::string> names,
                                     size_t most) {
  std::vector<std::pair<size_t, std::string>> near;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::string& name : names) {
    // "namespace/name" is meant by its name, too.
    const std::string_view bare = std::string_view(name).substr(name.find('/') + 1);
    const bool whole = wanted.find('/') != std::string::npos;
    const size_t distance = EditDistance(wanted, whole ? std::string_view(name) : bare);
    const bool part = name.find(wanted) != std::string::npos;
    if (part || distance <= std::max<size_t>(2, wanted.size() / 3)) {
      near.emplace_back(part ? 0 : distance, std::move(name));
    }
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (auto& [distance, name] : near) {
    if (result.size() == most) break;
    result.push_back(std::move(name));
  }
  return result;
}

}  // namespace fluxqueue::cli
