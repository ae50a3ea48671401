#include "libs/base/boxed.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace fluxqueue {
namespace {

TEST(BoxedTest, IsUnsetUntilItIsGivenAValue) {
  Boxed<std::string> text;
  EXPECT_FALSE(text);
  EXPECT_FALSE(text.has_value());
  text = std::string("a");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "a");
  EXPECT_EQ(text->size(), 1U);
  text.emplace() += "b";
  EXPECT_EQ(*text, "b");
  text.reset();
  EXPECT_FALSE(text);
}

TEST(BoxedTest, ACopyIsOfItsOwn) {
  Boxed<std::string> first(std::string("a"));
  Boxed<std::string> second = first;
  *second = "b";
  EXPECT_EQ(*first, "a");
  first = second;
  *second = "c";
  EXPECT_EQ(*first, "b");
  first = *&first;
  EXPECT_EQ(*first, "b");
  const Boxed<std::string> unset;
  first = unset;
  EXPECT_FALSE(first);
}

TEST(BoxedTest, MovedFromIsUnset) {
  Boxed<std::string> first(std::string("a"));
  const std::string* value = &*first;
  Boxed<std::string> second = std::exchange(first, {});
  EXPECT_FALSE(first);
  EXPECT_EQ(&*second, value);
}

TEST(BoxedTest, AnUnsetOneIsAsLargeAsAPointer) {
  struct Large {
    char bytes[640];
  };
  EXPECT_EQ(sizeof(Boxed<Large>), sizeof(void*));
}

}  // namespace
}  // namespace fluxqueue
