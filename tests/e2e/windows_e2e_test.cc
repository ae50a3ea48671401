// Nodes that are kept for a time, on a whole system of two nodes: maintenance drains them in time,
// who would not be through waits and is told why, and an advance reservation lets in whom it names.
#include <chrono>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "libs/base/clock.h"
#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

class WindowsTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 2});
    if (system_ == nullptr) return;
    const auto made = system_->Kubectl(
        {"apply", "-f", "-"},
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: course\n"
        "  labels: {fluxqueue.io/managed: \"true\"}\n---\n"
        "apiVersion: fluxqueue.io/v1alpha1\nkind: FluxQueue\nmetadata: {name: easy}\n"
        "spec: {namespaceSelector: {}, strategy: easy}\n");
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  static int64_t NowMs() {
    return std::chrono::duration_cast<Millis>(RealClock().Now().time_since_epoch()).count();
  }

  static std::string Yaml(const std::string& name, const std::string& spec) {
    return fmt::format(
        "apiVersion: fluxqueue.io/v1alpha1\nkind: FluxWindow\nmetadata: {{name: {}}}\n"
        "spec: {{{}}}\n",
        name,
        spec);
  }
  static std::string Time(int64_t ms) { return FormatTime(Millis(ms)); }

  // In the log, so that whoever comes from now on comes behind it.
  void MakeWindow(const std::string& name, const std::string& spec) {
    Apply(Yaml(name, spec));
    ExpectWindows(name, 1);
  }
  void ExpectWindows(const std::string& name, int count) {
    const auto known = [&] {
      return Count(fmt::format("admission.windows WHERE name = '{}'", name)) == count;
    };
    const absl::Status reached = system_->WaitFor(
        known, std::chrono::seconds(30), [&] { return fmt::format("window {} to be said", name); });
    ASSERT_TRUE(reached.ok()) << Message(reached);
  }

  // It says that it runs for `says` seconds, and runs for one.
  void Submit(const std::string& name, const std::string& says, const std::string& space = "e2e") {
    std::string yaml =
        JobYaml(name,
                {.run_seconds = "1",
                 .annotations =
                     fmt::format("{{fluxqueue.io/queue: easy, fluxqueue.io/duration: {}}}", says)});
    const std::string placed = "namespace: e2e";
    yaml.replace(yaml.find(placed), placed.size(), "namespace: " + space);
    Apply(yaml);
  }

  void ExpectMessage(const std::string& name, const std::string& part) {
    const absl::Status told =
        system_->WaitFor([&] { return MessageOf(name).find(part) != std::string::npos; },
                         std::chrono::seconds(30),
                         [&] { return fmt::format("\"{}\", not \"{}\"", MessageOf(name), part); });
    EXPECT_TRUE(told.ok()) << Message(told);
  }

  std::string Explain(const std::string& name) {
    const auto why = system_->Fluxqueue({"explain", name});
    EXPECT_TRUE(why.ok()) << Message(why.status());
    return why.ok() ? why->output : "";
  }
};

TEST_F(WindowsTest, MaintenanceDrainsTheNodesInTime) {
  // Starts are known by the second.
  const int64_t start_ms = (NowMs() / 1000 + 26) * 1000;
  const int64_t end_ms = start_ms + 15'000;
  MakeWindow("maintenance",
             fmt::format("start: \"{}\", end: \"{}\"", Time(start_ms), Time(end_ms)));
  // One that is through before it begins runs, one that is not waits for its end.
  Submit("short", "8s");
  ExpectState("short", "Succeeded");
  EXPECT_LT(StartOf("short"), start_ms);
  Submit("long", "8h");
  ExpectMessage("long",
                "there is room, but window maintenance keeps 2 nodes from " +
                    Time(start_ms).substr(0, 19) +
                    "Z on, and it would not end before "
                    "(it may take 8 h)");
  EXPECT_GE(StartOf("long"), end_ms);
  EXPECT_LE(StartOf("long"), end_ms + 2000);
  EXPECT_THAT(Explain("long"),
              HasSubstr("it could start now and be through before window maintenance begins"));
  const auto windows = system_->Kubectl({"get", "fluxwindows"});
  fmt::print("{}{}", windows.value_or(""), Explain("long"));
  Submit("unlimited", "\"0\"");
  ExpectMessage("unlimited", "(it does not say how long it takes)");
  // Within it nobody starts, however short.
  const absl::Status begun = system_->WaitFor([&] { return NowMs() > start_ms + 1000; },
                                              std::chrono::seconds(40),
                                              [] { return "the window to begin"; });
  ASSERT_TRUE(begun.ok()) << Message(begun);
  Submit("tiny", "1s");
  ExpectMessage("tiny",
                "window maintenance keeps 2 nodes until " + Time(end_ms).substr(0, 19) + "Z");
  EXPECT_LT(NowMs(), end_ms);
  for (const char* name : {"long", "unlimited", "tiny"}) {
    ExpectState(name, "Succeeded");
    EXPECT_GE(StartOf(name), end_ms) << name;
    EXPECT_LT(StartOf(name), end_ms + 8000) << name;
  }
}

TEST_F(WindowsTest, AnAdvanceReservationLetsInWhomItNames) {
  MakeWindow("course",
             fmt::format("start: \"{}\", duration: 4h, nodeSelector: {{kubernetes.io/os: linux}}, "
                         "namespaces: [course]",
                         Time(NowMs() - 1000)));
  const auto shown = system_->Kubectl({"get", "fluxwindows"});
  ASSERT_TRUE(shown.ok()) << Message(shown.status());
  EXPECT_THAT(*shown, HasSubstr("NAMESPACES"));
  fmt::print("{}", *shown);
  Submit("outside", "10s");
  ExpectMessage("outside", "window course keeps 2 nodes until");
  Submit("inside", "10s", "course");
  ExpectState("inside", "Succeeded");
  EXPECT_EQ(StateOf("outside"), "Pending");
  // It is given up: who waited starts at once.
  const auto deleted = system_->Kubectl({"delete", "fluxwindow", "course"});
  ASSERT_TRUE(deleted.ok()) << Message(deleted.status());
  ExpectWindows("course", 0);
  ExpectState("outside", "Succeeded");
}

TEST_F(WindowsTest, WhatIsNoWindowIsRefused) {
  const std::string start = "start: \"2030-01-31T20:00:00Z\"";
  const std::pair<std::string, std::string> cases[] = {
      {start, "one of spec.end and spec.duration"},
      {start + ", duration: 1h, end: \"2030-01-31T21:00:00Z\"",
       "one of spec.end and spec.duration"},
      {start + ", end: \"2030-01-31T20:00:00Z\"", "spec.end must be later than spec.start"},
      {start + ", duration: \"0s\"", "spec.duration must be more than 0"},
      {"duration: 1h", "spec.start: Required value"},
      {"start: tonight, duration: 1h", "spec.start"},
  };
  for (const auto& [spec, problem] : cases) {
    const auto refused = system_->Kubectl({"create", "-f", "-"}, Yaml("bad", spec));
    EXPECT_FALSE(refused.ok()) << spec;
    EXPECT_THAT(Message(refused.status()), HasSubstr(problem)) << spec;
  }
}

// The log that the tests before this one have written.
TEST_F(WindowsTest, TheSimulatorDecidesAsTheServicesDid) {
  ExpectSimulatorAgrees();
}

}  // namespace
}  // namespace fluxqueue::e2e
