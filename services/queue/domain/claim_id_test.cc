#include "services/queue/domain/claim_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::queue {
namespace {

TEST(ClaimIdTest, TheSamePairIsTheSameClaim) {
  const std::string id = ClaimId("default", "match-1");
  EXPECT_THAT(id,
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-.*"));
  EXPECT_EQ(ClaimId("default", "match-1"), id);
  EXPECT_NE(ClaimId("default", "match-2"), id);
  EXPECT_NE(ClaimId("other", "match-1"), id);
  // Written down once: an upgrade that changed it would make a repeated call another claim.
  EXPECT_EQ(id, "00a46be1-0b7b-5158-baf3-b8b04c8b0476");
}

}  // namespace
}  // namespace fluxqueue::queue
