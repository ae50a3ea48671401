#include "tools/fluxqueue/system_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Case {
  const char* what;
  Facts facts;
  Where where;
  const char* file;
};

TEST(SystemChoiceTest, TheFirstThatHolds) {
  const Case kCases[] = {
      {"nothing is said, nothing is there", {}, Where::kCluster, ""},
      {"tools/up has been here", {.found = "up"}, Where::kFoundFile, "up"},
      {"a left-behind file, and $KUBECONFIG of another cluster",
       {.found = "up", .cluster_variable = true},
       Where::kCluster,
       ""},
      {"$KUBECONFIG is that of tools/up",
       {.found = "up", .cluster_variable = true, .same_cluster = true},
       Where::kFoundFile,
       "up"},
      {"--context of another cluster",
       {.found = "up", .cluster_option = true},
       Where::kCluster,
       ""},
      {"--kubeconfig is that of tools/up",
       {.found = "up", .cluster_option = true, .same_cluster = true},
       Where::kFoundFile,
       "up"},
      {"$FLUXQUEUE_CONFIG before $KUBECONFIG and the file of tools/up",
       {.variable = "named", .found = "up", .cluster_variable = true},
       Where::kNamedFile,
       "named"},
      {"an option before $FLUXQUEUE_CONFIG",
       {.variable = "named", .found = "up", .cluster_option = true},
       Where::kCluster,
       ""},
      {"but not one that names its cluster",
       {.variable = "named", .found = "up", .cluster_option = true, .same_cluster = true},
       Where::kNamedFile,
       "named"},
      {"--config before all",
       {.option = "said",
        .variable = "named",
        .found = "up",
        .cluster_option = true,
        .cluster_variable = true},
       Where::kNamedFile,
       "said"},
  };
  for (const Case& c : kCases) {
    const Choice choice = Choose(c.facts);
    EXPECT_EQ(choice.where, c.where) << c.what;
    EXPECT_EQ(choice.file, c.file) << c.what;
  }
}

TEST(SystemChoiceTest, KubeconfigIsAListOfFiles) {
  EXPECT_THAT(KubeconfigFiles(""), IsEmpty());
  EXPECT_THAT(KubeconfigFiles("/a"), ElementsAre("/a"));
  EXPECT_THAT(KubeconfigFiles(":/a::/b:"), ElementsAre("/a", "/b"));
}

constexpr const char* kTwoContexts = R"(
current-context: home
contexts:
- {name: home, context: {cluster: here, user: me}}
- {name: work, context: {cluster: there, user: me}}
- {name: torn, context: {cluster: gone}}
clusters:
- {name: here, cluster: {server: "https://127.0.0.1:6443/"}}
- {name: there, cluster: {server: "https://prod.example:6443"}}
)";
constexpr const char* kOther =
    R"({"current-context": "work", "clusters": [{"name": "gone", "cluster": {"server": "https://found"}},
        {"name": "here", "cluster": {"server": "https://never"}}]})";

TEST(SystemChoiceTest, TheServerOfAContext) {
  EXPECT_EQ(ServerOf({kTwoContexts}, ""), "https://127.0.0.1:6443");
  EXPECT_EQ(ServerOf({kTwoContexts}, "work"), "https://prod.example:6443");
  EXPECT_EQ(ServerOf({kTwoContexts}, "nobody's"), "");
  EXPECT_EQ(ServerOf({kTwoContexts}, "torn"), "");
}

TEST(SystemChoiceTest, FilesAreMergedAsByKubectl) {
  EXPECT_EQ(ServerOf({kTwoContexts, kOther}, ""), "https://127.0.0.1:6443");
  EXPECT_EQ(ServerOf({kOther, kTwoContexts}, ""), "https://prod.example:6443");
  EXPECT_EQ(ServerOf({kOther, kTwoContexts}, "home"), "https://never");
  EXPECT_EQ(ServerOf({kTwoContexts, kOther}, "torn"), "https://found");
}

TEST(SystemChoiceTest, WhatIsNoKubeconfigHasNoServer) {
  for (const char* text : {"",
                           "[1, 2]",
                           "{",
                           "contexts: 3",
                           "current-context: a\ncontexts: [a]",
                           "current-context: a\ncontexts: [{name: a}]",
                           "current-context: a\ncontexts: [{name: a, context: b}]"}) {
    EXPECT_EQ(ServerOf({text}, ""), "") << text;
    EXPECT_EQ(ServerOf({text, kTwoContexts}, "work"), "https://prod.example:6443") << text;
  }
  EXPECT_EQ(ServerOf({}, ""), "");
}

}  // namespace
}  // namespace fluxqueue::cli
