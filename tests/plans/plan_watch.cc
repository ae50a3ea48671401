#include "tests/plans/plan_watch.h"

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace fluxqueue::testing {
namespace {

using nlohmann::json;

// A scan's rows, with those that its filter has left out, over all its loops.
int64_t RowsOfScan(const json& node) {
  double rows = 0;
  for (const char* count :
       {"Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"}) {
    rows += node.value(count, 0.0);
  }
  return static_cast<int64_t>(rows * node.value("Actual Loops", 1.0));
}

int64_t RowsRead(const json& node) {
  const bool scans = node.contains("Index Name") || node.contains("Relation Name");
  const bool writes = node.value("Node Type", "") == "ModifyTable";
  int64_t rows = scans && !writes ? RowsOfScan(node) : 0;
  for (const json& below : node.value("Plans", json::array())) rows += RowsRead(below);
  return rows;
}

}  // namespace

void WatchPlans(const MiniPostgres& postgres) {
  pqxx::connection connection(postgres.dsn_of("postgres"));
  pqxx::work tx(connection);
  for (const char* setting : {"session_preload_libraries = 'auto_explain'",
                              "auto_explain.log_min_duration = 0",
                              "auto_explain.log_analyze = on",
                              "auto_explain.log_timing = off",
                              "auto_explain.log_format = 'json'",
                              "auto_explain.log_level = 'notice'"}) {
    tx.exec(std::string("ALTER ROLE fluxqueue SET ") + setting);
  }
  tx.commit();
}

class PlanWatch::Handler : public pqxx::errorhandler {
 public:
  explicit Handler(pqxx::connection_base& connection) : pqxx::errorhandler(connection) {}

  // "NOTICE:  duration: 0.1 ms  plan:\n{…}"
  bool operator()(const char notice[]) noexcept override {
    const std::string_view text = notice;
    const size_t begin = text.find('{');
    if (begin == std::string_view::npos || text.find("plan:") > begin) return true;
    const json told = json::parse(text.substr(begin), nullptr, /*allow_exceptions=*/false);
    if (!told.is_object()) return true;
    runs_.push_back({.query = told.value("Query Text", ""),
                     .rows = RowsRead(told.value("Plan", json::object())),
                     .plan = told.value("Plan", json::object()).dump(2)});
    return true;
  }
  std::vector<PlanRun> Take() { return std::exchange(runs_, {}); }

 private:
  std::vector<PlanRun> runs_;
};

PlanWatch::PlanWatch(pqxx::connection_base& connection)
    : handler_(std::make_unique<Handler>(connection)) {}

PlanWatch::~PlanWatch() = default;

std::vector<PlanRun> PlanWatch::Take() {
  return handler_->Take();
}

}  // namespace fluxqueue::testing
