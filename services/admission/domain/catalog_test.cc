#include "services/admission/domain/catalog.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
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
  restarted.Restore(rows.pools, rows.queues);
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
  catalog.Restore(rows.pools, rows.queues);
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
  queues["f"].parent = "f";
  queues["f"].weight = 0;
  Catalog catalog(Config(), 12);
  const Said said = Reconcile(catalog, queues);
  EXPECT_THAT(
      said.warnings,
      testing::ElementsAre(
          "FluxQueue b: spec.parent: 'c': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none",
          "FluxQueue c: spec.parent: 'b': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none",
          "FluxQueue d: spec.parent: 'nowhere': there is no such FluxQueue: make it, or name "
          "another. Until then the queue has none",
          "FluxQueue e: spec.parent: 'a': it is in pool 'default', and this one in pool 'gpus'; "
          "allowed: one of its own pool. Until then the queue has none",
          "FluxQueue f: spec.weight: 0 is below 1 and counts as 1; allowed: 1 to 1000",
          "FluxQueue f: spec.parent: 'f': it is this queue or below it, and a tree has no cycles; "
          "allowed: one that is not. Until then the queue has none"));
  for (const Envelope& message : said.messages) {
    EXPECT_TRUE(message.has_pool_configured() || message.queue_configured().weight() >= 1);
  }
}

TEST(CatalogTest, ARollbackForgets) {
  const auto queues = Queues({{"default", ""}});
  Catalog catalog(Config(), 12);
  EXPECT_THAT(Reconcile(catalog, queues).messages, SizeIs(2));
  catalog.Rollback();
  EXPECT_EQ(catalog.PoolOf("default"), nullptr);
  EXPECT_THAT(Reconcile(catalog, queues).messages, SizeIs(2));
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
