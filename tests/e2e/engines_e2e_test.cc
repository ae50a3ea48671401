// Another engine under live jobs: first as a shadow, then as the one that decides, while its
// library's process is killed again and again; and what queues promise under it.
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "libs/testing/shell.h"
#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

constexpr int kKills = 100;
constexpr int kJobs = 120;

class EnginesTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 4,
                 .sections = {{"admission", "pool: {engine: native, policy: lonode}\n"},
                              {"matcher", "fluxion: {library: \"" + library_ + "\"}\n"}}});
  }

  void ChangeEngine(const std::string& engine) {
    std::ofstream(system_->folder() + "/sections/admission.yaml")
        << "pool: {engine: " << engine << ", policy: lonode}\n";
    const absl::Status restarted = system_->StartService("admission");
    ASSERT_TRUE(restarted.ok()) << Message(restarted);
    const absl::Status read = system_->WaitFor(
        [&] { return Metric("fluxqueue_engine", "engine=\"" + engine + "\"") == 1; },
        std::chrono::seconds(30),
        [&] { return "the matcher has not the engine " + engine; });
    ASSERT_TRUE(read.ok()) << Message(read);
  }

  // Of the matcher; -1: it does not say.
  double Metric(const std::string& name, const std::string& label) {
    std::ifstream ports(system_->folder() + "/config/matcher-1.ports");
    std::string port;
    ports >> port;
    const auto metrics = testing::Run("curl -sfm 5 http://127.0.0.1:" + port + "/metrics");
    if (!metrics.ok()) return -1;
    std::istringstream lines(*metrics);
    for (std::string line; std::getline(lines, line);) {
      const bool named = line.starts_with(name + "{") || line.starts_with(name + " ");
      if (!named || line.find(label) == std::string::npos) continue;
      return std::stod(line.substr(line.rfind(' ')));
    }
    return -1;
  }

  // The library's process, if there is one now.
  bool KillLibrary() {
    return testing::Run("pkill -KILL -P $(cat " +
                        testing::ShellQuote(system_->folder() + "/logs/matcher-1.pid") + ")")
        .ok();
  }
};

TEST_F(EnginesTest, ShadowThenFluxionThatIsKilledAHundredTimes) {
  // Lives through all of it.
  Apply(JobYaml("live", {.parallelism = 2, .completions = 2, .cpu = "2", .run_seconds = "1000"}));
  ExpectState("live", "Running");

  ChangeEngine("shadow");
  Apply(JobYaml("shadowed", {.parallelism = 3, .completions = 3, .cpu = "1"}));
  ExpectState("shadowed", "Succeeded");
  const absl::Status compared =
      system_->WaitFor([&] { return Metric("fluxqueue_shadow_answers_total", "\"equal\"") >= 1; },
                       std::chrono::seconds(20),
                       [] { return "no answer was compared"; });
  EXPECT_TRUE(compared.ok()) << Message(compared);
  EXPECT_EQ(Metric("fluxqueue_shadow_answers_total", "\"placement\""), 0);
  EXPECT_EQ(Metric("fluxqueue_shadow_answers_total", "\"outcome\""), 0);

  ChangeEngine("fluxion");
  std::string jobs;
  for (int i = 0; i < kJobs; ++i) jobs += JobYaml(fmt::format("killed-{}", i), {.cpu = "1"});
  int kills = 0;
  std::jthread killer([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && kills < kKills) {
      if (KillLibrary()) ++kills;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  // More of them until it was killed often enough.
  for (int round = 0; round < 20; ++round) {
    Apply(std::regex_replace(jobs, std::regex("killed-"), fmt::format("killed-{}-", round)));
    const absl::Status ended = system_->WaitFor(
        [&] {
          return Count("queue.jobs WHERE name LIKE 'killed-%' AND state = 'Succeeded'") ==
                 kJobs * (round + 1);
        },
        std::chrono::seconds(120),
        [] { return "jobs do not end"; });
    ASSERT_TRUE(ended.ok()) << Message(ended);
    if (kills >= kKills) break;
  }
  killer.request_stop();
  killer.join();
  EXPECT_EQ(kills, kKills);
  EXPECT_GE(Metric("fluxqueue_fluxion_restarts_total", ""), 1);
  EXPECT_EQ(StateOf("live"), "Running");
}

// The engine from the beginning, on two nodes.
class FluxionTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 2,
                 .sections = {{"admission", "pool: {engine: fluxion, policy: lonode}\n"},
                              {"matcher", "fluxion: {library: \"" + library_ + "\"}\n"}}});
  }

  // Takes whole nodes for `runs` seconds.
  void Submit(const std::string& name,
              int nodes,
              const std::string& runs,
              const std::string& annotations) {
    Apply(JobYaml(name,
                  {.parallelism = nodes,
                   .completions = nodes,
                   .cpu = "7",
                   .run_seconds = runs,
                   .annotations = "{" + annotations + "}"}));
  }
};

TEST_F(FluxionTest, EasyBackfillKeepsWhatItPromises) {
  MakeQueue("easy", "{strategy: easy}");
  const auto submit = [this](const std::string& name, int nodes, int says_s, const char* runs) {
    Submit(name,
           nodes,
           runs,
           fmt::format("fluxqueue.io/queue: easy, fluxqueue.io/duration: {}s", says_s));
  };
  submit("long", 1, 12, "12");
  ExpectState("long", "Running");
  submit("wide", 2, 2, "1");
  ExpectReason("wide", "Reserved");
  const int64_t promised = StartOf("wide");
  submit("slow", 1, 60, "1");
  ExpectReason("slow", "Busy");
  EXPECT_THAT(MessageOf("slow"), ::testing::HasSubstr("it would delay job"));
  submit("short", 1, 3, "1");
  ExpectState("short", "Succeeded");
  EXPECT_EQ(StateOf("wide"), "Pending");
  ExpectState("wide", "Succeeded");
  // Binding and starting take their time.
  EXPECT_LT(StartOf("wide"), promised + 4000);
  ExpectState("slow", "Succeeded");
  EXPECT_GT(StartOf("slow"), StartOf("wide"));
}

TEST_F(FluxionTest, PriorityPreempts) {
  MakeQueue("urgent", "{preemption: {byPriority: true, grace: 5s}}");
  Submit("low", 2, "8", "fluxqueue.io/queue: urgent");
  ExpectState("low", "Running");
  Submit("high", 1, "1", "fluxqueue.io/queue: urgent, fluxqueue.io/priority: \"9\"");
  ExpectState("high", "Succeeded");
  EXPECT_EQ(StopsOf("low"), 1);
  ExpectState("low", "Succeeded");
  EXPECT_EQ(StopsOf("low"), 1);
}

}  // namespace
}  // namespace fluxqueue::e2e
