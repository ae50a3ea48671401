#include "services/admission/domain/catalog.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/model/rules.h"

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

events::v1::PoolConfigured Config(const char* policy = "first") {
  events::v1::PoolConfigured config;
  config.set_policy(policy);
  return config;
}

ClusterFacts::ByName<kubernetes::FluxQueue> Queues(
    const std::vector<std::pair<std::string, std::string>>& pools) {
  ClusterFacts::ByName<kubernetes::FluxQueue> queues;
  for (const auto& [name, pool] : pools) {
    queues[name].meta.name = name;
    queues[name].pool = pool;
  }
  return queues;
}

struct Said {
  std::vector<Envelope> messages;
  std::vector<std::string> warnings;
};

Said Reconcile(Catalog& catalog, const ClusterFacts::ByName<kubernetes::FluxQueue>& queues) {
  Said said;
  catalog.Reconcile(queues, &said.messages, &said.warnings);
  return said;
}

TEST(CatalogTest, ConfiguresPoolsBeforeTheirQueues) {
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, Queues({{"default", ""}, {"gpu", "gpus"}, {"big", ""}}));
  ASSERT_THAT(said.messages, SizeIs(5));
  EXPECT_TRUE(said.messages[0].has_pool_configured());
  EXPECT_EQ(said.messages[0].pool(), "default");
  EXPECT_EQ(said.messages[1].queue_configured().queue(), "big");
  EXPECT_EQ(said.messages[2].queue_configured().queue(), "default");
  EXPECT_EQ(said.messages[2].queue_configured().strategy(), "fcfs");
  EXPECT_GT(said.messages[2].queue_configured().queue_depth(), 0);
  EXPECT_EQ(said.messages[3].pool(), "gpus");
  EXPECT_NE(catalog.PartitionOf("default"), catalog.PartitionOf("gpus"));
  EXPECT_EQ(*catalog.PoolOf("big"), "default");
  EXPECT_EQ(catalog.PoolOf("small"), nullptr);
}

TEST(CatalogTest, SaysTheAccountOfAQueue) {
  auto queues = Queues({{"lab", ""}});
  kubernetes::FluxQueue& lab = queues["lab"];
  lab.user_weights = {{"ann", 3}};
  lab.most_per_job = {{"gpu", 8}};
  lab.budgets = {{.resource = "gpu", .hours = 100, .period = "quarter", .when_spent = "warn"},
                 {.resource = "cpu", .hours = 5}};
  lab.default_qos = "gold";
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, queues);
  const events::v1::QueueConfigured& config = said.messages[1].queue_configured();
  EXPECT_EQ(config.user_weights(0).user(), "ann");
  EXPECT_EQ(config.user_weights(0).weight(), 3);
  EXPECT_EQ(config.most_per_job(0).amount(), 8);
  ASSERT_EQ(config.budgets_size(), 2);
  EXPECT_EQ(config.budgets(0).period(), events::v1::Budget::PERIOD_QUARTER);
  EXPECT_FALSE(config.budgets(0).holds());
  EXPECT_EQ(config.budgets(1).period(), events::v1::Budget::PERIOD_MONTH);
  EXPECT_TRUE(config.budgets(1).holds());
  ASSERT_THAT(said.warnings, SizeIs(1));
  EXPECT_THAT(said.warnings[0], HasSubstr("FluxQueue lab: spec.defaultQos: 'gold': neither"));
}

TEST(CatalogTest, SaysThePeriodOfABudget) {
  auto queues = Queues({{"lab", ""}});
  for (const char* name : {"day", "week", "month", "quarter", "year"}) {
    queues["lab"].budgets.push_back({.resource = "cpu", .hours = 1, .period = name});
  }
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, queues);
  std::vector<int> periods;
  for (const auto& budget : said.messages[1].queue_configured().budgets()) {
    periods.push_back(budget.period());
  }
  using Budget = events::v1::Budget;
  EXPECT_THAT(periods,
              ElementsAre(Budget::PERIOD_DAY,
                          Budget::PERIOD_WEEK,
                          Budget::PERIOD_MONTH,
                          Budget::PERIOD_QUARTER,
                          Budget::PERIOD_YEAR));
}

TEST(CatalogTest, SaysNothingTwice) {
  const auto queues = Queues({{"default", ""}, {"gpu", "gpus"}});
  Catalog catalog(Config(), 12);
  Reconcile(catalog, queues);
  const CatalogChanges rows = catalog.Changes();
  EXPECT_THAT(rows.pools, SizeIs(2));
  EXPECT_THAT(rows.queues, SizeIs(2));
  catalog.Commit();
  EXPECT_THAT(catalog.Changes().pools, IsEmpty());
  EXPECT_THAT(Reconcile(catalog, queues).messages, IsEmpty());
  Catalog restarted(Config(), 12);
  restarted.Restore(rows.pools, rows.queues, rows.windows);
  EXPECT_THAT(Reconcile(restarted, queues).messages, IsEmpty());
  EXPECT_EQ(restarted.PartitionOf("gpus"), catalog.PartitionOf("gpus"));
}

TEST(CatalogTest, SaysWhatChanged) {
  auto queues = Queues({{"default", ""}, {"night", ""}});
  Catalog catalog(Config(), 12);
  Reconcile(catalog, queues);
  catalog.Commit();
  queues["default"].priority = 7;
  queues.erase("night");
  const Said said = Reconcile(catalog, queues);
  ASSERT_THAT(said.messages, SizeIs(2));
  EXPECT_EQ(said.messages[0].queue_configured().priority(), 7);
  EXPECT_EQ(said.messages[1].queue_configured().queue(), "night");
  EXPECT_TRUE(said.messages[1].queue_configured().deleted());
  EXPECT_THAT(catalog.Changes().deleted_queues, SizeIs(1));
  EXPECT_EQ(catalog.PoolOf("night"), nullptr);
}

TEST(CatalogTest, ANewConfigurationIsSaidToEveryPool) {
  const auto queues = Queues({{"default", ""}, {"gpu", "gpus"}});
  Catalog old(Config(), 12);
  Reconcile(old, queues);
  const CatalogChanges rows = old.Changes();
  Catalog catalog(Config("lonode"), 12);
  catalog.Restore(rows.pools, rows.queues, rows.windows);
  const Said said = Reconcile(catalog, queues);
  ASSERT_THAT(said.messages, SizeIs(2));
  EXPECT_EQ(said.messages[0].pool_configured().policy(), "lonode");
  EXPECT_EQ(said.messages[1].pool(), "gpus");
}

TEST(CatalogTest, AQueueKeepsItsPool) {
  Catalog catalog(Config(), 12);
  Reconcile(catalog, Queues({{"default", ""}}));
  const Said said = Reconcile(catalog, Queues({{"default", "gpus"}}));
  EXPECT_THAT(said.messages, IsEmpty());
  ASSERT_THAT(said.warnings, SizeIs(1));
  EXPECT_THAT(said.warnings[0], HasSubstr("'gpus'"));
  EXPECT_EQ(*catalog.PoolOf("default"), "default");
}

TEST(CatalogTest, SaysWhatAQueueSaysOfOrderAndLimits) {
  auto queues = Queues({{"all", ""}, {"research", ""}});
  kubernetes::FluxQueue& queue = queues["research"];
  queue.parent = "all";
  queue.order = "fair-share";
  queue.aging_ms = 1000;
  queue.predict_durations = true;
  queue.preempts_to_reclaim = true;
  queue.preemption_grace_ms = 30'000;
  queue.guarantee = {{"cpu", 8000}};
  queue.limits.amounts = {{"gpu", 8}};
  queue.namespace_limits.queued_jobs = 100;
  queue.user_limits.running_jobs = 4;
  queue.user_limits.gpu_hours = 2;
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, queues);
  EXPECT_THAT(said.warnings, IsEmpty());
  ASSERT_THAT(said.messages, SizeIs(3));
  EXPECT_FALSE(said.messages[1].queue_configured().has_limits());
  EXPECT_FALSE(said.messages[1].queue_configured().has_preemption());
  const auto& config = said.messages[2].queue_configured();
  EXPECT_EQ(config.parent(), "all");
  EXPECT_EQ(config.order(), "fair-share");
  EXPECT_EQ(config.aging_ms(), 1000);
  EXPECT_EQ(config.half_life_ms(), 604'800'000);
  EXPECT_TRUE(config.predict_durations());
  EXPECT_TRUE(config.preemption().reclaim());
  EXPECT_FALSE(config.preemption().by_priority());
  EXPECT_EQ(config.preemption().grace_ms(), 30'000);
  EXPECT_EQ(config.guarantee(0).amount(), 8000);
  EXPECT_EQ(config.limits().amounts(0).resource(), "gpu");
  EXPECT_EQ(config.namespace_limits().queued_jobs(), 100U);
  EXPECT_EQ(config.user_limits().running_jobs(), 4U);
  EXPECT_EQ(config.user_limits().gpu_seconds(), 7200);
}

TEST(CatalogTest, BadQueuesAreNamedWithWhatIsAllowed) {
  auto queues = Queues({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", "gpus"}, {"f", ""}});
  queues["a"].parent = "b";
  queues["b"].parent = "c";
  queues["c"].parent = "b";
  queues["d"].parent = "nowhere";
  queues["e"].parent = "a";
  queues["d"].enforce_duration = "end";
  queues["e"].default_qos = "gold";
  queues["f"].parent = "f";
  queues["f"].weight = 0;
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, queues);
  EXPECT_THAT(
      said.warnings,
      testing::ElementsAre(
          "FluxQueue b: spec.parent: 'c': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none, and takes "
          "no jobs unless it says whom",
          "FluxQueue c: spec.parent: 'b': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none, and takes "
          "no jobs unless it says whom",
          "FluxQueue d: spec.enforceDuration: 'end' beside spec.maxDuration: '0', which is without "
          "limit; allowed: a maxDuration above 0. Until then jobs that declare no duration are "
          "never ended",
          "FluxQueue d: spec.parent: 'nowhere': there is no such FluxQueue: make it, or name "
          "another. Until then the queue has none, and takes "
          "no jobs unless it says whom",
          "FluxQueue e: spec.defaultQos: 'gold': neither this queue nor one above it has such a "
          "class in spec.qos; allowed: one that is there. Until then jobs that name no class have "
          "no ceiling",
          "FluxQueue e: spec.parent: 'a': it is in pool 'default', and this one in pool 'gpus'; "
          "allowed: one of its own pool. Until then the queue has none, and takes "
          "no jobs unless it says whom",
          "FluxQueue f: spec.weight: 0 is below 1 and counts as 1; allowed: 1 to 1000",
          "FluxQueue f: spec.parent: 'f': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none, and takes "
          "no jobs unless it says whom"));
  for (const Envelope& message : said.messages) {
    EXPECT_TRUE(message.has_pool_configured() || message.queue_configured().weight() >= 1);
  }
  // What is wrong with one keeps no other from being said.
  EXPECT_EQ(std::count_if(said.messages.begin(),
                          said.messages.end(),
                          [](const Envelope& message) { return message.has_queue_configured(); }),
            6);
}

using Windows = ClusterFacts::ByName<kubernetes::FluxWindow>;

// From 1000 s to 2000 s.
kubernetes::FluxWindow Window(const std::string& name) {
  kubernetes::FluxWindow window;
  window.meta.name = name;
  window.start_ms = 1'000'000;
  window.end_ms = 2'000'000;
  return window;
}

Said ReconcileWindows(Catalog& catalog, const Windows& windows) {
  Said said;
  catalog.ReconcileWindows(windows, &said.messages, &said.warnings);
  return said;
}

TEST(CatalogTest, SaysWhatAWindowSays) {
  Catalog catalog(Config(), 12);
  Reconcile(catalog, Queues({{"default", ""}, {"gpu", "gpus"}}));
  Windows windows = {{"a", Window("a")}, {"b", Window("b")}};
  windows["b"].pool = "gpus";
  windows["b"].end_ms = 0;
  windows["b"].duration_ms = 5000;
  windows["b"].nodes = {"n1", "n0"};
  windows["b"].node_selector = {{"row", "2"}, {"kind", ""}};
  windows["b"].namespaces = {"course"};
  const Said said = ReconcileWindows(catalog, windows);
  EXPECT_THAT(said.warnings, IsEmpty());
  ASSERT_THAT(said.messages, SizeIs(2));
  EXPECT_EQ(said.messages[0].pool(), "default");
  EXPECT_EQ(said.messages[0].window_configured().ShortDebugString(),
            "window: \"a\" start_ms: 1000000 end_ms: 2000000");
  EXPECT_EQ(said.messages[1].pool(), "gpus");
  EXPECT_EQ(said.messages[1].window_configured().ShortDebugString(),
            "window: \"b\" start_ms: 1000000 end_ms: 1005000 nodes: \"n1\" nodes: \"n0\" "
            "labels { key: \"kind\" } labels { key: \"row\" value: \"2\" } "
            "namespaces: \"course\"");
  // Nothing twice, also after a restart.
  EXPECT_THAT(ReconcileWindows(catalog, windows).messages, IsEmpty());
  const CatalogChanges rows = catalog.Changes();
  EXPECT_THAT(rows.windows, SizeIs(2));
  EXPECT_FALSE(rows.empty());
  Catalog restarted(Config(), 12);
  restarted.Restore(rows.pools, rows.queues, rows.windows);
  EXPECT_THAT(ReconcileWindows(restarted, windows).messages, IsEmpty());
}

TEST(CatalogTest, WindowsChangeMoveAndGo) {
  Catalog catalog(Config(), 12);
  Reconcile(catalog, Queues({{"default", ""}, {"gpu", "gpus"}}));
  Windows windows = {{"a", Window("a")}, {"b", Window("b")}, {"c", Window("c")}};
  ReconcileWindows(catalog, windows);
  catalog.Commit();
  EXPECT_TRUE(catalog.Changes().empty());
  windows["a"].end_ms = 3'000'000;
  windows["b"].pool = "gpus";
  windows.erase("c");
  const Said said = ReconcileWindows(catalog, windows);
  ASSERT_THAT(said.messages, SizeIs(4));
  EXPECT_EQ(said.messages[0].pool(), "default");
  EXPECT_EQ(said.messages[0].window_configured().ShortDebugString(), "window: \"b\" deleted: true");
  EXPECT_EQ(said.messages[1].window_configured().ShortDebugString(), "window: \"c\" deleted: true");
  EXPECT_EQ(said.messages[2].window_configured().end_ms(), 3'000'000);
  EXPECT_EQ(said.messages[3].pool(), "gpus");
  EXPECT_EQ(said.messages[3].window_configured().window(), "b");
  const CatalogChanges changes = catalog.Changes();
  EXPECT_THAT(changes.windows, SizeIs(2));
  EXPECT_EQ(changes.deleted_windows, std::vector<std::string>{"c"});
  catalog.Rollback();
  EXPECT_THAT(ReconcileWindows(catalog, windows).messages, SizeIs(4));
}

TEST(CatalogTest, BadWindowsAreNamedWithWhatIsAllowed) {
  Catalog catalog(Config(), 12);
  Windows windows = {{"good", Window("good")}};
  EXPECT_THAT(ReconcileWindows(catalog, windows).warnings,
              testing::ElementsAre(
                  "FluxWindow good: spec.pool: 'default': no FluxQueue is in that pool; allowed: "
                  "none yet. Until then it keeps no node"));
  Reconcile(catalog, Queues({{"default", ""}, {"gpu", "gpus"}}));
  EXPECT_THAT(ReconcileWindows(catalog, windows).messages, SizeIs(1));
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) windows[name] = Window(name);
  windows["a"].end_ms = 0;
  windows["b"].duration_ms = 1000;
  windows["c"].end_ms = 1'000'000;
  windows["d"].end_ms = 0;
  windows["d"].duration_ms = 0;
  windows["e"].end_ms = 0;
  windows["e"].duration_ms = INT64_MAX;
  windows["f"].pool = "nowhere";
  // One that was good is taken back.
  windows["good"].end_ms = 5;
  const Said said = ReconcileWindows(catalog, windows);
  EXPECT_THAT(
      said.warnings,
      testing::ElementsAre(
          "FluxWindow a: spec.end: it is missing; allowed: spec.end, or spec.duration. Until then "
          "it keeps no node",
          "FluxWindow b: spec.end: '1970-01-01T00:33:20.000Z' beside spec.duration; allowed: one "
          "of the two. Until then it keeps no node",
          "FluxWindow c: spec.end: '1970-01-01T00:16:40.000Z', and spec.start is "
          "'1970-01-01T00:16:40.000Z'; allowed: an end after the start, in the years 1970 to 9999. "
          "Until then it keeps no node",
          "FluxWindow d: spec.duration: '0ms', and spec.start is '1970-01-01T00:16:40.000Z'; "
          "allowed: an end after the start, in the years 1970 to 9999. Until then it keeps no node",
          HasSubstr("FluxWindow e: spec.duration: '9223372036854775807ms'"),
          "FluxWindow f: spec.pool: 'nowhere': no FluxQueue is in that pool; allowed: default, "
          "gpus. Until then it keeps no node",
          HasSubstr("FluxWindow good: spec.end: '1970-01-01T00:00:00.005Z'")));
  ASSERT_THAT(said.messages, SizeIs(1));
  EXPECT_TRUE(said.messages[0].window_configured().deleted());
}

TEST(CatalogTest, ARollbackForgets) {
  const auto queues = Queues({{"default", ""}});
  Catalog catalog(Config(), 12);
  EXPECT_THAT(Reconcile(catalog, queues).messages, SizeIs(2));
  catalog.Rollback();
  EXPECT_EQ(catalog.PoolOf("default"), nullptr);
  EXPECT_THAT(Reconcile(catalog, queues).messages, SizeIs(2));
}

TEST(CatalogTest, WhatHoldsIsSaidAgain) {
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, Queues({{"default", ""}, {"gpu", "gpus"}}));
  std::vector<Envelope> again;
  catalog.SayAgain(&again);
  const auto texts = [](const std::vector<Envelope>& messages) {
    std::vector<std::string> result;
    for (const Envelope& message : messages) result.push_back(message.SerializeAsString());
    return result;
  };
  EXPECT_THAT(texts(again), ::testing::UnorderedElementsAreArray(texts(said.messages)));
  EXPECT_TRUE(catalog.Changes().windows.empty());
}

TEST(CatalogTest, ByEarlierRulesNothingIsSaidAgain) {
  events::v1::PoolConfigured config = Config();
  config.set_rules(model::kAsksForTheLost - 1);
  Catalog catalog(config, 12);
  Reconcile(catalog, Queues({{"default", ""}}));
  std::vector<Envelope> again;
  catalog.SayAgain(&again);
  EXPECT_TRUE(again.empty());
}

TEST(CatalogTest, SpreadsPoolsOverPartitions) {
  Catalog catalog(Config(), 2);
  Reconcile(catalog, Queues({{"a", "p1"}, {"b", "p2"}, {"c", "p3"}}));
  EXPECT_EQ(catalog.PartitionOf("p1"), 0);
  EXPECT_EQ(catalog.PartitionOf("p2"), 1);
  EXPECT_EQ(catalog.PartitionOf("p3"), 0);
}

}  // namespace
}  // namespace fluxqueue::admission
