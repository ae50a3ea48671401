// Logs of real systems, one for each version of the rules (libs/model/rules.h), through the cores
// as they are now: each decision is made again, byte for byte. README.md says how they were made.
#include <filesystem>
#include <set>
#include <string>

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"
#include "libs/simulation/history.h"
#include "libs/verify/snapshot_file.h"

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

// A part of a log through the cores.
struct Part {
  verify::PoolReplay result;
  std::string facts;  // as they were decided, one behind the other
  replay::v1::Snapshot after;
};

Part Play(const simulation::History& history,
          size_t from,
          size_t to,
          const replay::v1::Snapshot* snapshot) {
  verify::FactLog recorded;
  for (const verify::EventLine& fact : history.facts) recorded.Fold(fact);
  verify::Replayer replayer(history.log.front().partition, recorded, {});
  Part part;
  replayer.OnFact(
      [&part](const events::v1::JobFact& fact, Millis) { part.facts += fact.SerializeAsString(); });
  replayer.KeepRows();
  if (snapshot != nullptr) {
    const absl::Status restored = replayer.Restore(*snapshot);
    EXPECT_TRUE(restored.ok()) << Message(restored);
  }
  for (size_t i = from; i < to; ++i) {
    const absl::Status folded = replayer.Fold(history.log[i]);
    EXPECT_TRUE(folded.ok()) << Message(folded);
  }
  part.after = replayer.Save(history.pool);
  part.result = replayer.Finish(/*whole=*/false).front();
  return part;
}

// By way of a file.
replay::v1::Snapshot Kept(const replay::v1::Snapshot& snapshot) {
  auto kept = verify::ParseSnapshot(verify::FormatSnapshot(snapshot, "1.0"), "file");
  EXPECT_TRUE(kept.ok()) << Message(kept.status());
  return *std::move(kept);
}

// Saved at many places, the replay goes on as if it had never stopped.
TEST(SnapshotTest, TheSameIsDecidedAsFromTheBeginning) {
  const simulation::History history = Read(model::kLatestRules);
  const size_t size = history.log.size();
  const Part whole = Play(history, 0, size, nullptr);
  ASSERT_EQ(whole.result.total.different(), 0U);
  for (size_t cut = 1; cut < size; cut += size / 24) {
    SCOPED_TRACE(cut);
    const Part head = Play(history, 0, cut, nullptr);
    const replay::v1::Snapshot snapshot = Kept(head.after);
    const Part tail = Play(history, cut, size, &snapshot);
    EXPECT_EQ(tail.result.total.different(), 0U);
    for (const verify::Difference& difference : tail.result.differences) {
      ADD_FAILURE() << verify::DiffText(difference);
    }
    EXPECT_EQ(head.result.total.decisions + tail.result.total.decisions,
              whole.result.total.decisions);
    EXPECT_TRUE(head.facts + tail.facts == whole.facts);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(tail.after, whole.after));
  }
}

INSTANTIATE_TEST_SUITE_P(Rules,
                         LogsTest,
                         testing::Range<uint32_t>(1, model::kLatestRules + 1),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace fluxqueue
