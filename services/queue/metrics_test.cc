#include "services/queue/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::queue {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(QueueMetricsTest, FiguresAreInBaseUnits) {
  metrics::Registry registry;
  QueueMetrics metrics(registry);
  queue_core::QueueFigures figures;
  figures.waiting = {{"Busy", 2}};
  figures.oldest_ms = {{model::JobState::kPending, 1'500}};
  figures.held.Add("cpu", 2'500);
  figures.held.Add("memory", 1 << 20);
  figures.held.Add("nvidia.com/gpu", 3);
  metrics.Figures("p", {{"q", figures}});
  const std::string text = registry.Text();
  const auto has = [&text](const std::string& line) { EXPECT_THAT(text, HasSubstr(line + "\n")); };
  has(R"(fluxqueue_jobs_waiting{pool="p",queue="q",reason="Busy"} 2)");
  has(R"(fluxqueue_oldest_job_timestamp_seconds{pool="p",queue="q",state="Pending"} 1.5)");
  has(R"(fluxqueue_queue_allocated{pool="p",queue="q",resource="cpu"} 2.5)");
  has(R"(fluxqueue_queue_allocated{pool="p",queue="q",resource="memory"} 1048576)");
  has(R"(fluxqueue_queue_allocated{pool="p",queue="q",resource="gpu"} 3)");
  has(R"(fluxqueue_wait_seconds_count{queue="q"} 0)");
}

TEST(QueueMetricsTest, WhatIsNotNamedAnyMoreIsZeroInItsPoolOnly) {
  metrics::Registry registry;
  QueueMetrics metrics(registry);
  metrics.Jobs("p", {{{"q", model::JobState::kPending}, 3}});
  metrics.Jobs("other", {{{"q", model::JobState::kPending}, 4}});
  metrics.Jobs("p", {{{"q", model::JobState::kRunning}, 1}});
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr(R"(fluxqueue_jobs{pool="p",queue="q",state="Pending"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(fluxqueue_jobs{pool="p",queue="q",state="Running"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(fluxqueue_jobs{pool="other",queue="q",state="Pending"} 4)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(pool="other",queue="q",state="Running")")));
  metrics.Dropped("other");
  EXPECT_THAT(registry.Text(),
              HasSubstr(R"(fluxqueue_jobs{pool="other",queue="q",state="Pending"} 0)"));
}

}  // namespace
}  // namespace fluxqueue::queue
