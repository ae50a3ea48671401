// Tables and values for people. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/base/clock.h"

namespace fluxqueue::cli {

enum class Colour { kNone, kGreen, kYellow, kRed, kBlue, kMagenta, kCyan, kDim, kBold };

struct Cell {
  std::string text;
  Colour colour = Colour::kNone;

  Cell(std::string value, Colour look = Colour::kNone)  // NOLINT(google-explicit-constructor)
      : text(std::move(value)), colour(look) {}
  Cell(const char* value) : text(value) {}  // NOLINT(google-explicit-constructor)
};

// Left-aligned columns, as wide as their widest cell, two blanks between them. The last column may
// be of any width; no line ends in blanks. Widths count characters, not bytes.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  // Missing cells are empty. REQUIRES: no more cells than columns.
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  std::string Render(bool colour) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<Cell>> rows_;
};

// `text` in the colour, if `on`.
std::string Paint(std::string_view text, Colour colour, bool on);
Colour StateColour(std::string_view state);
// Of one among several things that are told apart by colour.
Colour ColourOf(size_t index);

// "0s", "45s", "3m20s", "5h12m", "3d4h"; milliseconds below ten seconds: "1.250s".
std::string ShortDuration(Millis duration);
// The local time: "14:03:22" today, else "Nov 20 14:03", else with the year. "-" for 0.
std::string ShortTime(int64_t time_ms, int64_t now_ms);
// Of a resource in base units: cpu "1.5", memory and storage "3.5Gi", others as they are.
std::string ShortAmount(std::string_view resource, int64_t amount);
// 1234567 as "1,234,567".
std::string Thousands(uint64_t number);

// How many insertions, deletions and changes of a character lead from one to the other.
size_t EditDistance(std::string_view a, std::string_view b);
// Those of `names` that `wanted` may have meant, the nearest first; at most `most`.
std::vector<std::string> NearMatches(const std::string& wanted,
                                     std::vector<std::string> names,
                                     size_t most);

}  // namespace fluxqueue::cli
