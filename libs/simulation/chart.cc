#include "libs/simulation/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace fluxqueue::simulation {
namespace {

constexpr std::array<std::string_view, 7> kColours = {
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
constexpr std::array<std::string_view, 4> kDashes = {"", "7 3", "2 2", "8 3 2 3"};
// Started in order (two shades), backfilled (two shades).
constexpr std::array<std::string_view, 4> kJobColours = {
    "#0072B2", "#56B4E9", "#D55E00", "#E69F00"};
constexpr std::array<std::string_view, Gantt::kLevels> kLevelColours = {
    "#cfe1f2", "#94c4df", "#4a98c9", "#1764ab", "#08306b"};
constexpr double kLegendLine = 18;

// Where the data of a chart is drawn.
struct Frame {
  double left = 80;
  double right = kChartWidth - 16;
  double top = 30;
  double bottom = kChartHeight - 42;

  double X(double share) const { return left + share * (right - left); }
  double Y(double share) const { return bottom - share * (bottom - top); }
};

std::string Text(
    double x, double y, std::string_view anchor, std::string_view text, double size = 11) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n",
      x,
      y,
      anchor,
      size,
      Escaped(text));
}

std::string Rule(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
      x1,
      y1,
      x2,
      y2,
      colour);
}

// 1, 2 or 5 times a power of ten, so that three to eight of them make `max`.
double StepOf(double max) {
  const double rough = max / 8;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

std::string Number(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

std::string Around(const Frame& frame,
                   std::string_view title,
                   std::string_view x_label,
                   std::string_view y_label) {
  std::string svg = Text(frame.left, 18, "start", title, 14);
  svg += Rule(frame.left, frame.bottom, frame.right, frame.bottom, "#333");
  svg += Rule(frame.left, frame.top, frame.left, frame.bottom, "#333");
  svg += Text((frame.left + frame.right) / 2, frame.bottom + 34, "middle", x_label);
  svg += fmt::format(
      "<text transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
      "font-size=\"11\">{}</text>\n",
      (frame.top + frame.bottom) / 2,
      Escaped(y_label));
  return svg;
}

std::string XAxis(const Frame& frame, double max) {
  std::string svg;
  const double step = StepOf(max);
  for (int i = 0; i * step <= max * 1.0001; ++i) {
    const double x = frame.X(i * step / max);
    svg += Rule(x, frame.bottom, x, frame.bottom + 4, "#333");
    svg += Text(x, frame.bottom + 17, "middle", Number(i * step));
  }
  return svg;
}

std::string YAxis(const Frame& frame, double max) {
  std::string svg;
  const double step = StepOf(max);
  for (int i = 0; i * step <= max * 1.0001; ++i) {
    const double y = frame.Y(i * step / max);
    if (i > 0) svg += Rule(frame.left, y, frame.right, y, "#ddd");
    svg += Text(frame.left - 6, y + 4, "end", Number(i * step));
  }
  return svg;
}

// From 10^low to 10^high.
std::string LogAxis(const Frame& frame, int low, int high) {
  std::string svg;
  for (int power = low; power <= high; ++power) {
    const double y = frame.Y(static_cast<double>(power - low) / (high - low));
    if (power > low) svg += Rule(frame.left, y, frame.right, y, "#ddd");
    svg += Text(frame.left - 6, y + 4, "end", Number(std::pow(10, power)));
  }
  return svg;
}

}  // namespace

std::string_view ColourOf(size_t setting) {
  return kColours[setting % kColours.size()];
}

std::string Escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

TimeUnit UnitOf(double span_s) {
  if (span_s <= 600) return {"s", 1};
  if (span_s <= 4 * 3600) return {"min", 60};
  if (span_s <= 4 * 86400) return {"h", 3600};
  return {"days", 86400};
}

std::string Draw(const LineChart& chart) {
  const Frame frame;
  double y_max = 0;
  for (const Line& line : chart.lines) {
    for (const double value : line.values) y_max = std::max(y_max, value);
  }
  if (y_max <= 0) y_max = 1;
  std::string svg = Around(frame, chart.title, chart.x_label, chart.y_label);
  svg += XAxis(frame, chart.x_max) + YAxis(frame, y_max);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const std::vector<double>& values = chart.lines[i].values;
    std::string points;
    for (size_t n = 0; n < values.size(); ++n) {
      const double x = frame.X((static_cast<double>(n) + 0.5) / static_cast<double>(values.size()));
      fmt::format_to(std::back_inserter(points),
                     "{:.1f},{:.1f} ",
                     x,
                     frame.Y(std::max(0.0, values[n]) / y_max));
    }
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"{}\" "
        "points=\"{}\"><title>{}</title></polyline>\n",
        ColourOf(i),
        kDashes[i % kDashes.size()],
        points,
        Escaped(chart.lines[i].name));
  }
  return svg;
}

std::string Draw(const BarChart& chart) {
  const Frame frame;
  double least = 1;
  double most = 10;
  for (const BarGroup& group : chart.groups) {
    for (const std::vector<double>* values : {&group.bars, &group.marks}) {
      for (const double value : *values) {
        most = std::max(most, value);
        if (value > 0) least = std::min(least, value);
      }
    }
  }
  const int low = std::max(-3, static_cast<int>(std::floor(std::log10(least))));
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  const auto share = [&](double value) {
    return value <= 0 ? 0 : std::max(0.0, (std::log10(value) - low) / (high - low));
  };
  std::string svg = Around(frame, chart.title, "", chart.y_label) + LogAxis(frame, low, high);
  const double width = 1 / static_cast<double>(std::max<size_t>(chart.groups.size(), 1));
  for (size_t g = 0; g < chart.groups.size(); ++g) {
    const BarGroup& group = chart.groups[g];
    const double begin = width * static_cast<double>(g);
    svg += Text(frame.X(begin + width / 2), frame.bottom + 17, "middle", group.name);
    const double bar = 0.8 * width / static_cast<double>(std::max<size_t>(group.bars.size(), 1));
    for (size_t i = 0; i < group.bars.size(); ++i) {
      const double x = frame.X(begin + 0.1 * width + bar * static_cast<double>(i));
      const double wide = frame.X(bar) - frame.X(0);
      const double y = frame.Y(share(group.bars[i]));
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{:.1f}</title></rect>\n",
          x,
          y,
          wide * 0.92,
          frame.bottom - y,
          ColourOf(i),
          group.bars[i]);
      const double mark = frame.Y(share(group.marks[i]));
      svg += Rule(x, mark, x + wide * 0.92, mark, "#333");
    }
  }
  return svg;
}

std::string Draw(const Gantt& gantt,
                 std::string_view title,
                 std::string_view x_label,
                 double x_max) {
  const Frame frame;
  std::string svg = Around(frame, title, x_label, gantt.rows_are) + XAxis(frame, x_max);
  const double wide = (frame.right - frame.left) / Gantt::kColumns;
  const double high = (frame.bottom - frame.top) / static_cast<double>(gantt.rows);
  const size_t kinds = gantt.of_nodes ? kLevelColours.size() + 1 : kJobColours.size();
  std::vector<std::string> paths(kinds);
  for (const Gantt::Bar& bar : gantt.bars) {
    fmt::format_to(std::back_inserter(paths[bar.kind]),
                   "M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z",
                   frame.left + wide * bar.from,
                   frame.top + high * bar.row,
                   wide * (bar.to - bar.from),
                   high * bar.rows,
                   -wide * (bar.to - bar.from));
  }
  for (size_t kind = 0; kind < kinds; ++kind) {
    if (paths[kind].empty()) continue;
    const std::string_view colour = gantt.of_nodes ? kLevelColours[kind - 1] : kJobColours[kind];
    svg += fmt::format(
        "<path shape-rendering=\"crispEdges\" fill=\"{}\" d=\"{}\"/>\n", colour, paths[kind]);
  }
  return svg;
}

double LegendHeight(size_t settings) {
  return kLegendLine * static_cast<double>(settings) + 10;
}

std::string Legend(const std::vector<std::string>& settings) {
  std::string svg;
  for (size_t i = 0; i < settings.size(); ++i) {
    const double y = kLegendLine * static_cast<double>(i) + 12;
    svg += fmt::format(
        "<line x1=\"80\" y1=\"{:.1f}\" x2=\"120\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"4\" "
        "stroke-dasharray=\"{}\"/>\n",
        y,
        y,
        ColourOf(i),
        kDashes[i % kDashes.size()]);
    svg += Text(128, y + 4, "start", settings[i], 12);
  }
  return svg;
}

std::string Stack(const std::vector<Piece>& pieces) {
  double height = 0;
  std::string inside;
  for (const Piece& piece : pieces) {
    inside += fmt::format("<g transform=\"translate(0 {:.1f})\">\n{}</g>\n", height, piece.svg);
    height += piece.height;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}"
      "</svg>\n",
      kChartWidth,
      height,
      kChartWidth,
      inside);
}

}  // namespace fluxqueue::simulation
