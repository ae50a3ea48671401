#include "services/matcher/adapters/pool_handler.h"

#include <gtest/gtest.h>

namespace fluxqueue::matcher {
namespace {

class PoolHandlerTest : public ::testing::Test {
 protected:
  // What is said where a request for this cycle of this pool is buried.
  delivery::Outbox Bury(const std::string& pool, uint64_t cycle_id) {
    delivery::Record record;
    record.partition = 3;
    record.envelope.set_pool(pool);
    record.envelope.mutable_cycle_requested()->set_cycle_id(cycle_id);
    delivery::Outbox outbox;
    handler_.Buried(record, outbox);
    return outbox;
  }

  metrics::Registry registry_;
  MatcherMetrics metrics_{registry_};
  tracing::Tracer tracer_{{}, registry_};
  RealClock clock_;
  PoolHandler handler_{{}, metrics_, clock_, tracer_};
};

TEST_F(PoolHandlerTest, ACycleThatIsBuriedIsAbandoned) {
  const delivery::Outbox outbox = Bury("main", 7);
  ASSERT_EQ(outbox.size(), 1);
  EXPECT_EQ(outbox.messages()[0].partition, 3);
  const events::v1::Envelope& said = outbox.messages()[0].envelope;
  EXPECT_EQ(said.pool(), "main");
  EXPECT_EQ(said.command_accepted().asked_by(), "the matcher");
  EXPECT_EQ(said.command_accepted().abandon_cycle().cycle_id(), 7);
}

TEST_F(PoolHandlerTest, WhatNamesNoCycleAbandonsNone) {
  EXPECT_TRUE(Bury("", 7).empty());
  EXPECT_TRUE(Bury("main", 0).empty());
}

}  // namespace
}  // namespace fluxqueue::matcher
