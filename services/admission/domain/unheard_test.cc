#include "services/admission/domain/unheard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnheardTest : public ::testing::Test {
 protected:
  std::vector<std::string> Look(int64_t handled) {
    return unheard_.Look({.lacks = {{"a", 3}}, .handled = {{3, handled}}},
                         {.said = 7, .acknowledged = acknowledged_, .end = [this](int partition) {
                            EXPECT_EQ(partition, 3);
                            return end_;
                          }});
  }

  Unheard unheard_;
  uint64_t acknowledged_ = 7;
  std::optional<int64_t> end_ = 100;
};

TEST_F(UnheardTest, WhatIsBehindTheReaderAndLackedIsLost) {
  EXPECT_THAT(Look(100), IsEmpty()) << "first sight";
  EXPECT_THAT(Look(100), IsEmpty()) << "the end is asked for after the reader was looked at";
  EXPECT_THAT(Look(99), IsEmpty()) << "the reader is on its way";
  EXPECT_THAT(Look(100), ElementsAre("a"));
}

TEST_F(UnheardTest, WhatIsNotInKafkaYetIsNotLost) {
  acknowledged_ = 6;
  for (int look = 0; look < 5; ++look) EXPECT_THAT(Look(500), IsEmpty());
  acknowledged_ = 7;
  end_.reset();
  for (int look = 0; look < 5; ++look) EXPECT_THAT(Look(500), IsEmpty()) << "Kafka is away";
  end_ = 100;
  EXPECT_THAT(Look(500), IsEmpty());
  EXPECT_THAT(Look(500), ElementsAre("a"));
}

TEST_F(UnheardTest, ALogMadeAnewEndsEarlier) {
  Look(50);
  Look(50);
  end_ = 4;
  EXPECT_THAT(Look(2), IsEmpty());
  EXPECT_THAT(Look(4), ElementsAre("a"));
}

TEST_F(UnheardTest, WhatIsNoLongerLackedIsForgotten) {
  Look(100);
  Look(100);
  EXPECT_THAT(unheard_.Look({}, {}), IsEmpty());
  EXPECT_THAT(Look(100), IsEmpty());
}

TEST_F(UnheardTest, WhatIsLostAgainAndAgainIsNamedEverMoreSeldom) {
  Look(100);
  Look(100);
  size_t named = 0;
  for (int look = 0; look < 64; ++look) named += Look(100).size();
  EXPECT_EQ(named, 7);
}

// One that stays lost does not keep the next page from being looked at.
TEST_F(UnheardTest, PagesAreLookedAtEachByItself) {
  const auto look = [&](const std::string& after, const std::string& uid, bool last) {
    return unheard_.Look(
        {.after = after, .until = last ? "" : uid, .lacks = {{uid, 3}}, .handled = {{3, 100}}},
        {.said = 7, .acknowledged = 7, .end = [](int) { return 100; }});
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(look("", "a", false), IsEmpty());
    EXPECT_THAT(look("a", "b", true), IsEmpty());
  }
  EXPECT_THAT(look("", "a", false), ElementsAre("a"));
  EXPECT_THAT(look("a", "b", true), ElementsAre("b"));
  // The whole has been looked at, and lacks "b" only: "a" is forgotten.
  EXPECT_THAT(look("", "b", true), ElementsAre("b"));
  EXPECT_THAT(look("", "a", false), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::admission
