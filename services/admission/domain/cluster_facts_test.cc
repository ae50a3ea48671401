#include "services/admission/domain/cluster_facts.h"

#include <gtest/gtest.h>

namespace fluxqueue::admission {
namespace {

kubernetes::LimitRange Range(const char* space, const char* name, int64_t cpu) {
  kubernetes::LimitRange range;
  range.meta.namespace_name = space;
  range.meta.name = name;
  range.default_requests = {{"cpu", cpu}};
  return range;
}

TEST(ClusterFactsTest, ContextsFollowRangesAndClasses) {
  ClusterFacts facts;
  facts.Upsert(Range("a", "r", 100));
  facts.Upsert(kubernetes::PriorityClass{"urgent", 7, false});
  facts.Upsert(kubernetes::RuntimeClass{"vm", {{"memory", 64}}});
  EXPECT_EQ(facts.ContextOf("a").default_requests.at("cpu"), 100);
  EXPECT_EQ(facts.ContextOf("a").priorities.at("urgent"), 7);
  EXPECT_EQ(facts.ContextOf("b").runtime_classes.at("vm").overhead.at("memory"), 64);
  EXPECT_TRUE(facts.ContextOf("b").default_requests.empty());

  facts.Upsert(Range("a", "r", 200));
  facts.RemovePriorityClass("urgent");
  facts.RemoveRuntimeClass("vm");
  EXPECT_EQ(facts.ContextOf("a").default_requests.at("cpu"), 200);
  EXPECT_TRUE(facts.ContextOf("a").priorities.empty());
  EXPECT_TRUE(facts.ContextOf("a").runtime_classes.empty());
  facts.RemoveLimitRange("a", "r");
  facts.RemoveLimitRange("a", "r");
  EXPECT_TRUE(facts.ContextOf("a").default_requests.empty());
}

TEST(ClusterFactsTest, NamespacesAndQueuesComeAndGo) {
  ClusterFacts facts;
  facts.Upsert(kubernetes::Namespace{"a", {{"k", "v"}}});
  ASSERT_NE(facts.FindNamespace("a"), nullptr);
  facts.RemoveNamespace("a");
  EXPECT_EQ(facts.FindNamespace("a"), nullptr);
  const uint64_t before = facts.catalog_version();
  kubernetes::FluxQueue queue;
  queue.meta.name = "q";
  facts.Upsert(queue);
  EXPECT_NE(facts.FindQueue("q"), nullptr);
  EXPECT_GT(facts.catalog_version(), before);
  const uint64_t with = facts.catalog_version();
  facts.RemoveQueue("unknown");
  EXPECT_EQ(facts.catalog_version(), with);
  facts.RemoveQueue("q");
  EXPECT_GT(facts.catalog_version(), with);
}

TEST(ClusterFactsTest, APartHasWhatConcernsItsNamespace) {
  ClusterFacts facts;
  for (const char* space : {"a", "b"}) facts.Upsert(kubernetes::Namespace{space, {}});
  kubernetes::FluxQueue queue;
  queue.meta.name = "q";
  facts.Upsert(queue);
  kubernetes::PriorityClass high;
  high.name = "high";
  facts.Upsert(high);
  kubernetes::LimitRange range;
  range.meta.name = "limits";
  range.meta.namespace_name = "a";
  range.default_requests = {{"cpu", 500}};
  facts.Upsert(range);
  facts.SetUsage({{{"a", "q"}, {.jobs = 1}}, {{"b", "q"}, {.jobs = 2}}});

  const ClusterFacts part = facts.For("a");
  EXPECT_NE(part.FindNamespace("a"), nullptr);
  EXPECT_EQ(part.FindNamespace("b"), nullptr);
  EXPECT_NE(part.FindQueue("q"), nullptr);
  EXPECT_TRUE(part.ContextOf("a").priorities.contains("high"));
  EXPECT_NE(&part.ContextOf("a"), &part.ContextOf("b"));
  EXPECT_EQ(part.usage(), (UsageBySpace{{{"a", "q"}, {.jobs = 1}}}));
}

}  // namespace
}  // namespace fluxqueue::admission
