// First come, first served on traces of the literature, against what an independent program gives.
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libs/simulation/run.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::simulation {
namespace {

struct Case {
  const char* file;
  int64_t processors;
  double arrival_scale;
  double bounded_slowdown;
  double wait_p99_s;
  double utilisation;
};

class TracesTest : public testing::TestWithParam<Case> {};

TEST_P(TracesTest, Fcfs) {
  const Case& c = GetParam();
  const std::string path = fmt::format("{}/../shared/traces/{}", FLUXQUEUE_SOURCE_DIR, c.file);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto text = load::ReadTraceFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  auto trace = trace::ParseSwf(*text, {path});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Machine machine = MachineOfProcessors(c.processors);
  const auto workload = MakeWorkload(*std::move(trace), machine, TooWide::kRefuse, path);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto run = RunSetting(
      *workload, machine, {.arrival_scale = c.arrival_scale, .queue_depth = 100}, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  const Figures& all = run->summary.all;
  EXPECT_EQ(all.jobs, workload->jobs.size());
  EXPECT_EQ(all.backfilled, 0);
  EXPECT_NEAR(all.bounded_slowdown.mean, c.bounded_slowdown, 0.02 * c.bounded_slowdown);
  EXPECT_NEAR(all.wait_s.p99, c.wait_p99_s, 0.02 * c.wait_p99_s);
  EXPECT_NEAR(run->summary.utilisation, c.utilisation, 0.02 * c.utilisation);
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    TracesTest,
    testing::Values(Case{"lublin_256.swf.gz", 256, 1, 66'502, 4'711'693, 0.655},
                    Case{"NASA-iPSC-1993-3.1-cln.swf.gz", 128, 0.6, 3'801, 352'761, 0.773}));

}  // namespace
}  // namespace fluxqueue::simulation
