// How many rows the statements of a connection read, as Postgres itself counts them: its module
// auto_explain, whose answers come as notices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/testing/mini_postgres.h"

namespace fluxqueue::testing {

struct PlanRun {
  std::string query;
  int64_t rows = 0;  // that its scans read, of tables and of indexes
  std::string plan;  // JSON, as Postgres prints it
};

// Has the connections that are made from here on tell what they run.
void WatchPlans(const MiniPostgres& postgres);

// What one of them runs while this lives. REQUIRES: `connection` outlives it.
class PlanWatch {
 public:
  explicit PlanWatch(pqxx::connection_base& connection);
  ~PlanWatch();

  // Since the last call.
  std::vector<PlanRun> Take();

 private:
  class Handler;
  std::unique_ptr<Handler> handler_;
};

}  // namespace fluxqueue::testing
