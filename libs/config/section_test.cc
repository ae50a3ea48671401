#include "libs/config/section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Sample {
  std::string name = "default";
  std::string token;
  std::string policy = "first";
  bool fast = false;
  uint16_t port = 1;
  double share = 0.5;
  Millis wait{1s};
  int64_t limit = 1024;
  std::vector<std::string> levels = {"zone"};
  int low = 1;
  int high = 2;
};

Section Describe(Sample* sample) {
  return Section()
      .Text("name", &sample->name)
      .Choice("policy", &sample->policy, {"first", "lonode"})
      .Bool("fast", &sample->fast)
      .Int("port", &sample->port, 0, 65535)
      .Double("share", &sample->share, 0, 1)
      .Duration("wait", &sample->wait, 100ms, 5min)
      .Size("limit", &sample->limit, 0, 1 << 20)
      .List("levels", &sample->levels)
      .Nested("range",
              Section()
                  .Int("low", &sample->low, 0, 100)
                  .Int("high", &sample->high, 0, 100)
                  .Rule([sample]() -> absl::Status {
                    if (sample->low <= sample->high) return absl::OkStatus();
                    return InvalidArgument(
                        "low ({}) must not be above high ({})", sample->low, sample->high);
                  }));
}

std::string Problems(const std::string& text) {
  Sample sample;
  return Message(Read("f.yaml", text, Describe(&sample)));
}

TEST(SectionTest, FillsEveryKindOfField) {
  Sample sample;
  const absl::Status status = Read("f.yaml",
                                   R"(
name: "x y"
policy: lonode
fast: true
port: 8080
share: 0.25
wait: 3s
limit: 64KiB
levels: [zone, rack]
range:
  low: 5
  high: 7
)",
                                   Describe(&sample));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(sample.name, "x y");
  EXPECT_EQ(sample.policy, "lonode");
  EXPECT_TRUE(sample.fast);
  EXPECT_EQ(sample.port, 8080);
  EXPECT_EQ(sample.share, 0.25);
  EXPECT_EQ(sample.wait, 3s);
  EXPECT_EQ(sample.limit, 65536);
  EXPECT_THAT(sample.levels, ElementsAre("zone", "rack"));
  EXPECT_EQ(sample.low, 5);
  EXPECT_EQ(sample.high, 7);
}

TEST(SectionTest, KeepsDefaultsOfWhatIsAbsent) {
  for (const char* text : {"", "{}", "range:\n", "# nothing\n"}) {
    Sample sample;
    ASSERT_TRUE(Read("f.yaml", text, Describe(&sample)).ok()) << text;
    EXPECT_EQ(sample.name, "default");
    EXPECT_EQ(sample.wait, 1s);
    EXPECT_THAT(sample.levels, ElementsAre("zone"));
  }
}

struct BadCase {
  const char* text;
  const char* problem;
};

class BadValueTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadValueTest, NamesFileLineKeyValueAndWhatIsAllowed) {
  EXPECT_EQ(Problems(GetParam().text), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    BadValueTest,
    ::testing::Values(
        BadCase{
            "name: a\nport: 70000",
            "f.yaml:2: port: \"70000\" is not allowed; allowed: a whole number from 0 to 65535"},
        BadCase{"port: 80x",
                "f.yaml:1: port: \"80x\" is not allowed; allowed: a whole number from 0 to 65535"},
        BadCase{"policy: best",
                "f.yaml:1: policy: \"best\" is not allowed; allowed: first, lonode"},
        BadCase{"fast: yes", "f.yaml:1: fast: \"yes\" is not allowed; allowed: true, false"},
        BadCase{"share: nan",
                "f.yaml:1: share: \"nan\" is not allowed; allowed: a number from 0 to 1"},
        BadCase{
            "wait: 3",
            "f.yaml:1: wait: \"3\" is not allowed; allowed: a duration from 100ms to 5m, such as "
            "250ms or 1h30m"},
        BadCase{"limit: 2MiB",
                "f.yaml:1: limit: \"2MiB\" is not allowed; allowed: a size from 0 to 1MiB, such as "
                "64KiB or 3MiB"},
        BadCase{"levels: zone", "f.yaml:1: levels: is not a list of texts, such as [a, b]"},
        BadCase{"levels: [[a]]", "f.yaml:1: levels: is not a list of texts, such as [a, b]"},
        BadCase{"name: [a]", "f.yaml:1: name: is a list; allowed: a text"},
        BadCase{"name:", "f.yaml:1: name: is nothing; allowed: a text"},
        BadCase{"range: 3",
                "f.yaml:1: range: is a single value; allowed: a section with the keys "
                "low, high"},
        BadCase{"range:\n  low: 3\n  mid: 4",
                "f.yaml:3: range.mid: unknown key; known here: low, high"},
        BadCase{"name: a\nname: b", "f.yaml:2: name: stands here twice; keep one of the two"},
        BadCase{"range: {low: 9, high: 3}", "f.yaml:1: range: low (9) must not be above high (3)"},
        BadCase{"- a",
                "f.yaml:1: the file: is a list; allowed: a section with the keys name, policy, "
                "fast, port, share, wait, limit, levels, range"}));

TEST(SectionTest, TakesValuesFromTheEnvironment) {
  ::setenv("SECTION_TEST_IP", "10.0.0.7", 1);
  Sample sample;
  ASSERT_TRUE(Read("x.yaml",
                   "name: \"${SECTION_TEST_IP}:9200, $5, ${SECTION_TEST_IP}\"\n"
                   "levels: [\"a-${SECTION_TEST_IP}\", b]\n",
                   Describe(&sample))
                  .ok());
  EXPECT_EQ(sample.name, "10.0.0.7:9200, $5, 10.0.0.7");
  EXPECT_THAT(sample.levels, ElementsAre("a-10.0.0.7", "b"));
  EXPECT_THAT(Problems("name: ${SECTION_TEST_NOTHING}"), HasSubstr("${SECTION_TEST_NOTHING}"));
}

TEST(SectionTest, ListsAllProblemsAtOnce) {
  const std::string problems = Problems("port: x\nfats: true\nrange: {low: 200}");
  EXPECT_THAT(problems, HasSubstr("f.yaml:2: fats: unknown key"));
  EXPECT_THAT(problems, HasSubstr("f.yaml:1: port: \"x\""));
  EXPECT_THAT(problems, HasSubstr("f.yaml:3: range.low: \"200\""));
}

TEST(SectionTest, RulesWaitForReadableFields) {
  EXPECT_THAT(Problems("range: {low: 9, high: x}"), ::testing::Not(HasSubstr("must not be above")));
}

TEST(SectionTest, RequiredMeansThereAndNotEmpty) {
  std::string dsn;
  const Section root = Section().Nested("db", Section().Text("dsn", &dsn, Presence::kRequired));
  EXPECT_EQ(Message(Read("f", "", root)),
            "f: db.dsn: is missing; it needs a text that is not empty");
  EXPECT_THAT(Message(Read("f", "db: {dsn: ''}", root)), HasSubstr("f:1: db.dsn: \"\""));
  EXPECT_TRUE(Read("f", "db: {dsn: x}", root).ok());
}

TEST(SectionTest, BadYamlNamesTheLine) {
  EXPECT_THAT(Problems("name: a\nlevels: [a"), HasSubstr("f.yaml:"));
  EXPECT_THAT(Problems("name: a\nlevels: [a"), HasSubstr("is not YAML"));
  EXPECT_THAT(Problems("name: a\n---\nname: b"), HasSubstr("several documents"));
}

TEST(SectionTest, MissingFileIsNotFound) {
  Sample sample;
  const absl::Status status = ReadFile("/nonexistent/f.yaml", Describe(&sample));
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status),
              HasSubstr("/nonexistent/f.yaml: cannot read the configuration: No such"));
}

}  // namespace
}  // namespace fluxqueue::config
