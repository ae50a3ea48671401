#include "tools/fluxqueue/report_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using job_store::ReportKey;
using ::testing::HasSubstr;

const job_store::ReportQuery kQuery{.by = {ReportKey::kUser, ReportKey::kMonth},
                                    .since_ms = 1'793'491'200'000,
                                    .until_ms = 1'796'083'200'000};

ReportRows Rows() {
  return {{.keys = {"ann", "2026-11"},
           .jobs = 1200,
           .succeeded = 900,
           .failed = 100,
           .attempts = 1300,
           .started = 1000,
           .cpu_hours = 12'345.6,
           .gpu_hours = 0.25,
           .memory_gib_hours = 40,
           .wait_mean_s = 90,
           .wait_p95_s = 7200},
          {.keys = {"", "2026-11"}, .jobs = 3, .attempts = 3}};
}

TEST(ReportTablesTest, ATableWithSums) {
  EXPECT_EQ(ReportTable(kQuery, Rows(), false),
            "USER  MONTH    JOBS   SUCCESS  CPU-HOURS  GPU-HOURS  GIB-HOURS  WAIT MEAN  WAIT P95\n"
            "ann   2026-11  1,200  90.0 %   12,346     0.2        40.0       1m30s      2h0m\n"
            "-     2026-11  3      -        0.0        0.0        0.0        -          -\n"
            "all   all      1,203  90.0 %   12,346     0.2        40.0       1m30s\n");
}

// Sums weigh by the attempts that started.
TEST(ReportTablesTest, TheMeanOfAllWaits) {
  ReportRows rows = Rows();
  rows[1].started = 3000;
  rows[1].wait_mean_s = 10;
  EXPECT_THAT(ReportTable(kQuery, rows, false), HasSubstr("40.0       30s\n"));
}

TEST(ReportTablesTest, ForPrograms) {
  const nlohmann::json report = ReportJson(kQuery, Rows());
  EXPECT_EQ(report["since"], "2026-11-01T00:00:00.000Z");
  EXPECT_EQ(report["by"], nlohmann::json({"user", "month"}));
  EXPECT_EQ(report["rows"][0]["user"], "ann");
  EXPECT_EQ(report["rows"][0]["month"], "2026-11");
  EXPECT_EQ(report["rows"][0]["success"], 0.9);
  EXPECT_EQ(report["rows"][0]["waitSeconds"]["p95"], 7200);
  EXPECT_TRUE(report["rows"][1]["success"].is_null());
}

TEST(ReportTablesTest, ForSpreadsheets) {
  ReportRows rows = Rows();
  rows[0].keys[0] = "O\"Neil, Ann";
  EXPECT_EQ(ReportCsv(kQuery, rows),
            "user,month,jobs,succeeded,failed,attempts,started,cpu_hours,gpu_hours,"
            "memory_gib_hours,wait_mean_seconds,wait_p95_seconds\n"
            "\"O\"\"Neil, Ann\",2026-11,1200,900,100,1300,1000,12345.600000,0.250000,40.000000,"
            "90.000,7200.000\n"
            ",2026-11,3,0,0,3,0,0.000000,0.000000,0.000000,0.000,0.000\n");
}

}  // namespace
}  // namespace fluxqueue::cli
