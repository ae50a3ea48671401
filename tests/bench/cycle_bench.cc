// What a scheduling cycle costs, both cores together: the queue names its candidates, the matcher
// tries them, the queue takes its answer. Nothing is serialised but what the cores keep as rows.
//
// A full cluster of nodes with 32 cores and 4 gpus, and a line of jobs that wait: 1 to 64 slots of
// 1 to 32 cores and 0 to 4 gpus, of which there are 100 kinds (or 5,000), for a minute to two days.
// In each step a job that runs ends, and the cycle that follows is timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/queue_core/queue_core.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/submission.h"
#include "tests/bench/report.h"

namespace fluxqueue::bench {
namespace {

using Clock = std::chrono::steady_clock;
using events::v1::Envelope;

constexpr uint32_t kFewShapes = 100;
constexpr uint32_t kManyShapes = 5000;
constexpr int kWarmUp = 3;
// What is wanted of a large cluster is wanted of this many nodes; of more nothing is.
constexpr int kManyNodes = 10'000;

struct Options {
  int nodes = 1000;
  int steps = 20;
  std::string output = "table";
};

double MillisSince(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

simulation::Machine Cluster(int nodes) {
  std::vector<trace::TraceNode> offers;
  for (int i = 0; i < nodes; ++i) {
    trace::TraceNode& node = offers.emplace_back();
    node.name = fmt::format("node-{}", i);
    node.offers = {{"cpu", 32'000}, {"memory", int64_t{256} << 30}, {"nvidia.com/gpu", 4}};
  }
  return simulation::MachineOfTrace(offers);
}

// A pool that nobody serves: the cores and their log.
class Pool {
 public:
  Pool(const simulation::Machine& machine, const simulation::Setting& setting, uint32_t shapes)
      : submissions_(machine), queue_(std::string(simulation::kPool)), matcher_(queue_.pool()) {
    for (Envelope& message : simulation::Beginning(machine, setting)) Tell(std::move(message));
    for (uint32_t i = 0; i < shapes; ++i) shapes_.push_back(MakeShape(i / kFewShapes));
  }

  void Configure(const simulation::Setting& setting) {
    for (Envelope& message : simulation::Beginning(simulation::Machine(), setting)) {
      if (message.has_queue_configured()) Tell(std::move(message));
    }
  }

  void Submit() {
    trace::TraceJob job = shapes_[random_() % shapes_.size()];
    job.name = fmt::format("job-{}", submitted_++);
    const Millis duration(60'000 * static_cast<int64_t>(1 + random_() % 2880));
    Tell(submissions_.Make(job, duration, now_));
  }
  // The job that has run longest.
  void EndOne() {
    CHECK(!running_.empty());
    now_ += Millis(7'000);
    Envelope message;
    message.set_pool(queue_.pool());
    message.mutable_job_ended()->set_job_id(running_.front());
    message.mutable_job_ended()->set_result(events::v1::JobEnded::RESULT_SUCCEEDED);
    running_.pop_front();
    Tell(std::move(message));
  }

  // Of the job that stands last, in milliseconds.
  double ExplainLast() const {
    const auto begun = Clock::now();
    const auto explanation = queue_.Explain(fmt::format("job-{}", submitted_ - 1));
    CHECK(explanation.has_value() && explanation->position > 0);
    return MillisSince(begun);
  }

  size_t waiting() const { return queue_.size() - running_.size(); }
  // Of the cycles since the last call, in milliseconds.
  std::vector<double> TakeCycles() { return std::exchange(cycles_, {}); }

 private:
  // `more` memory, in MiB, tells many shapes apart.
  trace::TraceJob MakeShape(int64_t more) {
    trace::TraceJob job;
    job.slots = int64_t{1} << (random_() % 7);
    job.requests = {{"cpu", 1000 * (int64_t{1} << (random_() % 6))},
                    {"memory", (int64_t{1} << (30 + random_() % 5)) + (more << 20)}};
    if (random_() % 3 == 0) job.requests["nvidia.com/gpu"] = int64_t{1} << (random_() % 3);
    return job;
  }

  void Tell(Envelope message) {
    log_.push_back(std::move(message));
    while (!log_.empty()) {
      const Envelope next = std::move(log_.front());
      log_.pop_front();
      Read(next);
    }
  }

  void Read(const Envelope& message) {
    const auto begun = Clock::now();
    std::vector<Envelope> answers;
    CHECK(matcher_.Handle(message, now_, &answers).ok());
    const matcher_core::Changes rows = matcher_.TakeChanges();
    matcher_.Commit();
    queue_core::Outputs outputs;
    const absl::Status read = queue_.Handle(message, now_, &outputs);
    CHECK(read.ok(), "{}", Message(read));
    const queue_core::Changes changes = queue_.TakeChanges();
    queue_.Commit();
    const double ms = MillisSince(begun);

    // A cycle is what led to its request, the answer, and what followed from that.
    if (message.has_cycle_requested() || message.has_cycle_answered()) of_cycle_ += ms;
    if (message.has_cycle_answered()) cycles_.push_back(std::exchange(of_cycle_, 0));
    for (Envelope& said : outputs.pool) {
      if (said.has_cycle_requested() && !message.has_cycle_answered()) of_cycle_ += ms;
      log_.push_back(std::move(said));
    }
    for (Envelope& said : answers) log_.push_back(std::move(said));
    for (const Envelope& said : outputs.jobs) {
      if (said.job_fact().state() == events::v1::JOB_STATE_ALLOCATED) {
        running_.push_back(said.job_fact().job_id());
      }
    }
  }

  std::mt19937 random_{7};
  simulation::Submissions submissions_;
  queue_core::QueueCore queue_;
  matcher_core::MatcherCore matcher_;
  std::vector<trace::TraceJob> shapes_;
  std::deque<Envelope> log_;
  std::deque<std::string> running_;
  Millis now_{1'000'000};
  uint64_t submitted_ = 0;
  double of_cycle_ = 0;
  std::vector<double> cycles_;
};

struct Row {
  std::string strategy;
  uint32_t shapes = kFewShapes;
  std::vector<uint32_t> candidates;
  // Of the last one, on few nodes and on many.
  double wanted_ms = 0;
  double wanted_of_many_ms = 0;
  std::string name;
};

Percentiles TimeCycles(const Options& options, const Row& row, uint32_t candidates) {
  const simulation::Machine machine = Cluster(options.nodes);
  // The line is filled first, without a cycle for each that comes into it.
  simulation::Setting setting{.strategy = "fcfs", .queue_depth = 64};
  Pool pool(machine, setting, row.shapes);
  while (pool.waiting() < candidates) pool.Submit();
  setting = {.strategy = row.strategy, .queue_depth = candidates, .reservation_depth = candidates};
  pool.Configure(setting);
  for (int i = 0; i < kWarmUp; ++i) pool.EndOne();
  pool.TakeCycles();
  for (int i = 0; i < options.steps; ++i) {
    pool.EndOne();
    pool.Submit();
  }
  return PercentilesOf(pool.TakeCycles());
}

// b of t = a · nᵇ, from the first figure to the last.
double Exponent(const std::vector<uint32_t>& sizes, const std::vector<double>& times) {
  return std::log(times.back() / times.front()) /
         std::log(static_cast<double>(sizes.back()) / static_cast<double>(sizes.front()));
}

void AddExplain(Report* report) {
  constexpr uint32_t kWaiting = 100'000;
  Pool pool(Cluster(10), {.strategy = "fcfs", .queue_depth = 64}, kFewShapes);
  while (pool.waiting() < kWaiting) pool.Submit();
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) times.push_back(pool.ExplainLast());
  const Percentiles ms = PercentilesOf(times);
  report->Section("why does the last one wait, ms", {"in line", "p50", "p99"});
  report->Row({Number(kWaiting), Number(ms.p50), Number(ms.p99)});
  report->json()["explain"] = {{"waiting", kWaiting}, {"p50_ms", ms.p50}, {"p99_ms", ms.p99}};
  report->Target("explain, 100,000 in line, p99", ms.p99, /*at_least=*/false, 50, "ms");
}

void AddRow(const Options& options, const Row& row, Report* report) {
  std::vector<double> times;
  for (const uint32_t candidates : row.candidates) {
    const Percentiles ms = TimeCycles(options, row, candidates);
    times.push_back(ms.p50);
    const bool grew = times.size() > 1 && times.size() == row.candidates.size();
    report->Row({row.name,
                 fmt::format("{}", candidates),
                 fmt::format("{} ({})", Number(ms.p50), Number(ms.p99)),
                 grew ? fmt::format("n^{:.2f}", Exponent(row.candidates, times)) : ""});
    report->json()[row.name][fmt::format("{}", candidates)] = {{"p50_ms", ms.p50},
                                                               {"p99_ms", ms.p99}};
  }
  if (times.size() > 1) report->json()[row.name]["exponent"] = Exponent(row.candidates, times);
  if (options.nodes > kManyNodes) return;
  report->Target(fmt::format("{}, {} candidates", row.name, row.candidates.back()),
                 times.back(),
                 /*at_least=*/false,
                 options.nodes < kManyNodes ? row.wanted_ms : row.wanted_of_many_ms,
                 "ms");
}

// Pods of one namespace that have rules between each other, by the matcher's core alone.
class RuledPods {
 public:
  explicit RuledPods(const Options& options) {
    for (int i = 0; i < options.nodes; ++i) {
      const std::string name = fmt::format("node-{}", i);
      events::v1::Node node = matcher_core::MakeNode(name, 32'000);
      AddLabel("kubernetes.io/hostname", name, &node);
      AddLabel("zone", fmt::format("zone-{}", i % 10), &node);
      Tell(matcher_core::Upserted(std::move(node)));
    }
    Tell(matcher_core::Synced());
  }

  struct Between {
    std::string rules = {};      // attributes.system.pods
    std::string preferred = {};  // attributes.system.job.pods
  };

  // Milliseconds until all of these have started. Nothing between them: each is a Job's.
  double Start(const std::string& name, int pods, const Between& between) {
    const bool are_of_jobs = between.rules.empty() && between.preferred.empty();
    std::vector<std::string> jobs;
    for (int i = 0; i < pods; ++i) {
      jobs.push_back(fmt::format("{}-{}", name, i));
      const std::string pod =
          fmt::format(R"({{"namespace":"lab","labels":{{"app":"{}"{}}}}})",
                      name,
                      are_of_jobs ? fmt::format(R"(,"job-name":"{}")", jobs.back()) : "");
      Tell(matcher_core::Submitted(
          jobs.back(),
          1,
          matcher_core::OfPods(
              matcher_core::JobspecText(1, 100), pod, between.rules, between.preferred)));
    }
    Envelope cycle = matcher_core::Cycle(++cycles_, jobs);
    // They run on.
    for (auto& candidate : *cycle.mutable_cycle_requested()->mutable_candidates()) {
      candidate.clear_duration_s();
    }
    const auto begun = Clock::now();
    const std::vector<Envelope> said = Tell(cycle);
    const double ms = MillisSince(begun);
    for (const auto& outcome : said.at(0).cycle_answered().outcomes()) {
      CHECK(outcome.kind() == events::v1::Outcome::KIND_ALLOCATED, "{}", outcome.reason());
    }
    return ms;
  }

 private:
  static void AddLabel(const char* key, const std::string& value, events::v1::Node* node) {
    events::v1::Label* label = node->add_labels();
    label->set_key(key);
    label->set_value(value);
  }

  std::vector<Envelope> Tell(const Envelope& message) {
    std::vector<Envelope> said;
    CHECK(core_.Handle(message, Millis(1'000'000), &said).ok());
    core_.Commit();
    return said;
  }

  matcher_core::MatcherCore core_{"default"};
  uint64_t cycles_ = 0;
};

void AddRules(const Options& options, Report* report) {
  constexpr int kRunning = 10'000;
  constexpr int kPods = 1000;
  report->Section(
      fmt::format("{} pods start beside {} jobs of their namespace, ms", kPods, kRunning),
      {"rule between them", "time"});
  const std::string web = R"("pods":{"labels":{"app":"web"}})";
  const auto rule = [&web](const char* kind, const char* key, const char* more) {
    return fmt::format(R"({{"{}":[{{"key":"{}",{}{}}}]}})", kind, key, web, more);
  };
  const char* spread = R"(,"skew":1,"domains":1,"affinity":true,"taints":false)";
  const char* even = R"(,"affinity":true,"taints":false)";
  const std::pair<const char*, RuledPods::Between> rules[] = {
      {"none", {}},
      {"apart by node", {.rules = rule("apart", "kubernetes.io/hostname", "")}},
      {"spread by zone", {.rules = rule("spread", "zone", spread)}},
      {"beside by zone", {.rules = rule("beside", "zone", "")}},
      {"rather apart by node",
       {.preferred = rule("near", "kubernetes.io/hostname", R"(,"weight":-100)")}},
      {"rather spread by zone", {.preferred = rule("even", "zone", even)}}};
  for (const auto& [name, between] : rules) {
    RuledPods pods(options);
    pods.Start("batch", kRunning, {});
    const double ms = pods.Start("web", kPods, between);
    report->Row({name, Number(ms)});
    report->json()["rules"][name] = ms;
  }
}

Report Run(const Options& options) {
  Report report("cycle");
  report.Section(fmt::format("a cycle, {} nodes: p50 (p99), ms", options.nodes),
                 {"strategy", "candidates", "time", "growth"});
  const std::vector<Row> rows = {
      {"easy", kFewShapes, {1000, 3000, 10'000}, 50, 60, "easy"},
      {"easy", kManyShapes, {10'000}, 300, 300, "easy, 5,000 shapes"},
      {"conservative", kFewShapes, {100, 300, 1000}, 500, 700, "conservative"}};
  for (const Row& row : rows) AddRow(options, row, &report);
  AddExplain(&report);
  AddRules(options, &report);
  return report;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue;
  using namespace fluxqueue::bench;
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  Options options;
  CLI::App app("What a scheduling cycle costs.");
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1, 100'000));
  app.add_option("--steps", options.steps)->check(CLI::Range(1, 10'000));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  const Report report = Run(options);
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
