// What a benchmark found, as a table and as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/bench/probe.h"

namespace fluxqueue::bench {

struct Percentiles {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
};
// Of no values: zeros.
Percentiles PercentilesOf(std::vector<double> values);

// "12,345", "61.4", "0.083": as many digits as tell something.
std::string Number(double value);

class Report {
 public:
  explicit Report(const std::string& benchmark);

  // A heading, then rows of a table; all rows of a section have as many cells as its header.
  void Section(const std::string& title, std::vector<std::string> header);
  void Row(std::vector<std::string> cells);
  // Any place of the JSON.
  nlohmann::ordered_json& json() { return json_; }

  // The section of what each service did for each job, and of every process' CPU and memory.
  void AddCost(const std::string& title,
               const std::string& key,
               const StackCost& cost,
               double jobs,
               double seconds);
  void AddLatencies(const std::string& title,
                    const std::string& key,
                    const std::vector<std::pair<std::string, Percentiles>>& stages);
  // Compared with what is wanted, and shown under the section of targets.
  void Target(
      const std::string& what, double value, bool at_least, double wanted, const std::string& unit);
  // What makes the figures worthless. The program's exit status tells of it.
  void Problem(const std::string& problem);
  bool sound() const { return problems_.empty(); }

  std::string Table() const;
  std::string JsonText() const { return json_.dump(2); }

 private:
  struct Part {
    std::string title;
    std::vector<std::vector<std::string>> rows;
  };

  std::vector<Part> parts_;
  std::vector<std::string> targets_;
  std::vector<std::string> problems_;
  nlohmann::ordered_json json_;
};

}  // namespace fluxqueue::bench
