#include "tests/chaos/report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::chaos {
namespace {

constexpr size_t kFaultColumn = 44;

struct Row {
  std::vector<Millis> recoveries{};
  size_t violations = 0;
};

std::map<std::string, Row> RowsOf(const std::vector<Outcome>& outcomes) {
  std::map<std::string, Row> rows;
  for (const Outcome& outcome : outcomes) {
    Row& row = rows[outcome.faults];
    row.recoveries.push_back(outcome.recovery);
    row.violations += outcome.violations.size();
  }
  for (auto& [faults, row] : rows) std::sort(row.recoveries.begin(), row.recoveries.end());
  return rows;
}

// The nearest rank.
Millis P99(const std::vector<Millis>& sorted) {
  return sorted[(sorted.size() * 99 + 99) / 100 - 1];
}

double Seconds(Millis time) {
  return static_cast<double>(time.count()) / 1000;
}

// To a width in characters: fmt counts those of UTF-8 itself.
std::string Padded(const std::string& text) {
  return fmt::format("{:<{}}", text, kFaultColumn);
}

}  // namespace

std::string Line(const Outcome& outcome) {
  std::string text = fmt::format("{}  {}  {:>4} jobs, held {:5.1f} s, recovered after {:5.1f} s\n",
                                 outcome.violations.empty() ? "ok  " : "FAIL",
                                 Padded(outcome.faults),
                                 outcome.in_flight,
                                 Seconds(outcome.held),
                                 Seconds(outcome.recovery));
  for (const std::string& violation : outcome.violations) text += "       " + violation + "\n";
  return text;
}

std::string Table(const std::vector<Outcome>& outcomes) {
  std::string text =
      fmt::format("{}  times  worst recovery  p99 recovery  violations\n", Padded("fault"));
  for (const auto& [faults, row] : RowsOf(outcomes)) {
    text += fmt::format("{}  {:>5}  {:>12.1f} s  {:>10.1f} s  {:>10}\n",
                        Padded(faults),
                        row.recoveries.size(),
                        Seconds(row.recoveries.back()),
                        Seconds(P99(row.recoveries)),
                        row.violations);
  }
  return text;
}

std::string Json(uint64_t seed,
                 const std::vector<Outcome>& outcomes,
                 const std::vector<std::string>& violations) {
  nlohmann::ordered_json json = {{"seed", seed}};
  json["faults"] = nlohmann::ordered_json::array();
  for (const auto& [faults, row] : RowsOf(outcomes)) {
    json["faults"].push_back({{"fault", faults},
                              {"times", row.recoveries.size()},
                              {"worstRecoverySeconds", Seconds(row.recoveries.back())},
                              {"p99RecoverySeconds", Seconds(P99(row.recoveries))},
                              {"violations", row.violations}});
  }
  json["violations"] = violations;
  for (const Outcome& outcome : outcomes) {
    for (const std::string& violation : outcome.violations) {
      json["violations"].push_back(outcome.faults + ": " + violation);
    }
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace fluxqueue::chaos
