// Charts as pieces of SVG. Pure; equal charts give equal bytes.
//
// Colours are Okabe and Ito's, which people who do not see all colours can tell apart; lines differ
// in their dashes, too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libs/simulation/gantt.h"

namespace fluxqueue::simulation {

// Of the drawing, in its units: what every chart here is as wide as, and how high.
inline constexpr double kChartWidth = 960;
inline constexpr double kChartHeight = 260;

// Of the setting with this number.
std::string_view ColourOf(size_t setting);
// For SVG and HTML.
std::string Escaped(std::string_view text);

// Seconds as people read them on an axis of that span.
struct TimeUnit {
  std::string_view name;  // "h"
  double seconds = 1;
};
TimeUnit UnitOf(double span_s);

struct Line {
  std::string name{};
  std::vector<double> values{};  // in the middle of equal intervals from 0 to x_max
};
struct LineChart {
  std::string title{};
  std::string y_label{};
  std::string x_label{};
  double x_max = 1;
  std::vector<Line> lines{};  // one for each setting, in their order
};
// The y axis begins at 0 and ends at what is needed.
std::string Draw(const LineChart& chart);

struct BarGroup {
  std::string name{};
  std::vector<double> bars{};   // one for each setting
  std::vector<double> marks{};  // the same: a line above or across the bar
};
struct BarChart {
  std::string title{};
  std::string y_label{};
  std::vector<BarGroup> groups{};
};
// The y axis is logarithmic, from 1 (or a lesser power of ten that is needed) on.
std::string Draw(const BarChart& chart);

// `x_max` in units of `x_label`.
std::string Draw(const Gantt& gantt,
                 std::string_view title,
                 std::string_view x_label,
                 double x_max);

// Names and colours of the settings; as high as LegendHeight says.
std::string Legend(const std::vector<std::string>& settings);
double LegendHeight(size_t settings);

// `pieces` below each other, each so high.
struct Piece {
  std::string svg{};
  double height = 0;
};
std::string Stack(const std::vector<Piece>& pieces);

}  // namespace fluxqueue::simulation
