// Elastic Jobs on a whole system of one node: they start with the slots that there are and grow
// when room comes; a job array never has more indexes at a time than it may; and the simulator
// decides as the live services did.
#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

class ElasticTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 1}); }

  // Takes so many of the node's 8 cores for a while.
  void Occupy(const std::string& name, const std::string& cpu, const std::string& seconds) {
    Apply(JobYaml(name, {.cpu = cpu, .run_seconds = seconds}));
    ExpectState(name, "Running");
  }

  std::string SlotsOf(const std::string& name) {
    const auto rows = system_->Query(
        fmt::format("SELECT slots || '/' || most_slots FROM queue.jobs WHERE name = '{}'", name));
    return rows.ok() && !rows->empty() ? (*rows)[0][0] : "";
  }
  void ExpectSlots(const std::string& name, const std::string& slots) {
    const absl::Status reached = system_->WaitFor(
        [&] { return SlotsOf(name) == slots; },
        std::chrono::seconds(30),
        [&] {
          return fmt::format(
              "job {} is {} with {} slots, not {}", name, StateOf(name), SlotsOf(name), slots);
        });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  // Pods of the Job that are bound and have not ended.
  int Running(const std::string& name) {
    const auto pods = system_->Kubectl(
        {"get",
         "pods",
         "-n",
         "e2e",
         "-l",
         "job-name=" + name,
         "-o",
         "jsonpath={range .items[*]}{.spec.nodeName} {.status.phase}{\"\\n\"}{end}"});
    EXPECT_TRUE(pods.ok()) << Message(pods.status());
    int running = 0;
    std::istringstream lines(pods.ok() ? *pods : "");
    for (std::string line; std::getline(lines, line);) {
      const bool bound = !line.empty() && line[0] != ' ';
      const bool ended = line.ends_with("Succeeded") || line.ends_with("Failed");
      if (bound && !ended) ++running;
    }
    return running;
  }
  void ExpectRunning(const std::string& name, int pods) {
    const absl::Status reached = system_->WaitFor(
        [&] { return Running(name) == pods; },
        std::chrono::seconds(20),
        [&] { return fmt::format("{} of {} pods of {} run", Running(name), pods, name); });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  std::string OfJob(const std::string& name, const std::string& field) {
    const auto value = system_->Kubectl(
        {"get", "job", name, "-n", "e2e", "-o", fmt::format("jsonpath={{{}}}", field)});
    return value.ok() ? *value : Message(value.status());
  }

  // The messages of its facts with this reason, the first first.
  std::string Told(const std::string& name, const std::string& reason) {
    const auto told = system_->QueryOne(fmt::format(
        "SELECT coalesce(string_agg(e.message, '; ' ORDER BY e.version), '') FROM queue.job_events "
        "e JOIN queue.jobs j ON j.job_id = e.job_id WHERE j.name = '{}' AND e.reason = '{}'",
        name,
        reason));
    return told.ok() ? *told : Message(told.status());
  }

  void ExpectNothingHeld() {
    const absl::Status free =
        system_->WaitFor([&] { return Count("matcher.allocations WHERE NOT released") == 0; },
                         std::chrono::seconds(20),
                         [&] { return "all to be given back"; });
    EXPECT_TRUE(free.ok()) << Message(free);
    // And it can be had again.
    Apply(JobYaml("all-" + std::to_string(++checks_), {.cpu = "7"}));
    ExpectState("all-" + std::to_string(checks_), "Succeeded");
  }

  static inline int checks_ = 0;
};

TEST_F(ElasticTest, StartsWithSomeOfItsSlotsAndGrows) {
  Occupy("holder", "6", "10");
  Apply(JobYaml("elastic",
                {.parallelism = 6,
                 .completions = 6,
                 .cpu = "1",
                 .run_seconds = "15",
                 .annotations = "{fluxqueue.io/min-slots: \"2\", fluxqueue.io/duration: 60s}"}));
  ExpectState("elastic", "Running");
  EXPECT_EQ(StateOf("holder"), "Running");
  ExpectSlots("elastic", "2/6");
  ExpectRunning("elastic", 2);
  // People see it.
  const auto jobs = system_->Fluxqueue({"jobs"});
  ASSERT_TRUE(jobs.ok()) << Message(jobs.status());
  EXPECT_THAT(jobs->output, HasSubstr("2/6"));
  fmt::print("{}", jobs->output);
  const auto on_flux_job = [&] {
    const auto shown = system_->Kubectl(
        {"get", "fluxjob", "job-elastic", "-n", "e2e", "-o", "jsonpath={.status.slots}"});
    return shown.ok() ? *shown : Message(shown.status());
  };
  const absl::Status seen = system_->WaitFor(
      [&] { return on_flux_job() == "2/6"; }, std::chrono::seconds(20), on_flux_job);
  EXPECT_TRUE(seen.ok()) << Message(seen);

  ExpectState("holder", "Succeeded");
  ExpectSlots("elastic", "6/6");
  ExpectRunning("elastic", 6);
  EXPECT_EQ(StateOf("elastic"), "Running");
  EXPECT_EQ(Told("elastic", "Grown"), "holds 6 of at most 6 slots, 4 more than before");
  ExpectState("elastic", "Succeeded");
  EXPECT_EQ(OfJob("elastic", ".status.succeeded"), "6");
  ExpectNothingHeld();
}

TEST_F(ElasticTest, AnArrayNeverHasMoreIndexesAtATimeThanItMay) {
  Occupy("full", "7", "6");
  Apply(JobYaml("array",
                {.parallelism = 12,
                 .completions = 12,
                 .indexed = true,
                 .cpu = "1",
                 .run_seconds = "1.5",
                 .annotations = "{fluxqueue.io/array: \"3\"}"}));
  ExpectState("array", "Running");
  EXPECT_EQ(StateOf("full"), "Running") << "one slot is enough to start";
  int most = 0;
  const absl::Status done = system_->WaitFor(
      [&] {
        most = std::max(most, Running("array"));
        return StateOf("array") == "Succeeded";
      },
      std::chrono::seconds(90),
      [&] { return fmt::format("array is {} ({})", StateOf("array"), MessageOf("array")); });
  EXPECT_TRUE(done.ok()) << Message(done);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(OfJob("array", ".status.succeeded"), "12");
  EXPECT_EQ(OfJob("array", ".status.completedIndexes"), "0-11");
  EXPECT_EQ(Told("array", "Grown"), "holds 3 of at most 3 slots, 2 more than before");
  ExpectNothingHeld();
}

TEST_F(ElasticTest, NotMoreThanItHasCompletionsLeft) {
  Occupy("long", "7", "5");
  Apply(JobYaml("tail",
                {.parallelism = 5,
                 .completions = 5,
                 .cpu = "1",
                 .run_seconds = "2",
                 .annotations = "{fluxqueue.io/min-slots: \"1\"}"}));
  ExpectState("long", "Succeeded");
  ExpectState("tail", "Succeeded");
  EXPECT_EQ(OfJob("tail", ".status.succeeded"), "5");
  // Two or so had ended one after the other by then: there is no use for all five slots.
  const std::string told = Told("tail", "Grown");
  EXPECT_THAT(told, HasSubstr("of at most 5 slots"));
  EXPECT_THAT(told, ::testing::Not(HasSubstr("holds 5")));
  fmt::print("{}\n", told);
  ExpectNothingHeld();
}

// A job that goes first takes two of its slots, and it goes on with four.
TEST_F(ElasticTest, ItGivesSlotsBackBeforeItIsStopped) {
  MakeQueue("giving", "{preemption: {byPriority: true, grace: 2s}}");
  const auto elastic = [this](const std::string& name, const std::string& keys) {
    Apply(JobYaml(name,
                  {.parallelism = 6,
                   .completions = 8,
                   .cpu = "1",
                   .run_seconds = "6",
                   .annotations = "{fluxqueue.io/queue: giving, fluxqueue.io/min-slots: \"2\", "
                                  "fluxqueue.io/duration: 90s" +
                                  keys + "}"}));
    ExpectState(name, "Running");
    ExpectSlots(name, "6/6");
    ExpectRunning(name, 6);
  };
  const auto urgent = [this](const std::string& name) {
    Apply(JobYaml(name,
                  {.cpu = "4",
                   .run_seconds = "3",
                   .annotations = "{fluxqueue.io/queue: giving, fluxqueue.io/priority: \"9\"}"}));
    ExpectState(name, "Succeeded");
  };

  elastic("giver", ", fluxqueue.io/ignore-disruptions: \"true\"");
  urgent("taker");
  EXPECT_EQ(StopsOf("giver"), 0);
  EXPECT_EQ(Told("giver", "Shrinking"),
            "gives 2 of its slots back for job e2e/taker of higher priority: 9, and its own is 0");
  EXPECT_THAT(Told("giver", "Shrunk"), HasSubstr("goes on with 4 of at most 6 slots"));
  const auto events = system_->Kubectl({"get",
                                        "events",
                                        "-n",
                                        "e2e",
                                        "--field-selector",
                                        "reason=Shrinking",
                                        "-o",
                                        "jsonpath={.items[*].regarding.name}"
                                        "{.items[*].involvedObject.name}"});
  ASSERT_TRUE(events.ok()) << Message(events.status());
  EXPECT_EQ(*events, "giver");
  // It has them again, under other numbers, and is charged for nothing.
  ExpectSlots("giver", "6/6");
  ExpectState("giver", "Succeeded");
  EXPECT_EQ(OfJob("giver", ".status.succeeded"), "8");
  EXPECT_EQ(OfJob("giver", ".status.failed"), "");
  EXPECT_EQ(StopsOf("giver"), 0);
  ExpectNothingHeld();

  // One that would be charged for pods that are deleted is suspended as a whole.
  elastic("whole", "");
  urgent("second");
  EXPECT_EQ(StopsOf("whole"), 1);
  EXPECT_EQ(Told("whole", "Shrinking"), "");
  ExpectState("whole", "Succeeded");
  EXPECT_EQ(OfJob("whole", ".status.failed"), "");
  ExpectNothingHeld();
}

// The binder is gone while slots are given back, and its successor goes on.
TEST_F(ElasticTest, ARestartWhileItGivesSlotsBack) {
  MakeQueue("giving", "{preemption: {byPriority: true, grace: 2s}}");
  Apply(JobYaml("patient",
                {.parallelism = 6,
                 .completions = 6,
                 .cpu = "1",
                 .run_seconds = "10",
                 .annotations = "{fluxqueue.io/queue: giving, fluxqueue.io/min-slots: \"1\", "
                                "fluxqueue.io/ignore-disruptions: \"true\"}"}));
  ExpectSlots("patient", "6/6");
  ExpectRunning("patient", 6);
  const absl::Status killed = system_->KillService("binder");
  ASSERT_TRUE(killed.ok()) << Message(killed);
  Apply(JobYaml("hasty",
                {.cpu = "5",
                 .run_seconds = "1",
                 .annotations = "{fluxqueue.io/queue: giving, fluxqueue.io/priority: \"9\"}"}));
  const absl::Status asked = system_->WaitFor(
      [&] { return !Told("patient", "Shrinking").empty(); },
      std::chrono::seconds(30),
      [&] { return "patient is " + StateOf("patient") + " and not asked to give slots back"; });
  EXPECT_TRUE(asked.ok()) << Message(asked);
  const absl::Status started = system_->StartService("binder");
  ASSERT_TRUE(started.ok()) << Message(started);
  ExpectState("hasty", "Succeeded");
  EXPECT_EQ(StopsOf("patient"), 0);
  ExpectState("patient", "Succeeded");
  EXPECT_EQ(OfJob("patient", ".status.succeeded"), "6");
  ExpectNothingHeld();
}

TEST_F(ElasticTest, BadValuesAreRefused) {
  const auto refused = system_->Kubectl(
      {"create", "-f", "-"},
      JobYaml("bad", {.completions = 2, .annotations = "{fluxqueue.io/array: \"2\"}"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(Message(refused.status()),
              HasSubstr("fluxqueue.io/array: \"2\": allowed for Indexed"));
}

// The binder is gone while the job grows: its successor finds the new slots.
TEST_F(ElasticTest, ARestartInBetween) {
  Occupy("short", "7", "6");
  Apply(JobYaml("survivor",
                {.parallelism = 4,
                 .completions = 4,
                 .cpu = "1",
                 .run_seconds = "12",
                 .annotations = "{fluxqueue.io/min-slots: \"1\"}"}));
  ExpectState("survivor", "Running");
  const absl::Status killed = system_->KillService("binder");
  ASSERT_TRUE(killed.ok()) << Message(killed);
  ExpectSlots("survivor", "4/4");
  for (const char* service : {"queue", "matcher"}) {
    const absl::Status again = system_->KillService(service);
    ASSERT_TRUE(again.ok()) << Message(again);
  }
  for (const char* service : {"queue", "matcher", "binder"}) {
    const absl::Status started = system_->StartService(service);
    ASSERT_TRUE(started.ok()) << Message(started);
  }
  ExpectRunning("survivor", 4);
  ExpectState("survivor", "Succeeded");
  ExpectNothingHeld();
}

// The log that the tests before this one have written.
TEST_F(ElasticTest, TheSimulatorDecidesAsTheServicesDid) {
  ExpectSimulatorAgrees();
}

}  // namespace
}  // namespace fluxqueue::e2e
