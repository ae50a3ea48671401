#include "tests/simulation/driver.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/log.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/options.h"
#include "tests/simulation/shrink.h"

namespace fluxqueue::simulation {
namespace {

constexpr size_t kFailuresTold = 5;
constexpr size_t kLinesTold = 200;
// With this many seeds all is reached that is to be reached.
constexpr uint64_t kMany = 1000;
// One seed in a hundred runs twice: it must be the same run.
constexpr uint64_t kTwiceOneIn = 100;

class Driver {
 public:
  Driver(const Subject& subject, Options options, std::string program)
      : subject_(subject), options_(std::move(options)), program_(std::move(program)) {}

  int Run();
  int RunMutations();

 private:
  // Of the faults that are left of a plan.
  using Numbers = std::optional<std::vector<size_t>>;

  Trial TrialOf(uint64_t seed) const;
  void RunSeed(uint64_t seed);
  void Fail(uint64_t seed, const std::string& error);
  std::string Replay(uint64_t seed, const Numbers& faults) const;
  void TellSmallest(uint64_t seed) const;
  void TellCounts() const;
  bool ReachesAll() const;

  const Subject& subject_;
  const Options options_;
  const std::string program_;  // as it was called
  uint64_t seeds_ = 0;
  uint64_t failed_ = 0;
  std::optional<uint64_t> first_failed_;
  Counts counts_;
  uint64_t hash_ = kHashBegin;
};

Trial Driver::TrialOf(uint64_t seed) const {
  Trial trial{seed, subject_.plan(seed), options_.without, {}};
  const auto go_back = [&trial, seed](Fault::Kind kind) {
    Chance chance(~seed);
    Fault fault{.kind = kind};
    fault.at = Millis(chance.Between(5'000, 60'000));
    fault.commits = static_cast<size_t>(chance.Between(1, 30));
    trial.faults.push_back(fault);
  };
  if (options_.commits_lost) go_back(Fault::Kind::kCommitsLost);
  if (options_.cluster_back) go_back(Fault::Kind::kClusterBack);
  if (options_.faults.has_value()) trial = Only(trial, *options_.faults);
  if (options_.story) trial.tell = [](const std::string& line) { fmt::print("{}\n", line); };
  return trial;
}

void Driver::RunSeed(uint64_t seed) {
  ++seeds_;
  const Trial trial = TrialOf(seed);
  Outcome outcome = subject_.run(trial);
  if (seed % kTwiceOneIn == 0 && outcome.error.empty() &&
      subject_.run(trial).hash != outcome.hash) {
    outcome.error = "it is another run the second time";
  }
  hash_ = HashOf(hash_, outcome.hash);
  for (const auto& [name, count] : outcome.counts) counts_[name] += count;
  if (!outcome.error.empty()) Fail(seed, outcome.error);
}

std::string Driver::Replay(uint64_t seed, const Numbers& faults) const {
  std::string command = fmt::format("{} --seeds {}", program_, seed);
  if (options_.without != Without::kNothing) {
    command += fmt::format(" --without {}", Name(options_.without));
  }
  if (options_.commits_lost) command += " --commits-lost";
  if (options_.cluster_back) command += " --cluster-back";
  if (faults.has_value()) {
    command +=
        faults->empty() ? " --no-faults" : fmt::format(" --faults {}", fmt::join(*faults, ","));
  }
  return command + " --story";
}

void Driver::Fail(uint64_t seed, const std::string& error) {
  if (!first_failed_.has_value()) first_failed_ = seed;
  if (++failed_ > kFailuresTold) return;
  fmt::print("seed {}: {}\n  {}\n", seed, error, Replay(seed, options_.faults));
}

void Driver::TellSmallest(uint64_t seed) const {
  Trial trial = TrialOf(seed);
  trial.tell = {};
  const std::vector<size_t> faults = Shrink(subject_, trial);
  Trial smallest = Only(trial, faults);
  std::deque<std::string> story;
  smallest.tell = [&story](const std::string& line) {
    story.push_back(line);
    if (story.size() > kLinesTold) story.pop_front();
  };
  const Outcome outcome = subject_.run(smallest);
  fmt::print("\nseed {} with {} of its {} faults: {}\n",
             seed,
             faults.size(),
             trial.faults.size(),
             outcome.error);
  for (const size_t fault : faults) {
    fmt::print("  {}: {}\n", fault, Describe(trial.faults[fault], subject_.places));
  }
  fmt::print("  {}\n\nThe end of its story:\n", Replay(seed, faults));
  for (const std::string& line : story) fmt::print("{}\n", line);
  fmt::print("\n");
}

void Driver::TellCounts() const {
  for (const auto& [name, count] : counts_) fmt::print("  {:<28} {}\n", name, count);
}

bool Driver::ReachesAll() const {
  const bool whole = options_.without == Without::kNothing && !options_.faults.has_value();
  if (!whole || seeds_ < kMany) return true;
  bool all = true;
  for (const std::string& name : subject_.reached) {
    const auto count = counts_.find(name);
    if (count != counts_.end() && count->second > 0) continue;
    fmt::print("no seed reaches: {}\n", name);
    all = false;
  }
  return all;
}

int Driver::Run() {
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t seed = options_.from; seed <= options_.to; ++seed) {
    if (seed % options_.shares == options_.share) RunSeed(seed);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (first_failed_.has_value() && !options_.story && !options_.faults.has_value()) {
    TellSmallest(*first_failed_);
  }
  TellCounts();
  const bool reached = ReachesAll();
  fmt::print("{}: {} seeds, {} failed, {:.1f} seeds/s, hash {:016x}\n",
             subject_.program,
             seeds_,
             failed_,
             static_cast<double>(seeds_) / took.count(),
             hash_);
  return failed_ == 0 && reached ? 0 : 1;
}

int Driver::RunMutations() {
  int exit = 0;
  fmt::print("{:<12} seeds that fail of {}, and how the first does\n",
             "safety",
             options_.to - options_.from + 1);
  for (const Without without : subject_.safeties) {
    uint64_t failed = 0;
    std::string first;
    for (uint64_t seed = options_.from; seed <= options_.to; ++seed) {
      Trial trial = TrialOf(seed);
      trial.without = without;
      const Outcome outcome = subject_.run(trial);
      if (outcome.error.empty()) continue;
      if (failed++ == 0) first = fmt::format("seed {}: {}", seed, outcome.error);
    }
    fmt::print("{:<12} {:>4}  {}\n", Name(without), failed, first.substr(0, 120));
    if (failed == 0) exit = 1;
  }
  return exit;
}

}  // namespace

int Main(const Subject& subject, int argc, char** argv) {
  InitLog("simulation", LogLevel::kError, LogFormat::kText);
  int exit = 0;
  const std::optional<Options> options = ParseOptions(subject, argc, argv, &exit);
  if (!options.has_value()) return exit;
  Driver driver(subject, *options, argv[0]);
  return options->mutations ? driver.RunMutations() : driver.Run();
}

}  // namespace fluxqueue::simulation
