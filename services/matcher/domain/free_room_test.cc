#include "services/matcher/domain/free_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::matcher {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

graph::NodeUsage Node(uint32_t slots, int64_t free_cpu) {
  return {.name = "n",
          .schedulable = true,
          .slots = slots,
          .resources = {{.resource = "cpu", .total = 8'000, .free = free_cpu},
                        {.resource = "nvidia.com/gpu", .total = 4, .free = 0}}};
}

TEST(FragmentationTest, IsThePartOfWhatIsFreeOnNodesInUse) {
  EXPECT_THAT(FragmentationOf({Node(0, 6'000), Node(1, 2'000)}),
              ElementsAre(Pair("cpu", 0.25), Pair("nvidia.com/gpu", 0)));
  EXPECT_THAT(FragmentationOf({Node(0, 8'000)}),
              ElementsAre(Pair("cpu", 0), Pair("nvidia.com/gpu", 0)));
}

}  // namespace
}  // namespace fluxqueue::matcher
