// Logs of real systems, one for each version of the rules (libs/model/rules.h), through the cores
// as they are now: each decision is made again, byte for byte. README.md says how they were made.
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"
#include "libs/simulation/history.h"

#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue {
namespace {

simulation::History Read(uint32_t rules) {
  const std::string path = fmt::format("{}/rules-{}.jsonl.gz", LOGS, rules);
  const auto text = load::ReadTraceFile(path);
  EXPECT_TRUE(text.ok()) << Message(text.status());
  auto history = simulation::ReadHistory(*text, path);
  EXPECT_TRUE(history.ok()) << Message(history.status());
  return *std::move(history);
}

class LogsTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(LogsTest, ReplaysAsItWasDecided) {
  const simulation::History history = Read(GetParam());
  const auto recorded = simulation::ReplayHistory(history);
  ASSERT_TRUE(recorded.ok()) << Message(recorded.status());
  const verify::PoolReplay& replay = recorded->replay;
  EXPECT_EQ(replay.total.different(), 0U);
  for (const verify::Difference& difference : replay.differences) {
    ADD_FAILURE() << verify::DiffText(difference);
  }
  EXPECT_GT(replay.total.decisions, 300U);
}

TEST_P(LogsTest, SaysItsRules) {
  std::set<uint32_t> rules;
  for (const verify::EventLine& line : Read(GetParam()).log) {
    if (line.message.has_pool_configured()) rules.insert(line.message.pool_configured().rules());
  }
  EXPECT_EQ(rules, std::set<uint32_t>{GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Rules,
                         LogsTest,
                         testing::Range<uint32_t>(1, model::kLatestRules + 1),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace fluxqueue
