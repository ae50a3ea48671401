#include "libs/model/accounting_month.h"

#include <gtest/gtest.h>

namespace fluxqueue::model {
namespace {

using std::chrono::months;
using std::chrono::year;

constexpr int64_t kDecember = 1'796'083'200'000;  // 2026-12-01T00:00:00Z

TEST(AccountingMonthTest, AMonthBeginsAtMidnightInUtc) {
  EXPECT_EQ(MonthOf(kDecember), year(2026) / 12);
  EXPECT_EQ(MonthOf(kDecember - 1), year(2026) / 11);
  EXPECT_EQ(MonthOf(0), year(1970) / 1);
  EXPECT_EQ(BeginOf(year(2026) / 12), kDecember);
  EXPECT_EQ(BeginOf(year(2026) / 12 + months(1)) - kDecember, int64_t{31} * 86'400'000);
}

TEST(AccountingMonthTest, NamesOfMonthsAndPartitions) {
  EXPECT_EQ(NameOf(year(2026) / 3), "2026-03");
  EXPECT_EQ(PartitionOf(year(2026) / 3), "attempts_2026_03");
  EXPECT_EQ(MonthOfPartition("attempts_2026_03"), year(2026) / 3);
  for (const char* other : {"attempts",
                            "attempts_2026_13",
                            "attempts_2026_00",
                            "attempts_2026-03",
                            "attempts_2026_3",
                            "attempts_2026_0x",
                            "attempts_2026_031",
                            "endings__2026_03"}) {
    EXPECT_EQ(MonthOfPartition(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace fluxqueue::model
