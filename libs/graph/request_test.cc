#include "libs/graph/request.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/alternatives.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A jobspec around its resources and its attributes.
std::string Text(const std::string& resources, const std::string& attributes = "{}") {
  return "version: 1\nresources: " + resources +
         "\ntasks: [{command: [app], slot: a, count: {per_slot: 1}}]\nattributes: " + attributes;
}

std::string Nested(int levels) {
  std::string text;
  std::string end;
  for (int i = 0; i < levels; ++i) {
    text += "[{type: x, count: 1, with: ";
    end += "}]";
  }
  return text + "[]" + end;
}

TEST(JobRequest, IsATree) {
  const auto request = ParseJobRequest(Text(R"(
  - type: node
    count: {min: 1, max: 8, operator: "*", operand: 2}
    exclusive: true
    with: [{type: slot, count: 2, label: a, with: [{type: core, count: 4}, {type: memory, count: 1, unit: GB}]}]
)",
                                            R"({system: {duration: 3600.5, queue: debug}})"));
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->resources.size(), 1u);
  const ResourceRequest& node = request->resources.front();
  EXPECT_EQ(node.exclusivity, Exclusivity::kExclusive);
  EXPECT_EQ(node.count.Best(7), 4u);
  ASSERT_EQ(node.with.size(), 1u);
  EXPECT_TRUE(node.with[0].is_slot());
  EXPECT_EQ(node.with[0].with[1].unit, "GB");
  EXPECT_EQ(request->duration_s, 3600);
  EXPECT_EQ(request->queue, "debug");
  EXPECT_FALSE(request->constrained);
  EXPECT_THAT(request->task_slots, ElementsAre("a"));
}

TEST(JobRequest, JsonIsYaml) {
  const auto request = ParseJobRequest(
      R"({"version": 1, "resources": [{"type": "slot", "label": "a", "count": 1, "with": [
          {"type": "core", "count": 1}]}], "tasks": [], "attributes": {"system": {"duration": 0,
          "constraints": {"and": [{"properties": ["ssd"]}, {"ranks": ["0-3", "7"]}]}}}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->constrained);
  EXPECT_EQ(request->constraint.ToString(), "(ssd and ranks(0-3,7))");
}

TEST(JobRequest, CountsAsFluxionDoes) {
  const auto best = [](uint32_t min, uint32_t max, char op, uint32_t operand, uint32_t available) {
    return CountRange{min, max, op, operand}.Best(available);
  };
  EXPECT_EQ(best(2, 2, '+', 1, 1), 0u);
  EXPECT_EQ(best(2, 2, '+', 1, 9), 2u);
  EXPECT_EQ(best(1, 10, '+', 3, 9), 7u);
  EXPECT_EQ(best(1, 10, '+', 3, 100), 10u);
  EXPECT_EQ(best(3, 100, '*', 2, 50), 48u);
  EXPECT_EQ(best(3, 100, '*', 1, 50), 3u);
  EXPECT_EQ(best(2, 1000, '^', 2, 300), 256u);  // 2, 4, 16, 256
  EXPECT_EQ(best(1, 1000, '^', 2, 300), 1u);
  EXPECT_EQ(best(2, UINT32_MAX, '*', 2, UINT32_MAX), 1u << 31);
  EXPECT_EQ(best(3, UINT32_MAX, '^', 7, UINT32_MAX), 2187u);
  EXPECT_EQ(best(5, 4, '+', 1, 10), 0u);
}

struct BadCase {
  std::string text;
  std::string error;
};

TEST(JobRequest, RefusesAndNamesThePlace) {
  const std::string slot = "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]";
  const BadCase cases[] = {
      {"", "is empty"},
      {"a: [", "line 1"},
      {"\xff", "is no UTF-8 (byte 0)"},
      {"a: \xed\xa0\x80", "is no UTF-8 (byte 3)"},
      {"a: \xe0\x80\x80", "is no UTF-8 (byte 3)"},
      {"a: \xf4\x90\x80\x80", "is no UTF-8 (byte 3)"},
      {std::string("a\0b", 3), "has a control character (byte 1)"},
      {"a: \xe2\x82", "is no UTF-8"},
      {"[]", "the jobspec: must be a mapping, is array"},
      {"version: 1\nversion: 1", "the key \"version\" stands twice"},
      {"? [a]\n: 1", "a key must be a single value"},
      {"version: 2\nresources: []\ntasks: []\nattributes: {}", "version: must be 1, is 2"},
      {"version: 1\ntasks: []\nattributes: {}", "resources: is missing"},
      {Text(slot) + "\nx: 1", "x: unknown key"},
      {Text("[]"), "resources: must be a list of at least one resource"},
      {Text("[{count: 1}]"), "resources[0].type: is missing"},
      {Text("[{type: node}]"), "resources[0].count: is missing"},
      {Text("[{type: node, count: 0}]"), "resources[0].count: must be an integer from 1"},
      {Text("[{type: node, count: -1}]"), "is -1"},
      {Text("[{type: node, count: 9223372036854775808}]"),
       "resources[0].count: must be an integer from 1 to 1152921504606846976, is "
       "9223372036854775808"},
      {Text("[{type: node, count: 1.5}]"), "is 1.5"},
      {Text("[{type: node, count: {min: 2, max: 1, operator: +, operand: 1}}]"),
       "resources[0].count.max: must be at least min (2), is 1"},
      {Text("[{type: node, count: {min: 1, max: 2, operator: /, operand: 1}}]"), "operator"},
      {Text("[{type: node, count: {min: 1, max: 2, operator: +, operand: 0}}]"), "operand"},
      {Text("[{type: node, count: {min: 1, max: 2, operator: +}}]"), "operand: is missing"},
      {Text("[{type: slot, count: 1}]"), "resources[0].label: is missing"},
      {Text("[{type: node, count: 1, exclusive: maybe}]"), "exclusive: must be true or false"},
      {Text("[{type: node, count: 1, colour: red}]"), "resources[0].colour: unknown key"},
      {Text(Nested(1000)), "jobspec: line 2, column 418: is nested deeper than 32 levels"},
      {"version: 1\x04 and more", "has a control character (byte 10)"},
      {"a: \"\\N\"", "jobspec: line 1, column 4: has an escape sequence that makes no UTF-8"},
      {Text("&a [{type: x, count: 1, with: *a}]"), "an alias stands inside what it names"},
      {Text(slot, "{system: {duration: -1}}"), "duration: must be seconds"},
      {Text(slot, "{system: {duration: 1e300}}"), "duration: must be seconds"},
      {Text(slot, "{colour: red}"), "attributes.colour: unknown key"},
      {Text(slot, "{system: {constraints: {properties: [ssd]}}}"), "must be in quotes: \"ssd\""},
      {Text(slot, "{system: {constraints: {ranks: [3-1]}}}"), "runs backwards"},
      {Text(slot, "{system: {constraints: {ranks: [1-]}}}"), "is no number"},
      {std::string(kMaxRequestBytes + 1, ' '), "at most 1048576"},
  };
  for (const BadCase& bad : cases) {
    const auto request = ParseJobRequest(bad.text);
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << bad.text.substr(0, 200);
    EXPECT_THAT(Message(request.status()), HasSubstr(bad.error)) << bad.text.substr(0, 200);
  }
}

// As JSON's writers make it of what lies beyond 16 bits.
TEST(JobRequest, JsonMayHaveCharactersInTwoHalves) {
  const auto request = ParseJobRequest(
      R"({"version": 1, "resources": [{"type": "slot", "label": "\ud83d\ude00", "count": 1}],
          "tasks": [], "attributes": {}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->resources[0].label, "\xf0\x9f\x98\x80");
}

TEST(JobRequest, LongValuesDoNotMakeLongMessages) {
  const auto request =
      ParseJobRequest(Text("[{type: node, count: " + std::string(10'000, 'x') + "}]"));
  EXPECT_THAT(Message(request.status()), HasSubstr("resources[0].count: must be an integer"));
  EXPECT_LT(Message(request.status()).size(), 600u);
}

// Nine levels of nine aliases each: a billion values.
TEST(JobRequest, EndsABomb) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i);
    std::string list;
    for (int k = 0; k < 9; ++k) list += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += name + ": &" + name + " [" + list + "]\n";
  }
  EXPECT_THAT(Message(ParseJobRequest(text).status()),
              HasSubstr("jobspec: line 5, column 10: has more than 10000 values"));
}

TEST(JobRequest, EndsABombOfOneLongText) {
  std::string text = "a: &x \"" + std::string(500'000, 'x') + "\"\nb: [";
  for (int i = 0; i < 5000; ++i) text += "*x, ";
  EXPECT_THAT(Message(ParseJobRequest(text + "]").status()),
              HasSubstr("jobspec: line 2, column 33: has more than 4194304 bytes of text"));
}

TEST(Alternatives, OneOfEachXorSlot) {
  const auto request = ParseJobRequest(Text(R"(
  - type: node
    count: 1
    with:
      - {type: xor_slot, count: 1, label: a, with: [{type: core, count: 1}]}
      - {type: xor_slot, count: 1, label: b, with: [{type: gpu, count: 1}]}
)"));
  ASSERT_TRUE(request.ok()) << request.status();
  const auto alternatives = SplitAlternatives(request->resources);
  ASSERT_TRUE(alternatives.ok());
  ASSERT_EQ(alternatives->size(), 2u);
  EXPECT_EQ((*alternatives)[0][0].with[0].label, "a");
  EXPECT_EQ((*alternatives)[1][0].with[0].label, "b");
  EXPECT_TRUE((*alternatives)[1][0].with[0].is_slot());
}

TEST(Alternatives, AreBounded) {
  // Eleven resources with two alternatives each: 2,048.
  std::string resources = "[";
  for (int i = 0; i < 11; ++i) {
    resources += "{type: t" + std::to_string(i) +
                 ", count: 1, with: [{type: xor_slot, count: 1, label: a}, "
                 "{type: xor_slot, count: 1, label: b}]}, ";
  }
  const auto request = ParseJobRequest(Text(resources + "]"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(Message(SplitAlternatives(request->resources).status()),
              HasSubstr("more than 1000 requests"));
}

// 2^9 requests of 1,900 resources each.
TEST(Alternatives, AreBoundedAlsoInSize) {
  std::string resources = "[";
  for (int i = 0; i < 9; ++i) {
    resources +=
        "{type: t, count: 1, with: [{type: xor_slot, count: 1, label: a}, "
        "{type: xor_slot, count: 1, label: b}]}, ";
  }
  for (int i = 0; i < 1'800; ++i) resources += "{type: t, count: 1}, ";
  const auto request = ParseJobRequest(Text(resources + "]"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(
      Message(SplitAlternatives(request->resources).status()),
      HasSubstr("the 512 requests that xor_slot stands for have more than 100000 resources"));
}

}  // namespace
}  // namespace fluxqueue::graph
