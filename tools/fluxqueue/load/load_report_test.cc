#include "tools/fluxqueue/load/load_report.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::load {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LoadReportTest : public ::testing::Test {
 protected:
  LoadReportTest() {
    trace::Trace trace;
    trace.jobs = {{"a", 0, 4, 2, {{"cpu", 1000}}, {}},
                  {"b", 1, 8, 1, {{"cpu", 1000}}, {}},
                  {"wide", 2, 1, 9, {{"cpu", 1000}}, {}}};
    trace.without_run_time = 5;
    plan_ = MakePlan(trace, ProcessorNodes("p", 4), 1);
    for (const PlannedJob& job : plan_.jobs) records_.push_back({&job});
    Ended(0, 1000, 1500, 2000, 6000);
    Ended(1, 2100, 2200, 3000, 11000);
    records_[2].submitted_ms = 3000;
    records_[2].ended_ms = 9000;
    records_[2].ending = Ending::kRejected;
    records_[2].message = "cpu is short";
  }

  void Ended(size_t i, int64_t submitted, int64_t bound, int64_t started, int64_t ended) {
    records_[i].submitted_ms = submitted;
    records_[i].bound_ms = bound;
    records_[i].started_ms = started;
    records_[i].ended_ms = ended;
    records_[i].ending = Ending::kSucceeded;
  }

  Plan plan_;
  std::vector<JobRecord> records_;
};

TEST_F(LoadReportTest, Figures) {
  const LoadReport report = MakeReport(plan_, records_);
  EXPECT_TRUE(report.Good());
  EXPECT_EQ(report.ended, 3);
  EXPECT_EQ(report.succeeded, 2);
  EXPECT_EQ(report.rejected.size(), 1);
  EXPECT_DOUBLE_EQ(report.span_s, 10);
  EXPECT_DOUBLE_EQ(report.jobs_per_s, 0.2);
  EXPECT_DOUBLE_EQ(report.pods_per_s, 0.3);
  EXPECT_DOUBLE_EQ(*report.wait_p50_s, 0.9);
  EXPECT_DOUBLE_EQ(*report.wait_p99_s, 1.0);
  EXPECT_DOUBLE_EQ(*report.bound_p99_s, 0.5);
  EXPECT_DOUBLE_EQ(*report.submitted_late_p99_s, 0.1);
  ASSERT_EQ(report.utilisation.size(), 1);
  EXPECT_DOUBLE_EQ(report.utilisation[0].second, (2 * 4 + 8) / 40.0);
}

TEST_F(LoadReportTest, TheTableNamesWhatWasRejectedAndLeftOut) {
  const std::string table = FormatTable(MakeReport(plan_, records_));
  EXPECT_THAT(table, HasSubstr("5 without a run time"));
  EXPECT_THAT(table, HasSubstr("rightly so"));
  EXPECT_THAT(table, HasSubstr("wide: cpu is short"));
  EXPECT_THAT(table, HasSubstr("utilisation\n  cpu                       40.0 %"));
  EXPECT_THAT(table, Not(HasSubstr("Not ended")));
}

TEST_F(LoadReportTest, ARejectionWithoutNeedIsNotGood) {
  records_[1].ending = Ending::kRejected;
  const LoadReport report = MakeReport(plan_, records_);
  EXPECT_FALSE(report.Good());
  ASSERT_EQ(report.wrongly_rejected.size(), 1);
  EXPECT_EQ(report.wrongly_rejected[0].job, "b");
}

TEST_F(LoadReportTest, WhatHasNotEndedSaysWhy) {
  records_[1].ending = Ending::kNotYet;
  records_[1].ended_ms.reset();
  records_[1].state = "Pending";
  records_[1].reason = "Resources";
  records_[1].message = "2 nodes are short of cpu";
  records_[1].job_status = "0 active";
  const LoadReport report = MakeReport(plan_, records_);
  EXPECT_FALSE(report.Good());
  EXPECT_THAT(FormatTable(report),
              HasSubstr("b: Pending (Resources): 2 nodes are short of cpu; its Job: 0 active"));
  const auto json = nlohmann::json::parse(FormatJson(report));
  EXPECT_EQ(json["notEnded"][0]["job"], "b");
  EXPECT_EQ(json["good"], false);
}

TEST_F(LoadReportTest, NothingSubmittedHasNoFigures) {
  for (JobRecord& record : records_) record = {record.planned};
  const LoadReport report = MakeReport(plan_, records_);
  EXPECT_EQ(report.not_ended.size(), 3);
  EXPECT_EQ(report.span_s, 0);
  EXPECT_EQ(nlohmann::json::parse(FormatJson(report))["waitSeconds"]["p50"], nullptr);
}

}  // namespace
}  // namespace fluxqueue::load
