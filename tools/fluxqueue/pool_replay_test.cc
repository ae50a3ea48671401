// On the log of a real system (tests/logs).
#include "tools/fluxqueue/pool_replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"
#include "libs/verify/row_tables.h"

#include "tools/fluxqueue/job_story.h"
#include "tools/fluxqueue/pool_view.h"

namespace fluxqueue::cli {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

std::string NewestLog() {
  return fmt::format("{}/rules-{}.jsonl.gz", LOGS, model::kLatestRules);
}

// Time, from the beginning of the log, at which this many of its records were appended.
int64_t TimeOf(size_t wanted) {
  int64_t time_ms = 0;
  size_t records = 0;
  const auto source = EventsOfFile(NewestLog());
  (void)source->Read([&](const verify::EventLine& line) {
    if (line.message.has_job_fact()) return absl::OkStatus();
    time_ms = line.time.count();
    return ++records == wanted ? absl::CancelledError() : absl::OkStatus();
  });
  return time_ms;
}

class PoolReplayTest : public ::testing::Test {
 protected:
  void Run(PoolReplay::Options options, PoolReplay::Hooks hooks = PoolReplay::Hooks()) {
    replay_ = std::make_unique<PoolReplay>(*source_, std::move(options), std::move(hooks));
    const absl::Status status = replay_->Run();
    ASSERT_TRUE(status.ok()) << Message(status);
  }

  const std::unique_ptr<EventSource> source_ = EventsOfFile(NewestLog());
  std::unique_ptr<PoolReplay> replay_;
};

TEST_F(PoolReplayTest, ComparesTheWholeLog) {
  Run({.compares_facts = true});
  const verify::PoolReplay result = replay_->Result();
  EXPECT_EQ(result.pool, "default");
  EXPECT_GT(result.total.decisions, 300U);
  EXPECT_EQ(result.total.different(), 0U);
}

TEST_F(PoolReplayTest, StopsAtATime) {
  const int64_t time_ms = TimeOf(200);
  Run({.to_ms = time_ms, .compares_facts = true});
  EXPECT_EQ(replay_->now().count(), time_ms);
  const verify::PoolReplay result = replay_->Result();
  EXPECT_GE(result.records, 200U);
  EXPECT_LT(result.records, 300U);
  EXPECT_EQ(result.total.different(), 0U);
}

TEST_F(PoolReplayTest, ShowsThePoolAsItWas) {
  Run({.to_ms = TimeOf(200)});
  const PoolView view = Look(*replay_->replayer().Queue("default"),
                             *replay_->replayer().Matcher("default"),
                             replay_->now());
  EXPECT_EQ(view.pool, "default");
  EXPECT_EQ(view.nodes.size(), 6);
  ASSERT_FALSE(view.waiting.empty());
  ASSERT_FALSE(view.allocations.empty());
  uint32_t held = 0;
  for (const PoolView::Allocation& allocation : view.allocations) {
    EXPECT_LE(allocation.since_ms, view.time_ms + 1000);
    for (const auto& [node, slots] : allocation.nodes) held += slots;
  }
  uint32_t used = 0;
  for (const graph::NodeUsage& node : view.nodes) used += node.slots;
  EXPECT_EQ(held, used);
  // Of each queue the places are 1, 2, 3 …
  std::map<std::string, size_t> places;
  for (const PoolView::Waiting& job : view.waiting) {
    EXPECT_FALSE(job.reason.empty()) << job.name;
    if (job.position == 0) continue;
    EXPECT_EQ(job.position, ++places[job.queue]) << job.name;
  }
}

TEST_F(PoolReplayTest, TellsTheStoryOfAJob) {
  JobStory story("lab/held", [this](const std::string& id, uint32_t attempt) {
    const auto* placement = replay_->replayer().Matcher("default")->engine().Find({id, attempt, 0});
    return placement == nullptr ? "" : NodesText(SlotsByNode(*placement));
  });
  Run({},
      {.before = [&](const verify::EventLine& line) { story.Read(line); },
       .decided = [&](const events::v1::JobFact& fact, Millis now) { story.Decide(fact, now); }});
  const std::vector<StoryStep>& steps = story.steps();
  ASSERT_GT(steps.size(), 5);
  EXPECT_EQ(steps.front().cause.type, "job_submitted");
  const auto is = [&](const auto& has) { return std::any_of(steps.begin(), steps.end(), has); };
  EXPECT_TRUE(is([](const StoryStep& step) { return step.reason == "Held"; }));
  EXPECT_TRUE(is([](const StoryStep& step) { return step.cause.type == "job_updated"; }));
  EXPECT_TRUE(is([](const StoryStep& step) {
    return step.state == "Allocated" && step.cause.type == "cycle_answered" && !step.nodes.empty();
  }));
  EXPECT_TRUE(is([](const StoryStep& step) { return step.state == "Succeeded"; }));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return a.cause.offset < b.cause.offset;
  }));
}

TEST_F(PoolReplayTest, GoesOnFromASnapshot) {
  const int64_t time_ms = TimeOf(300);
  Run({.to_ms = time_ms, .keeps_rows = true});
  const replay::v1::Snapshot snapshot = replay_->replayer().Save("default");
  EXPECT_EQ(snapshot.time_ms(), time_ms);
  const auto again = EventsOfFile(NewestLog());
  PoolReplay rest(*again, {.from = snapshot, .compares_facts = true});
  const absl::Status status = rest.Run();
  ASSERT_TRUE(status.ok()) << Message(status);
  const verify::PoolReplay result = rest.Result();
  EXPECT_GT(result.total.decisions, 100U);
  EXPECT_EQ(result.total.different(), 0U);
}

// Of all jobs, what their table has beside their rows.
std::vector<std::string> Columns(const verify::Replayer& replayer) {
  std::vector<std::string> jobs;
  for (const queue_core::JobChange& job : replayer.queue_tables("default").All().jobs) {
    jobs.push_back(fmt::format("{} {} {}/{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                               job.job_id,
                               job.queue,
                               job.name_space,
                               job.name,
                               job.kind,
                               static_cast<int>(job.state),
                               job.version,
                               job.attempt,
                               job.reason,
                               job.message,
                               job.slots,
                               job.priority,
                               job.created_ms,
                               job.start_ms,
                               job.updated_ms,
                               job.placement_hash,
                               job.ending,
                               job.most_slots,
                               job.user,
                               job.jobspec_bytes));
  }
  return jobs;
}

TEST_F(PoolReplayTest, ASnapshotOfTheWholeLogNeedsNoMoreOfIt) {
  Run({.keeps_rows = true});
  const replay::v1::Snapshot snapshot = replay_->replayer().Save("default");
  const auto again = EventsOfFile(NewestLog());
  PoolReplay rest(*again, {.from = snapshot});
  const absl::Status status = rest.Run();
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_TRUE(MessageDifferencer::Equals(rest.replayer().Save("default"), snapshot));
  EXPECT_EQ(Columns(rest.replayer()), Columns(replay_->replayer()));
}

// A source whose log begins in the middle, if there is any of it.
class CutSource final : public EventSource {
 public:
  explicit CutSource(bool empty = false) : empty_(empty) {}

  absl::Status Read(const Each& each) override {
    if (empty_) return absl::OkStatus();
    verify::EventLine line{.partition = 1, .offset = 7, .time = Millis(1)};
    line.message.set_pool("p");
    line.message.mutable_tick();
    return each(line);
  }
  const verify::EventFileHeader& header() const override { return header_; }

 private:
  const bool empty_;
  const verify::EventFileHeader header_{.pool = "p", .whole = false};
};

TEST(CutReplayTest, NeedsASnapshotThatReachesIt) {
  const auto run = [](PoolReplay::Options options) {
    CutSource source;
    return PoolReplay(source, std::move(options)).Run();
  };
  EXPECT_THAT(Message(run({})), HasSubstr("begins at offset 7, and not where the pool began"));
  replay::v1::Snapshot snapshot;
  snapshot.set_pool("p");
  snapshot.set_next_offset(6);
  EXPECT_THAT(Message(run({.from = snapshot})), HasSubstr("begins at offset 7"));
  snapshot.set_next_offset(7);
  EXPECT_TRUE(run({.from = snapshot}).ok());
  snapshot.set_next_offset(8);
  EXPECT_THAT(Message(run({.from = snapshot})), HasSubstr("has begun again: its offset 7 is of"));
  snapshot.set_time_ms(1);
  EXPECT_TRUE(run({.from = snapshot}).ok());
  snapshot.set_pool("q");
  EXPECT_THAT(Message(run({.from = snapshot})),
              HasSubstr("the snapshot is of pool q, and the log of pool p"));
}

TEST(CutReplayTest, OfAnEmptyLogTheSnapshotIsAll) {
  CutSource source(/*empty=*/true);
  replay::v1::Snapshot snapshot;
  snapshot.set_pool("p");
  snapshot.set_next_offset(7);
  PoolReplay replay(source, {.from = snapshot});
  ASSERT_TRUE(replay.Run().ok());
  EXPECT_NE(replay.replayer().Queue("p"), nullptr);
  EXPECT_THAT(Message(PoolReplay(source, {}).Run()), HasSubstr("no record"));
}

}  // namespace
}  // namespace fluxqueue::cli
