// What the engine fluxion costs, in this process and in another, and what a shadow costs the engine
// that decides.
//
// A call: Match of one core, then Cancel, on the same graph, through a Context; the process of its
// own adds what the way there and back takes. Deciding: the matcher's core, cycles of 100 jobs of
// one slot that are released and ended after it, by the CPU time of the thread that decides.
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/fluxion/child_context.h"
#include "libs/fluxion/engines.h"
#include "libs/fluxion/slot_jobspec.h"
#include "libs/fluxion/test_cluster.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"
#include "tests/bench/report.h"

namespace fluxqueue::bench {
namespace {

using Clock = std::chrono::steady_clock;
using matcher_core::MatcherCore;

constexpr int kCores = 32;
constexpr int kJobsOfCycle = 100;

struct Options {
  int nodes = 1000;
  std::string library;
  std::string host;
  double seconds = 2;
  std::string output = "table";
};

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Microseconds of each call.
struct Calls {
  std::vector<double> match;
  std::vector<double> cancel;
};

void TimeCalls(fluxion::Context& context, uint64_t job, Calls* calls) {
  static const std::string jobspec = fluxion::SlotJobspec({{"cpu", 1000}}, 1, {}, {});
  const auto begun = Clock::now();
  CHECK(context.Match(graph::MatchOperation::kAllocate, jobspec, job).ok());
  const auto matched = Clock::now();
  CHECK(context.Cancel(job).ok());
  calls->match.push_back(1e6 * Seconds(matched - begun));
  calls->cancel.push_back(1e6 * Seconds(Clock::now() - matched));
}

// A core with its nodes, and the next job's number.
class Deciding {
 public:
  Deciding(const Options& options, const std::string& engine, size_t* compared)
      : core_("bench", Engines(options, compared)) {
    matcher_core::Envelope configured = matcher_core::Configured("lonode");
    configured.mutable_pool_configured()->set_engine(engine);
    Feed(configured);
    for (int i = 0; i < options.nodes; ++i) {
      Feed(matcher_core::Upserted(
          matcher_core::MakeNode(fmt::format("node{}", i), int64_t{1000} * kCores)));
    }
    Feed(matcher_core::Synced());
    core_.Commit();
  }

  // CPU seconds of this thread for each job.
  double Run(double seconds) {
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    double used = 0;
    int jobs = 0;
    while (Clock::now() < until) {
      std::vector<std::string> ids;
      for (int i = 0; i < kJobsOfCycle; ++i) ids.push_back(fmt::format("job-{}", next_job_++));
      std::vector<matcher_core::Envelope> messages;
      for (const std::string& id : ids) messages.push_back(matcher_core::Submitted(id, 1, 1000));
      messages.push_back(matcher_core::Cycle(next_cycle_++, ids));
      for (const std::string& id : ids) messages.push_back(matcher_core::Release(id, {}, true));
      const double begun = ThreadSeconds();
      for (const matcher_core::Envelope& message : messages) Feed(message);
      CHECK(!core_.TakeChanges().empty());
      core_.Commit();
      used += ThreadSeconds() - begun;
      jobs += kJobsOfCycle;
    }
    return used / jobs;
  }

 private:
  static graph::MakeEngine Engines(const Options& options, size_t* compared) {
    fluxion::EngineOptions engines;
    engines.library = options.library;
    engines.host = options.host;
    engines.compared = [compared](fluxion::Comparison result, size_t answers) {
      if (result != fluxion::Comparison::kSkipped) *compared += answers;
    };
    return fluxion::MakeEngines(std::move(engines));
  }

  void Feed(const matcher_core::Envelope& message) {
    said_.clear();
    const absl::Status handled = core_.Handle(message, Millis(0), &said_);
    CHECK(handled.ok(), "{}", Message(handled));
  }

  MatcherCore core_;
  std::vector<matcher_core::Envelope> said_;
  uint64_t next_cycle_ = 1;
  int next_job_ = 0;
};

void BenchCalls(const Options& options, Report* report) {
  const std::string graph = fluxion::ClusterJgf(static_cast<size_t>(options.nodes), kCores);
  const auto library = fluxion::Library::Open(options.library);
  CHECK(library.ok(), "{}", Message(library.status()));
  const auto here = fluxion::MakeContext(*library, graph, {.policy = "low"});
  CHECK(here.ok(), "{}", Message(here.status()));
  const auto there = fluxion::MakeChildContext(
      {.host = options.host, .library = options.library}, graph, {.policy = "low"});
  CHECK(there.ok(), "{}", Message(there.status()));
  // In turn, so that what else the machine does meets both alike.
  Calls here_calls;
  Calls there_calls;
  const auto until = Clock::now() + std::chrono::duration<double>(options.seconds);
  for (uint64_t job = 1; Clock::now() < until; ++job) {
    TimeCalls(**here, job, &here_calls);
    TimeCalls(**there, job, &there_calls);
  }
  report->Section(fmt::format("calls of the library, {} nodes, µs", options.nodes),
                  {"", "match p50", "p99", "cancel p50", "p99"});
  std::vector<double> medians;
  for (const auto& [name, calls] : {std::pair("in this process", &here_calls),
                                    std::pair("in a process of its own", &there_calls)}) {
    const Percentiles match = PercentilesOf(calls->match);
    const Percentiles cancel = PercentilesOf(calls->cancel);
    medians.push_back((match.p50 + cancel.p50) / 2);
    report->Row(
        {name, Number(match.p50), Number(match.p99), Number(cancel.p50), Number(cancel.p99)});
    report->json()["calls"][name] = {{"match_p50_us", match.p50},
                                     {"match_p99_us", match.p99},
                                     {"cancel_p50_us", cancel.p50},
                                     {"cancel_p99_us", cancel.p99}};
  }
  report->Target(
      "what the process of its own adds to a call", medians[1] - medians[0], false, 100, "µs");
}

void BenchShadow(const Options& options, Report* report) {
  report->Section(fmt::format("deciding on {} nodes, CPU of the deciding thread", options.nodes),
                  {"", "µs a job"});
  size_t compared = 0;
  Deciding native(options, "native", &compared);
  Deciding shadow(options, "shadow", &compared);
  // In turn, so that what else the machine does meets both alike.
  constexpr int kRounds = 10;
  double alone = 0;
  double shadowed = 0;
  for (int i = 0; i < kRounds; ++i) {
    alone += 1e6 * native.Run(options.seconds / kRounds) / kRounds;
    shadowed += 1e6 * shadow.Run(options.seconds / kRounds) / kRounds;
  }
  report->Row({"native", Number(alone)});
  report->Row({"native with a shadow", Number(shadowed)});
  report->json()["deciding"] = {
      {"native_us", alone}, {"shadow_us", shadowed}, {"compared", compared}};
  report->Target("what a shadow adds", 100 * (shadowed / alone - 1), false, 5, "%");
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  Options options;
  CLI::App app("What the engine fluxion and shadows cost.", "fluxqueue-bench-engines");
  app.add_option("--nodes", options.nodes, "Of 32 cores each")->check(CLI::Range(1, 100'000));
  app.add_option("--library", options.library, "Fluxion's, or one with its interface")
      ->required()
      ->take_last();
  app.add_option("--host", options.host, "fluxqueue-fluxion-host")->required();
  app.add_option("--seconds", options.seconds, "For each figure")->check(CLI::Range(0.01, 600.0));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  fluxqueue::InitLog("bench", fluxqueue::LogLevel::kError, fluxqueue::LogFormat::kText);
  Report report("engines");
  BenchCalls(options, &report);
  BenchShadow(options, &report);
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
