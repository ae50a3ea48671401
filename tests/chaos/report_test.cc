#include "tests/chaos/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::chaos {
namespace {

using ::testing::HasSubstr;

Outcome Of(const std::string& faults, int recovery_ms) {
  return {.faults = faults, .in_flight = 24, .recovery = Millis(recovery_ms)};
}

TEST(ReportTest, ALineSaysWhatIsWrongBelowIt) {
  Outcome outcome = Of("kafka is killed", 1500);
  EXPECT_THAT(Line(outcome), HasSubstr("ok    kafka is killed"));
  EXPECT_THAT(Line(outcome), HasSubstr("recovered after   1.5 s"));
  outcome.violations = {"job-1 has two ends"};
  EXPECT_THAT(Line(outcome), HasSubstr("FAIL  kafka is killed"));
  EXPECT_THAT(Line(outcome), HasSubstr("\n       job-1 has two ends\n"));
}

TEST(ReportTest, TheTableHasARowForEachFault) {
  std::vector<Outcome> outcomes = {Of("queue-1 is killed", 100), Of("kafka is killed", 3000)};
  for (int i = 1; i <= 200; ++i) outcomes.push_back(Of("binder-1 is killed", i * 10));
  const std::string table = Table(outcomes);
  EXPECT_THAT(table, HasSubstr("\nqueue-1 is killed"));
  EXPECT_THAT(table, HasSubstr("  200           2.0 s         2.0 s           0\n"));
  EXPECT_THAT(table, HasSubstr("    1           3.0 s         3.0 s           0\n"));
}

TEST(ReportTest, JsonHasTheSameAndAllViolations) {
  Outcome wrong = Of("kafka is killed", 9000);
  wrong.violations = {"too late"};
  const auto json =
      nlohmann::json::parse(Json(7, {Of("kafka is killed", 1000), wrong}, {"replay differs"}));
  EXPECT_EQ(json["seed"], 7);
  ASSERT_EQ(json["faults"].size(), 1);
  EXPECT_EQ(json["faults"][0]["times"], 2);
  EXPECT_EQ(json["faults"][0]["worstRecoverySeconds"], 9.0);
  EXPECT_EQ(json["faults"][0]["violations"], 1);
  EXPECT_EQ(json["violations"], nlohmann::json({"replay differs", "kafka is killed: too late"}));
}

}  // namespace
}  // namespace fluxqueue::chaos
