#include "tools/fluxqueue/terminal.h"

#include <gtest/gtest.h>

#include "tools/fluxqueue/watch.h"

namespace fluxqueue::cli {
namespace {

TEST(TerminalTest, ClipsCharactersAndKeepsEscapes) {
  EXPECT_EQ(Clip("abcdef", 3), "abc");
  EXPECT_EQ(Clip("\033[32m█▅▁x\033[0m", 2), "\033[32m█▅\033[0m");
  EXPECT_EQ(Clip("ab", 3), "ab");
}

TEST(TerminalTest, RedrawsLineByLineAndCutsWhatDoesNotFit) {
  EXPECT_EQ(Redraw("a\nlong\n", {.columns = 3, .rows = 4}), "\033[Ha\033[K\r\nlon\033[K\r\n\033[J");
  EXPECT_EQ(Redraw("a\nb\nc\n", {.columns = 3, .rows = 2}), "\033[Ha\033[K\r\nb\033[K\033[J");
}

TEST(WatchTest, OnlyLinesThatAreNewOrHaveChanged) {
  EXPECT_EQ(NewLines("", "HEAD\na 1\n"), "HEAD\na 1\n");
  EXPECT_EQ(NewLines("HEAD\na 1\nb 1\n", "HEAD\na 2\nb 1\nb 1\n"), "a 2\nb 1\n");
}

}  // namespace
}  // namespace fluxqueue::cli
