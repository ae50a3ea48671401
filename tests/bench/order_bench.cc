// How long the order of a cycle takes (libs/scheduling/fair_share.h): one pass that names every job
// that waits, by fair share, in a tree of queues; and how that grows with jobs and with users.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/scheduling/fair_share.h"

namespace fluxqueue::bench {
namespace {

using scheduling::JobOrder;
using scheduling::OrderKey;
using scheduling::Owner;
using scheduling::Pass;
using scheduling::PassOptions;
using scheduling::QueueSpec;
using scheduling::QueueTree;
using scheduling::Resources;
using scheduling::WaitingJob;

constexpr int64_t kNow = 1'700'000'000'000;
constexpr int kQueues = 10;  // below two others

struct World {
  QueueTree tree;
  std::deque<Resources> amounts;
  std::deque<WaitingJob> jobs;
};

void Fill(int jobs, int users, World* world) {
  for (int i = 0; i < kQueues + 2; ++i) {
    QueueSpec spec;
    spec.order = JobOrder::kFairShare;
    spec.half_life_ms = int64_t{7} * 24 * 3'600'000;
    spec.weight = 1 + i % 3;
    if (i >= 2) spec.parent = fmt::format("q{}", i % 2);
    spec.limits[2].running_jobs = 1'000'000;
    spec.limits[2].Limit("cpu", int64_t{1} << 40);
    world->tree.Configure(fmt::format("q{}", i), spec, kNow);
  }
  for (int i = 0; i < 16; ++i) {
    Resources& asked = world->amounts.emplace_back();
    asked.Add("cpu", 1000 * (1 + i % 7));
    asked.Add("memory", (int64_t{1} << 30) * (1 + i % 5));
    asked.Add("nvidia.com/gpu", i % 4);
    asked.Add("pods", 1);
  }
  for (int i = 0; i < jobs; ++i) {
    const int user = i * 7919 % users;
    Owner* owner = world->tree.OwnerOf(
        fmt::format("q{}", 2 + user % kQueues), fmt::format("user-{}", user), "team");
    WaitingJob& job = world->jobs.emplace_back();
    job.amounts = &world->amounts[static_cast<size_t>(i) % world->amounts.size()];
    job.line_key = {i % 5, static_cast<uint64_t>(i) + 1};
    world->tree.Wait(owner, job.line_key, &job);
    if (i % 10 == 0) world->tree.Hold(owner, *job.amounts, kNow + i);
  }
}

// Of this thread: others on the machine do not count.
double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// The median of some passes, in milliseconds.
double Measure(int jobs, int users) {
  World world;
  Fill(jobs, users, &world);
  std::vector<double> times;
  for (int round = 0; round < 15; ++round) {
    const double begin = CpuMilliseconds();
    PassOptions options{.now_ms = kNow + 3'600'000 + round, .beginning_ms = kNow, .capacity = {}};
    Pass pass(&world.tree, options);
    int named = 0;
    while (pass.Next() != nullptr) ++named;
    const double took = CpuMilliseconds() - begin;
    if (named != jobs) std::abort();
    times.push_back(took);
  }
  std::nth_element(times.begin(), times.begin() + 7, times.end());
  return times[7];
}

double Exponent(double from, double to, double factor) {
  return std::log(to / from) / std::log(factor);
}

int Run(int argc, char** argv) {
  CLI::App app("The order of a cycle, by fair share.");
  std::string output = "table";
  app.add_option("-o,--output", output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  nlohmann::json rows = nlohmann::json::array();
  const auto measure = [&](int jobs, int users) {
    const double ms = Measure(jobs, users);
    rows.push_back({{"jobs", jobs}, {"users", users}, {"milliseconds", ms}});
    if (output == "table") fmt::print("{:>8} jobs {:>6} users {:>9.2f} ms\n", jobs, users, ms);
    return ms;
  };
  if (output == "table") fmt::print("one pass that names all, in {} queues below 2:\n", kQueues);
  const double few = measure(1'000, 1'000);
  const double some = measure(10'000, 1'000);
  const double many = measure(100'000, 1'000);
  const double lonely = measure(10'000, 10);
  const double crowd = measure(10'000, 10'000);
  const double by_jobs = Exponent(few, many, 100);
  const double by_users = Exponent(lonely, crowd, 1000);
  if (output == "json") {
    fmt::print("{}\n",
               nlohmann::json({{"passes", rows},
                               {"exponent_jobs", by_jobs},
                               {"exponent_users", by_users},
                               {"target_ms", 5},
                               {"target_met", some < 5}})
                   .dump(2));
    return 0;
  }
  fmt::print(
      "grows with jobs^{:.2f} and users^{:.2f}; 10,000 jobs of 1,000 users: {:.2f} ms of 5\n",
      by_jobs,
      by_users,
      some);
  return 0;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  return fluxqueue::bench::Run(argc, argv);
}
