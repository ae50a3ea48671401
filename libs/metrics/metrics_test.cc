#include "libs/metrics/metrics.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/mailbox.h"
#include "libs/metrics/mailbox_metrics.h"
#include "libs/metrics/process_metrics.h"

namespace fluxqueue::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, WritesTheTextFormat) {
  Registry registry;
  Counter jobs = registry.MakeCounter("jobs_total", "Jobs seen.", {{"kind", "Job"}});
  Gauge depth = registry.MakeGauge("depth", "Jobs waiting.");
  jobs.Add();
  jobs.Add(2);
  depth.Set(7);
  depth.Add(-2);
  EXPECT_EQ(registry.Text(),
            "# HELP depth Jobs waiting.\n"
            "# TYPE depth gauge\n"
            "depth 5\n"
            "# HELP jobs_total Jobs seen.\n"
            "# TYPE jobs_total counter\n"
            "jobs_total{kind=\"Job\"} 3\n");
}

TEST(MetricsTest, LatencyBucketsReachFromHalfAMillisecondToHalfAMinute) {
  Registry registry;
  Latency latency = registry.MakeLatency("bind_seconds", "From allocation to binding.");
  latency.Observe(2ms);
  latency.Observe(60ms);
  latency.Observe(std::chrono::minutes(1));
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("bind_seconds_bucket{le=\"0.0005\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("bind_seconds_bucket{le=\"0.0025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("bind_seconds_bucket{le=\"0.06\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("bind_seconds_bucket{le=\"30\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("bind_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("bind_seconds_count 3\n"));
}

TEST(MetricsTest, HistogramTakesItsOwnBounds) {
  Registry registry;
  Histogram batch = registry.MakeHistogram("batch", "Messages in a batch.", {1, 10, 100});
  batch.Observe(50);
  EXPECT_THAT(registry.Text(),
              HasSubstr("batch_bucket{le=\"10\"} 0\nbatch_bucket{le=\"100\"} 1\n"));
}

TEST(MetricsTest, FamilyKeepsOneValueForEachCombinationOfLabels) {
  Registry registry;
  CounterFamily calls = registry.MakeCounters("calls_total", "API calls.", {"verb"});
  calls.With({{"verb", "get"}}).Add();
  calls.With({{"verb", "get"}}).Add();
  calls.With({{"verb", "list"}}).Add();
  EXPECT_EQ(calls.With({{"verb", "get"}}).Value(), 2);
  EXPECT_THAT(registry.Text(), HasSubstr("calls_total{verb=\"list\"} 1\n"));
}

TEST(MetricsTest, DescribesWhatHasNoValueYet) {
  Registry registry;
  registry.MakeLatencies("wait_seconds", "Waited.", {"queue"}, {1, 60});
  registry.MakeCounter("calls_total", "Calls.", {{"verb", "get"}});
  registry.GaugesFrom("lag", "Behind.", {"partition"}, [] { return std::vector<Sample>(); });
  EXPECT_THAT(registry.Describe(),
              ElementsAre(Description{"calls_total", "counter", "Calls.", {"verb"}},
                          Description{"lag", "gauge", "Behind.", {"partition"}},
                          Description{"wait_seconds", "histogram", "Waited.", {"queue"}}));
}

TEST(MetricsTest, LatenciesTakeTheirOwnBounds) {
  Registry registry;
  LatencyFamily waits = registry.MakeLatencies("wait_seconds", "Waited.", {"queue"}, {1, 60});
  waits.With({{"queue", "short"}}).Observe(30s);
  EXPECT_THAT(registry.Text(), HasSubstr("wait_seconds_bucket{queue=\"short\",le=\"60\"} 1\n"));
}

TEST(MetricsTest, TheSameMetricTwiceIsOne) {
  Registry registry;
  registry.MakeCounter("n_total", "N.").Add();
  registry.MakeCounter("n_total", "N.").Add();
  EXPECT_THAT(registry.Text(), HasSubstr("n_total 2\n"));
}

TEST(MetricsTest, SourcesAreReadAtEachScrape) {
  Registry registry;
  int lag = 3;
  registry.GaugesFrom("lag", "Records behind.", {"partition"}, [&lag] {
    return std::vector<Sample>{{{{"partition", "0"}}, static_cast<double>(lag)}};
  });
  registry.CountersFrom("reads_total", "Reads.", {}, [] { return std::vector<Sample>{{{}, 9}}; });
  EXPECT_THAT(registry.Text(), HasSubstr("lag{partition=\"0\"} 3\n"));
  lag = 4;
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("lag{partition=\"0\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reads_total counter\nreads_total 9\n"));
}

TEST(MetricsTest, MailboxesSayWhatWaitsAndHowOftenTheyWereFull) {
  Registry registry;
  Mailbox<int> mailbox("calls", 1);
  ExportMailboxes(registry, "binder", {Watch("calls", mailbox)});
  EXPECT_TRUE(mailbox.TryPost(1, 1));
  EXPECT_FALSE(mailbox.TryPost(2, 1));
  EXPECT_THAT(registry.Text(),
              HasSubstr("fluxqueue_mailbox_items{component=\"binder\",mailbox=\"calls\"} 1\n"));
  EXPECT_THAT(
      registry.Text(),
      HasSubstr("fluxqueue_mailbox_full_total{component=\"binder\",mailbox=\"calls\"} 1\n"));
}

TEST(MetricsTest, HandlesMayBeUsedFromManyThreads) {
  Registry registry;
  Counter counter = registry.MakeCounter("n_total", "N.");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([counter]() mutable {
        for (int n = 0; n < 10'000; ++n) counter.Add();
      });
    }
  }
  EXPECT_EQ(counter.Value(), 40'000);
}

TEST(MetricsDeathTest, ANameHasOneType) {
  Registry registry;
  registry.MakeCounter("n_total", "N.");
  EXPECT_DEATH(registry.MakeGauge("n_total", "N."), "metric n_total is a counter already");
  EXPECT_DEATH(registry.MakeGauge("a-b", "N."), "metric name a-b");
}

TEST(ProcessMetricsTest, ReadsThisProcess) {
  const ProcessUsage usage = ReadProcessUsage();
  EXPECT_GT(usage.resident_bytes, 1 << 20);
  EXPECT_GT(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GE(usage.open_fds, 3);
  EXPECT_GT(usage.max_fds, usage.open_fds);
  EXPECT_GE(usage.threads, 1);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LE(usage.start_time_seconds, now + 1);
  EXPECT_GT(usage.start_time_seconds, now - 3600);
}

TEST(ProcessMetricsTest, SeesMemoryThatIsTaken) {
  Registry registry;
  ExportProcessMetrics(registry);
  EXPECT_THAT(registry.Text(), HasSubstr("# TYPE process_resident_memory_bytes gauge\n"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("process_resident_memory_bytes 0\n")));
  const int64_t before = ReadProcessUsage().resident_bytes;
  const std::vector<char> taken(64 << 20, 'x');
  EXPECT_GT(ReadProcessUsage().resident_bytes, before + (60 << 20)) << taken.back();
}

}  // namespace
}  // namespace fluxqueue::metrics
