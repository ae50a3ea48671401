#include "tools/fluxqueue/manifest_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Queue(const std::string& name, const std::string& spec) {
  return fmt::format(
      "apiVersion: fluxqueue.io/v1alpha1\nkind: FluxQueue\nmetadata: {{name: "
      "{}}}\nspec:\n{}\n---\n",
      name,
      spec);
}

// "line: text" of each.
std::vector<std::string> Check(const std::string& text) {
  ManifestCheck check;
  EXPECT_TRUE(check.Add("f.yaml", text));
  std::vector<std::string> lines;
  for (const Problem& problem : check.Finish()) {
    EXPECT_EQ(problem.file, "f.yaml");
    lines.push_back(fmt::format("{}: {}", problem.line, problem.text));
  }
  return lines;
}

TEST(ManifestCheckTest, FindsNothingInWhatIsRight) {
  EXPECT_THAT(Check(Queue("a",
                          "  weight: 3\n  maxDuration: 1h\n  limits: {perUser: {cpu: \"4\", "
                          "runningJobs: 2}}") +
                    Queue("b", "  parent: a")),
              ::testing::IsEmpty());
  ManifestCheck other;
  EXPECT_FALSE(other.Add("job.yaml", "kind: Job\n"));
}

TEST(ManifestCheckTest, SaysLineKeyValueAndWhatIsAllowed) {
  struct Case {
    std::string spec;
    std::string problem;
  };
  const Case kCases[] = {
      {"  weight: 0", "5: spec.weight: '0' must be at least 1"},
      {"  pool: default\n  strategy: luck", "6: spec.strategy: 'luck' is not allowed: fcfs, easy"},
      {"  limits:\n    queue: {cpu: -1}", "6: spec.limits.queue.cpu: '-1' must be at least 0"},
      {"  limits:\n    queue:\n      runningJobs: many",
       "7: spec.limits.queue.runningJobs: 'many' must be a number"},
      {"  maxDuration: 1 hour", "5: spec.maxDuration: '1 hour' must look like"},
      {"  maxDuration: 60", "5: spec.maxDuration: '60' must be a text: put it in quotes"},
      {"  wieght: 2", "5: spec.wieght: there is no such key; known: pool, strategy"},
      {"  predictDurations: maybe", "5: spec.predictDurations: 'maybe' must be true or false"},
  };
  for (const Case& one : kCases) {
    EXPECT_THAT(Check(Queue("a", one.spec)), ::testing::ElementsAre(HasSubstr(one.problem)))
        << one.spec;
  }
  EXPECT_THAT(Check("kind: FluxQueue\nspec: {}\n"),
              ::testing::ElementsAre("1: metadata.name is missing"));
}

TEST(ManifestCheckTest, QueuesAreATree) {
  EXPECT_THAT(Check(Queue("a", "  parent: b") + Queue("b", "  weight: 2\n  parent: a")),
              ::testing::ElementsAre(AllOf(HasSubstr("5: FluxQueue a"), HasSubstr("no cycles")),
                                     AllOf(HasSubstr("12: FluxQueue b"), HasSubstr("no cycles"))));
  EXPECT_THAT(Check(Queue("a", "  parent: nobody")),
              ::testing::ElementsAre(HasSubstr("there is no such FluxQueue")));
}

TEST(ManifestCheckTest, ABrokenFileSaysWhere) {
  EXPECT_THAT(Check("kind: FluxQueue\nspec: {a\n"), ::testing::ElementsAre(HasSubstr("3: ")));
}

}  // namespace
}  // namespace fluxqueue::cli
