// Backfill with promised starts, on a whole system of two nodes: what is promised is kept, who
// would delay it waits, who would not passes; and the simulator decides as the live services did.
#include <chrono>
#include <string>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

// Seconds that binding and starting may take: a job that starts late ends late.
constexpr int64_t kSlackMs = 4000;

class BackfillTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 2}); }

  // A job that takes whole nodes; it says that it runs for `says` seconds, and does for `runs`.
  void Submit(const std::string& queue,
              const std::string& name,
              int nodes,
              const std::string& says,
              const std::string& runs) {
    Apply(JobYaml(name,
                  {.parallelism = nodes,
                   .completions = nodes,
                   .cpu = kWholeNode,
                   .run_seconds = runs,
                   .annotations = fmt::format(
                       "{{fluxqueue.io/queue: {}, fluxqueue.io/duration: {}s}}", queue, says)}));
  }

  static constexpr char kWholeNode[] = "7";
};

TEST_F(BackfillTest, EasyPromisesTheFirstAndLetsOthersPass) {
  MakeQueue("easy", "{strategy: easy}");
  Submit("easy", "long", 1, "12", "12");
  ExpectState("long", "Running");
  // Both nodes, when `long` has ended: its start is promised.
  Submit("easy", "wide", 2, "2", "1");
  ExpectReason("wide", "Reserved");
  const int64_t promised = StartOf("wide");
  EXPECT_NEAR(static_cast<double>(promised - StartOf("long")), 12'000, kSlackMs);
  // People see it on the FluxJob.
  const auto on_flux_job = [&] {
    const auto shown = system_->Kubectl(
        {"get",
         "fluxjobs",
         "-n",
         "e2e",
         "-o",
         "jsonpath={range .items[*]}{.status.reason} {.status.start}{\"\\n\"}{end}"});
    return shown.ok() ? *shown : Message(shown.status());
  };
  const absl::Status seen =
      system_->WaitFor([&] { return on_flux_job().find("Reserved 20") != std::string::npos; },
                       std::chrono::seconds(20),
                       on_flux_job);
  EXPECT_TRUE(seen.ok()) << Message(seen);

  const auto why = system_->Fluxqueue({"explain", "wide"});
  ASSERT_TRUE(why.ok()) << Message(why.status());
  EXPECT_EQ(why->exit_code, 0) << why->output;
  EXPECT_THAT(why->output, HasSubstr("it is number 1 of 1 in line of queue easy"));
  EXPECT_THAT(why->output, HasSubstr("if all that runs, and all that is promised before it"));
  EXPECT_THAT(why->output, HasSubstr("with 1 pod instead of 2 pods it would start now"));
  fmt::print("{}", why->output);

  // One that would still run by then waits, one that would not goes first.
  Submit("easy", "slow", 1, "60", "1");
  ExpectReason("slow", "Busy");
  EXPECT_THAT(MessageOf("slow"), HasSubstr("it would delay job"));
  const auto sooner = system_->Fluxqueue({"explain", "slow"});
  ASSERT_TRUE(sooner.ok()) << Message(sooner.status());
  EXPECT_THAT(sooner->output, HasSubstr("be through before the next promised start"));
  Submit("easy", "short", 1, "3", "1");
  ExpectState("short", "Succeeded");
  EXPECT_EQ(StateOf("wide"), "Pending");
  EXPECT_LT(StartOf("short"), promised);

  ExpectState("wide", "Succeeded");
  EXPECT_LT(StartOf("wide"), promised + kSlackMs);
  ExpectState("slow", "Succeeded");
}

TEST_F(BackfillTest, ConservativePromisesAll) {
  MakeQueue("all", "{strategy: conservative}");
  Submit("all", "first", 2, "6", "6");
  ExpectState("first", "Running");
  Submit("all", "second", 2, "30", "1");
  Submit("all", "third", 2, "30", "1");
  ExpectReason("second", "Reserved");
  ExpectReason("third", "Reserved");
  EXPECT_NEAR(static_cast<double>(StartOf("third") - StartOf("second")), 30'000, 1000);
  // `second` is through long before it said: `third` need not wait for the time that it was told.
  const int64_t promised = StartOf("third");
  ExpectState("third", "Succeeded");
  EXPECT_LT(StartOf("third"), promised);
}

TEST_F(BackfillTest, TheStrategyChangesLive) {
  MakeQueue("live", "{strategy: fcfs}");
  Submit("live", "holder", 1, "15", "8");
  ExpectState("holder", "Running");
  Submit("live", "blocked", 2, "5", "1");
  ExpectReason("blocked", "Busy");
  Submit("live", "small", 1, "2", "0.5");
  ExpectReason("small", "Queued");
  MakeQueue("live", "{strategy: hybrid}");
  ExpectReason("blocked", "Reserved");
  ExpectState("small", "Succeeded");
  EXPECT_EQ(StateOf("blocked"), "Pending");
  ExpectState("blocked", "Succeeded");
}

TEST_F(BackfillTest, AdaptiveLetsTheShortPass) {
  MakeQueue("ours", "{strategy: adaptive}");
  Submit("ours", "ours-long", 1, "12", "10");
  ExpectState("ours-long", "Running");
  Submit("ours", "ours-wide", 2, "5", "1");
  ExpectReason("ours-wide", "Reserved");
  Submit("ours", "ours-short", 1, "2", "0.5");
  ExpectState("ours-short", "Succeeded");
  EXPECT_EQ(StateOf("ours-wide"), "Pending");
  ExpectState("ours-wide", "Succeeded");
}

// A job that says nothing and took a second twice is planned with that, not with the queue's hour.
TEST_F(BackfillTest, DurationsArePredicted) {
  MakeQueue("guess", "{strategy: easy, predictDurations: true}");
  const auto like = [this](const std::string& name) {
    Apply(JobYaml(
        name, {.cpu = "6", .run_seconds = "0.5", .annotations = "{fluxqueue.io/queue: guess}"}));
    ExpectState(name, "Succeeded");
  };
  like("like-0");
  like("like-1");
  Submit("guess", "guess-long", 1, "15", "12");
  ExpectState("guess-long", "Running");
  Submit("guess", "guess-wide", 2, "5", "1");
  ExpectReason("guess-wide", "Reserved");
  like("like-2");
  EXPECT_EQ(StateOf("guess-wide"), "Pending");
  ExpectState("guess-wide", "Succeeded");
}

TEST_F(BackfillTest, WhoOverrunsIsNamed) {
  MakeQueue("late", "{strategy: easy}");
  Submit("late", "overrun", 2, "2", "18");
  ExpectState("overrun", "Running");
  Submit("late", "next", 2, "2", "1");
  ExpectReason("next", "Reserved");
  const absl::Status told = system_->WaitFor(
      [&] {
        return MessageOf("next").find("job e2e/overrun has not ended in its time") !=
               std::string::npos;
      },
      std::chrono::seconds(30),
      [&] { return MessageOf("next"); });
  EXPECT_TRUE(told.ok()) << Message(told);
  ExpectState("next", "Succeeded");
}

// The log that the tests before this one have written.
TEST_F(BackfillTest, TheSimulatorDecidesAsTheServicesDid) {
  ExpectSimulatorAgrees();
}

}  // namespace
}  // namespace fluxqueue::e2e
