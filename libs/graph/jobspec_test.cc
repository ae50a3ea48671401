#include "libs/graph/jobspec.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/hostlist.h"

namespace fluxqueue::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A jobspec around the parts that a test is about.
std::string Text(const std::string& slot, const std::string& attributes = "{}") {
  return R"({"version":1,"resources":[)" + slot +
         R"(],"tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],"attributes":)" +
         attributes + "}";
}

std::string With(const std::string& resources) {
  return R"({"type":"slot","count":2,"label":"pod","with":)" + resources + "}";
}

std::string Range(const std::string& count) {
  return R"({"type":"slot","count":)" + count +
         R"(,"label":"pod","with":[{"type":"cpu","count":1500}]})";
}

std::string Constraints(const std::string& constraints) {
  return R"({"system":{"constraints":)" + constraints + "}}";
}

const char kCpu[] = R"([{"type":"cpu","count":1500}])";

std::string Nodes(const std::string& count, const std::string& slot = "1") {
  return R"({"type":"node","count":)" + count + R"(,"with":[{"type":"slot","count":)" + slot +
         R"(,"label":"pod","with":[{"type":"cpu","count":1500}]}]})";
}

TEST(Jobspec, SlotsEachOnANodeOfItsOwn) {
  const auto spec = ParseJobspec(Text(Nodes("4")));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->one_per_node);
  EXPECT_EQ(spec->slots, 4u);
  EXPECT_EQ(spec->groups[0].slots, 4u);
  EXPECT_NE(spec->shape, ParseJobspec(Text(Range("4")))->shape);
  EXPECT_TRUE(WithSlots(*spec, 2).one_per_node);

  const auto elastic = ParseJobspec(Text(Nodes(R"({"min":2,"max":4})")));
  ASSERT_TRUE(elastic.ok()) << elastic.status();
  EXPECT_EQ(elastic->min_slots, 2u);
  EXPECT_EQ(elastic->slots, 4u);

  const auto in_rack =
      ParseJobspec(Text(R"({"type":"rack","count":1,"with":[)" + Nodes("4") + "]}"));
  ASSERT_TRUE(in_rack.ok()) << in_rack.status();
  EXPECT_EQ(in_rack->required_level, "rack");
  EXPECT_TRUE(in_rack->one_per_node);

  const std::pair<std::string, const char*> bad[] = {
      {Nodes("4", "2"), "resources[0].with: must be one slot of each node"},
      {Nodes("4", R"({"min":1,"max":1})"), "resources[0].with: must be one slot of each node"},
      {Nodes("0"), "resources[0].count: must be from 1 to 100000, is 0"},
      {R"({"type":"rack","count":1,"with":[)" + Nodes(R"({"min":2,"max":4})") + "]}",
       "resources[0].with[0].count: a range of counts is for slots below no level"},
  };
  for (const auto& [resources, error] : bad) {
    EXPECT_THAT(Message(ParseJobspec(Text(resources)).status()), HasSubstr(error)) << resources;
  }
}

TEST(Jobspec, ReadsWhatAdmissionWrites) {
  const auto spec = ParseJobspec(R"({"version":1,
    "resources":[{"type":"slot","count":4,"label":"pod","with":[
      {"type":"pods","count":1},{"type":"cpu","count":1500},{"type":"nvidia.com/gpu","count":1}]}],
    "tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],
    "attributes":{"system":{"duration":3600,"constraints":{"and":[
      {"properties":["disk=ssd"]},{"tolerations":["dedicated=batch:NoSchedule"]}]}}}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->slots, 4u);
  ASSERT_EQ(spec->groups.size(), 1u);
  EXPECT_THAT(spec->groups[0].request,
              ElementsAre(Amount{"cpu", 1500}, Amount{"nvidia.com/gpu", 1}, Amount{"pods", 1}));
  EXPECT_EQ(spec->duration_s, 3600);
  ASSERT_EQ(spec->tolerations.size(), 1u);
  EXPECT_EQ(spec->constraint.ToString(), "disk=ssd");
}

TEST(Jobspec, ATextFromOutsideHoldsNoControlCharacters) {
  const auto check = [](const std::string& type) {
    return Message(CheckJobspecText(Text(With(R"([{"type":")" + type + R"(","count":1}])"))));
  };
  EXPECT_EQ(check("nvidia.com/gpu"), "");
  EXPECT_EQ(check(R"(a\u0000)"), "jobspec: resources[0].with[0].type: holds a control character");
  EXPECT_EQ(check(R"(a\n)"), "jobspec: resources[0].with[0].type: holds a control character");
  EXPECT_EQ(check("a\x7f"), "jobspec: resources[0].with[0].type: holds a control character");
  EXPECT_EQ(Message(CheckJobspecText(Text(With(kCpu), R"({"user":{"a\u0000":1}})"))),
            "jobspec: attributes.user: has a key with a control character");
}

TEST(Jobspec, NamesInATextFromOutsideAreBounded) {
  const auto check = [](size_t bytes) {
    return Message(CheckJobspecText(
        Text(With(R"([{"type":")" + std::string(bytes, 'x') + R"(","count":1}])"))));
  };
  EXPECT_EQ(check(kMaxNameBytes), "");
  EXPECT_EQ(check(kMaxNameBytes + 1),
            "jobspec: resources[0].with[0].type: has 254 bytes; at most 253 are allowed");
}

TEST(Jobspec, ShapeIsAllButTheDuration) {
  const auto a = ParseJobspec(Text(With(kCpu), R"({"system":{"duration":1}})"));
  const auto b = ParseJobspec(Text(With(kCpu), R"({"system":{"duration":2.5}})"));
  const auto c = ParseJobspec(Text(With(R"([{"type":"cpu","count":1501}])")));
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(a->shape, b->shape);
  EXPECT_EQ(b->duration_s, 3);
  EXPECT_NE(a->shape, c->shape);
}

TEST(Jobspec, LevelsAndSlotsThatDiffer) {
  const std::string two =
      With(kCpu) + R"(,{"type":"slot","count":3,"label":"b","with":[{"type":"gpu","count":1}]})";
  const auto spec = ParseJobspec(Text(R"({"type":"zone","count":1,"with":[)" + two + "]}",
                                      R"({"system":{"topology":{"preferred":"rack"}}})"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->slots, 5u);
  EXPECT_THAT(spec->groups, ElementsAre(SlotGroup{2, {{"cpu", 1500}}}, SlotGroup{3, {{"gpu", 1}}}));
  EXPECT_EQ(spec->required_level, "zone");
  EXPECT_EQ(spec->preferred_level, "rack");
  const auto anywhere = ParseJobspec(Text(two));
  ASSERT_TRUE(anywhere.ok()) << anywhere.status();
  EXPECT_NE(spec->shape, anywhere->shape);
}

TEST(Jobspec, WhatIsPreferredIsNoPartOfTheShape) {
  const auto with = [](const std::string& job) {
    return ParseJobspec(Text(With(kCpu), R"({"system":{"job":)" + job + "}}"));
  };
  const auto plain = with(R"({"name":"x"})");
  const auto spec = with(R"({"preferences":{"terms":[{"weight":80,"constraint":
      {"properties":["zone=a"]}}],"tolerations":["spot:PreferNoSchedule"]}})");
  const auto other = with(R"({"preferences":{"tolerations":["spot"]}})");
  ASSERT_TRUE(plain.ok() && spec.ok() && other.ok()) << spec.status() << other.status();
  EXPECT_EQ(plain->preferences.signature, "");
  ASSERT_EQ(spec->preferences.terms.size(), 1u);
  EXPECT_EQ(spec->preferences.terms[0].weight, 80);
  EXPECT_EQ(spec->preferences.terms[0].nodes.ToString(), "zone=a");
  ASSERT_EQ(spec->preferences.tolerations.size(), 1u);
  EXPECT_EQ(spec->preferences.tolerations[0].text(), "spot:PreferNoSchedule");
  EXPECT_EQ(spec->shape, plain->shape);
  EXPECT_NE(spec->preferences.signature, other->preferences.signature);
  EXPECT_EQ(WithSlots(*spec, 3).preferences.signature, spec->preferences.signature);
  const std::string path = "attributes.system.job.preferences";
  const std::pair<std::string, std::string> bad[] = {
      {"1", path + ": must be an object"},
      {R"({"x":1})", path + ".x: this key is not supported"},
      {R"({"terms":{}})", path + ".terms: must be an array, is object"},
      {R"({"terms":[{"constraint":{}}]})", path + ".terms[0].weight: is missing"},
      {R"({"terms":[{"weight":101,"constraint":{}}]})", "must be from 1 to 100, is 101"},
      {R"({"terms":[{"weight":1}]})", path + ".terms[0].constraint: is missing"},
      {R"({"terms":[{"weight":1,"constraint":{"near":[]}}]})", path + ".terms[0].constraint"},
      {R"({"tolerations":[1]})", path + ".tolerations[0]: must be a string, is number"},
      {R"({"tolerations":["a:Never"]})", "has the effect \"Never\""},
      {R"({"tolerations":[")" + std::string(kMaxPreferencesBytes, 'x') + R"("]})",
       "at most 16384 are allowed"},
  };
  for (const auto& [preferences, error] : bad) {
    EXPECT_THAT(Message(with(R"({"preferences":)" + preferences + "}").status()), HasSubstr(error));
  }
}

TEST(Jobspec, ElasticOnesHaveARangeOfSlots) {
  const auto spec =
      ParseJobspec(Text(Range(R"({"min":2,"max":8,"operator":"+","operand":1})"),
                        R"({"system":{"duration":7,"constraints":{"properties":["a"]}}})"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->min_slots, 2u);
  EXPECT_EQ(spec->slots, 8u);
  EXPECT_THAT(spec->groups, ElementsAre(SlotGroup{8, {{"cpu", 1500}}}));
  EXPECT_TRUE(ParseJobspec(Text(Range(R"({"min":2,"max":2})"))).ok());
  // With so many it is as if it had asked for so many.
  const Jobspec three = WithSlots(*spec, 3);
  const auto asked =
      ParseJobspec(Text(Range("3"), R"({"system":{"constraints":{"properties":["a"]}}})"));
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(three.slots, 3u);
  EXPECT_EQ(three.min_slots, 0u);
  EXPECT_EQ(three.groups, asked->groups);
  EXPECT_EQ(three.shape, asked->shape);
  EXPECT_EQ(three.constraint_signature, asked->constraint_signature);
  EXPECT_EQ(three.duration_s, 7);
}

// Signatures are kept of each jobspec, and in caches: of a constraint of any length they are short.
TEST(Jobspec, ALongConstraintHasAShortSignature) {
  const auto with_last = [](const std::string& last) {
    std::string properties;
    for (int i = 0; i < 5000; ++i) properties += fmt::format("\"key-{}=v\",", i);
    return ParseJobspec(
        Text(Range("3"),
             R"({"system":{"constraints":{"properties":[)" + properties + "\"" + last + "\"]}}}"));
  };
  const auto spec = with_last("x=1");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_LE(spec->shape.size(), 1100);
  EXPECT_EQ(spec->shape, with_last("x=1")->shape);
  EXPECT_NE(spec->shape, with_last("x=2")->shape);
  EXPECT_NE(spec->constraint_signature, with_last("x=2")->constraint_signature);
}

// What waits is kept as read. The limits of a namespace are in bytes of jobspec: 64 MiB of them
// (the chart's default) are to leave most of the matcher's 4 GiB to others.
TEST(Jobspec, ALargeOneIsKeptInAFewTimesItsBytes) {
  constexpr int kSpecs = 50;
  const auto text = [](int number) {
    std::string properties;
    for (int i = 0; i < 5000; ++i) {
      properties += fmt::format("{}\"key-{}-{}.example.com=v\"", i == 0 ? "" : ",", number, i);
    }
    return Text(Range("3"), R"({"system":{"constraints":{"properties":[)" + properties + "]}}}");
  };
  std::vector<Jobspec> specs;
  specs.reserve(kSpecs);
  size_t bytes = 0;
  const size_t before = mallinfo2().uordblks;
  for (int number = 0; number < kSpecs; ++number) {
    const std::string given = text(number);
    bytes += given.size();
    auto spec = ParseJobspec(given);
    ASSERT_TRUE(spec.ok()) << spec.status();
    specs.push_back(*std::move(spec));
  }
  EXPECT_GT(bytes, kSpecs * 128'000U);
  EXPECT_LT(mallinfo2().uordblks - before, 8 * bytes);
}

struct BadCase {
  std::string text;
  std::string error;
};

TEST(Jobspec, RefusesAndNamesThePlace) {
  const std::string slot = With(kCpu);
  const BadCase cases[] = {
      {"", "is no JSON"},
      {"{\"version\":1,", "is no JSON (byte"},
      {"{\"version\":\"\xff\"}", "jobspec: is no JSON (byte 13)"},
      {"[]", "jobspec: must be an object, is array"},
      {"{\"version\":1,\"version\":1}", "jobspec: the key \"version\" stands twice"},
      {R"({"tasks":[1,{"a":{"b":1,"b":2}}]})", "jobspec: tasks[1].a: the key \"b\" stands twice"},
      {std::string(40, '[') + std::string(40, ']'), "[0][0]: is nested deeper than 32 levels"},
      {std::string(kMaxJobspecBytes + 1, ' '), "at most 262144"},
      {R"({"version":2,"resources":[],"tasks":[]})", "version: must be 1, is 2"},
      {R"({"version":1,"tasks":[]})", "resources: is missing"},
      {R"({"version":1,"resources":[],"tasks":[],"x":1})", "x: this key is not supported"},
      {Text(slot + "," + slot), "resources[1].label: \"pod\" is another slot's label"},
      {Text(slot + R"(,{"type":"rack","count":1,"with":[]})"),
       "resources[1].type: must be \"slot\", is \"rack\""},
      {Text(R"({"type":"node","count":1,"with":[]})"),
       "resources[0].with: must be a list of 1 to 16"},
      {Text(R"({"type":"rack","count":2,"with":[)" + slot + "]}"), "count: must be 1 for a level"},
      {Text(R"({"type":"rack","count":1,"with":[]})"), "resources[0].with: must be a list of 1"},
      {Text(R"({"type":"rack","count":1,"with":[{"type":"rack","count":1,"with":[]}]})"),
       "resources[0].with[0]"},
      {Text(slot, R"({"system":{"topology":{"preferred":1}}})"),
       "attributes.system.topology.preferred: must be a string"},
      {Text(slot, R"({"system":{"topology":{"required":"rack"}}})"),
       "attributes.system.topology.required: this key is not supported"},
      {Text(R"({"type":"slot","count":1,"label":"pod"})"), "resources[0].with: is missing"},
      {Text(R"({"type":"slot","count":0,"label":"pod","with":[]})"),
       "resources[0].count: must be from 1 to 100000, is 0"},
      {Text(R"({"type":"slot","count":-3,"label":"pod","with":[]})"), "is -3"},
      {Text(R"({"type":"slot","count":18446744073709551615,"label":"pod","with":[]})"),
       "must be from 1 to 100000"},
      {Text(R"({"type":"slot","count":1.5,"label":"pod","with":[]})"),
       "must be an integer, is 1.5"},
      {Text(Range(R"({"min":1})")), "resources[0].count.max: is missing"},
      {Text(Range(R"({"max":1})")), "resources[0].count.min: is missing"},
      {Text(Range(R"({"min":0,"max":4})")), "resources[0].count.min: must be from 1 to 4, is 0"},
      {Text(Range(R"({"min":5,"max":4})")), "resources[0].count.min: must be from 1 to 4, is 5"},
      {Text(Range(R"({"min":1,"max":100001})")), "count.max: must be from 1 to 100000"},
      {Text(Range(R"({"min":1,"max":4,"operator":"*"})")),
       "resources[0].count.operator: must be \"+\", is \"*\""},
      {Text(Range(R"({"min":1,"max":4,"operand":2})")), "count.operand: must be 1, is 2"},
      {Text(Range(R"({"min":1,"max":4,"step":2})")), "resources[0].count.step: this key"},
      {Text(Range(R"({"min":1,"max":4})") +
            R"(,{"type":"slot","count":3,"label":"b","with":[{"type":"gpu","count":1}]})"),
       "resources: a range of counts is for slots that are all alike"},
      {Text(R"({"type":"rack","count":1,"with":[)" + Range(R"({"min":1,"max":4})") + "]}"),
       "resources[0].with: a range of counts is for slots that are all alike and below no level"},
      {Text(With(R"([{"type":"cpu","count":{"min":1,"max":2}}])")),
       "resources[0].with[0].count: only slots have a range"},
      {Text(R"({"type":"slot","count":1,"label":"pod","exclusive":true,"with":[]})"),
       "resources[0].exclusive: this key is not supported"},
      {Text(With("[]")), "resources[0].with: must be a list of 1 to 64 resources"},
      {Text(With(R"([{"type":"cpu","count":0}])")), "resources[0].with[0].count"},
      {Text(With(R"([{"type":"cpu","count":9223372036854775808}])")),
       "resources[0].with[0].count: must be from 1 to"},
      {Text(With(R"([{"type":"cpu","count":"1"}])")), "must be an integer, is \"1\""},
      {Text(With(R"([{"type":"","count":1}])")), "resources[0].with[0].type: must be a string"},
      {Text(With(R"([{"type":"memory","count":1,"unit":"GB"}])")), "with[0].unit"},
      {Text(With(R"([{"type":"cpu","count":1},{"type":"cpu","count":1}])")), "names cpu twice"},
      {Text(With(R"([{"type":"cpu","count":1,"with":[]}])")), "with[0].with: a level inside"},
      {R"({"version":1,"resources":[)" + slot + R"(],"tasks":[]})", "tasks: must be a list"},
      {R"({"version":1,"resources":[)" + slot +
           R"(],"tasks":[{"command":["x"],"slot":"other","count":{}}]})",
       "tasks[0].slot: \"other\" is no label of a slot; there is \"pod\""},
      {Text(slot, R"({"system":{"duration":-1}})"), "attributes.system.duration: must be seconds"},
      {Text(slot, R"({"system":{"durations":1}})"), "attributes.system.durations"},
      {Text(slot, Constraints(R"({"colour":["1"]})")),
       "attributes.system.constraints.colour: unknown operator"},
      {Text(slot, Constraints(R"({"ranks":["1-"]})")), "ranks[0]: \"1-\": \"\" is no number"},
      {Text(slot, Constraints(R"({"properties":["a"],"hostlist":["b"]})")),
       "attributes.system.constraints: has 2 operators"},
      {Text(slot, Constraints(R"({"and":{}})")), "constraints.and: must be a list, is object"},
      {Text(slot, Constraints(R"({"or":[]})")), "constraints.or: is empty"},
      {Text(slot, Constraints(R"({"properties":[1]})")), "properties[0]: must be a string"},
      {Text(slot, Constraints(R"({"properties":["a b"]})")), "a character that no property"},
      {Text(slot, Constraints(R"({"properties":["=x"]})")), "names no label"},
      {Text(slot, Constraints(R"({"gt":["cores"]})")), "gt[0]: \"cores\" compares a label with no"},
      {Text(slot, Constraints(R"({"lt":["cores=1e3"]})")), "compares a label with no whole number"},
      {Text(slot, Constraints(R"({"lt":["cores=99999999999999999999"]})")), "no whole number"},
      {Text(slot, Constraints(R"({"gt":["^cores=1"]})")), "no whole number"},
      {Text(slot, Constraints(R"({"gt":[]})")), "constraints.gt: is empty"},
      {Text(slot, Constraints(R"({"hostlist":["n[3-1]"]})")), "runs backwards"},
      {Text(slot, Constraints(R"({"hostlist":["n[0-99999]"]})")), "more than 65536 hosts"},
      {Text(slot,
            Constraints(
                R"({"and":[{"hostlist":["n[1-60000]"]},{"not":[{"hostlist":["m[1-60000]"]}]}]})")),
       "more than"},
      {Text(slot, Constraints(R"({"not":[{"tolerations":[]}]})")), "only at the top"},
      {Text(slot, Constraints(R"({"and":[{"tolerations":[]},{"tolerations":[]}]})")),
       "stands twice"},
      {Text(slot, Constraints(R"({"tolerations":["a:Sometimes"]})")), "has the effect"},
      {Text(slot, Constraints(R"({"tolerations":[":NoSchedule"]})")), "names no taint"},
  };
  for (const BadCase& bad : cases) {
    const auto spec = ParseJobspec(bad.text);
    ASSERT_FALSE(spec.ok()) << bad.text;
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status()));
    EXPECT_THAT(Message(spec.status()), HasSubstr(bad.error)) << bad.text;
  }
}

TEST(Jobspec, LongValuesDoNotMakeLongMessages) {
  std::string value;
  while (value.size() < 10'000) value += "ä";
  const auto spec = ParseJobspec(Text(With(R"([{"type":"cpu","count":")" + value + R"("}])")));
  ASSERT_FALSE(spec.ok());
  EXPECT_LT(Message(spec.status()).size(), 600u);
}

NodeSpec MakeNode() {
  NodeSpec node;
  node.name = "node07";
  node.ordinal = 7;
  node.labels = {{"cores", "64"}, {"disk", "ssd"}, {"gpu", "a100"}, {"zone", ""}};
  node.taints = {{"soft", "", "PreferNoSchedule"}};
  return node;
}

TEST(Constraint, Matches) {
  const struct {
    std::string constraint;
    bool matches;
  } cases[] = {
      {R"({})", true},
      {R"({"properties":[]})", true},
      {R"({"properties":["disk=ssd","gpu"]})", true},
      {R"({"properties":["disk=hdd"]})", false},
      {R"({"properties":["disk"]})", true},
      {R"({"properties":["dis"]})", false},
      {R"({"properties":["zone="]})", true},
      {R"({"properties":["zone=a"]})", false},
      {R"({"properties":["^disk=hdd"]})", true},
      {R"({"properties":["^disk"]})", false},
      {R"({"properties":["none"]})", false},
      {R"({"hostlist":["node[05-09]"]})", true},
      {R"({"hostlist":["node[5-9]"]})", false},
      {R"({"hostlist":["a,b","node0[1,7]"]})", true},
      {R"({"or":[{"properties":["x"]},{"properties":["gpu=a100"]}]})", true},
      {R"({"or":[{"properties":["x"]},{"properties":["y"]}]})", false},
      {R"({"not":[{"properties":["x"]}]})", true},
      {R"({"not":[{"properties":["disk"]},{"properties":["gpu"]}]})", false},
      {R"({"not":[{"properties":["disk"]},{"properties":["x"]}]})", true},
      {R"({"and":[{"properties":["disk"]},{"not":[{"properties":["gpu"]}]}]})", false},
      {R"({"and":[{"properties":["disk"]},{"hostlist":["other"]}]})", false},
      {R"({"gt":["cores=63"]})", true},
      {R"({"gt":["cores=64"]})", false},
      {R"({"gt":["cores=-1","cores=9"]})", true},
      {R"({"lt":["cores=65"]})", true},
      {R"({"lt":["cores=64"]})", false},
      {R"({"lt":["gpu=1000"]})", false},
      {R"({"gt":["zone=-1"]})", false},
      {R"({"not":[{"gt":["none=0"]}]})", true},
      {R"({"or":[{"gt":["cores=100"]},{"lt":["cores=100"]}]})", true},
      {R"({"ranks":["0-9"]})", true},
      {R"({"ranks":["0-6","8"]})", false},
      {R"({"ranks":["8-9","0-2","1-7","3-4"]})", true},
      {R"({"ranks":["8-9","0-2","1-6","3-4"]})", false},
      {R"({"ranks":["[0-3]","7"]})", true},
      {R"({"ranks":["[0-3]","[5-6]"]})", false},
  };
  for (const auto& test : cases) {
    const auto spec = ParseJobspec(Text(With(kCpu), Constraints(test.constraint)));
    ASSERT_TRUE(spec.ok()) << test.constraint << spec.status();
    EXPECT_EQ(spec->constraint.Matches(MakeNode()), test.matches) << test.constraint;
    // What it is written as means the same.
    const std::string written = spec->constraint.ToJson().dump();
    const auto again = ParseJobspec(Text(With(kCpu), Constraints(written)));
    ASSERT_TRUE(again.ok()) << written << again.status();
    EXPECT_EQ(again->constraint.Matches(MakeNode()), test.matches) << written;
    // So it does without our own operators.
    const NodeSpec node = MakeNode();
    const Constraint plain = spec->constraint.WithoutComparisons({&node});
    EXPECT_EQ(plain.Matches(node), test.matches) << test.constraint;
    EXPECT_THAT(plain.ToJson().dump(), AllOf(Not(HasSubstr("\"gt\"")), Not(HasSubstr("\"lt\""))));
  }
}

TEST(Constraint, AComparisonIsReadAsOne) {
  const auto spec = ParseJobspec(Text(With(kCpu), Constraints(R"({"gt":["cores=8"]})")));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->constraint.ToString(), "cores > 8");
}

TEST(Constraint, Tolerations) {
  const Taint taint{"dedicated", "batch", "NoSchedule"};
  const struct {
    std::string toleration;
    bool tolerates;
  } cases[] = {
      {"dedicated=batch:NoSchedule", true},
      {"dedicated=other:NoSchedule", false},
      {"dedicated:NoSchedule", true},
      {"dedicated:NoExecute", false},
      {"dedicated", true},
      {"dedicated=batch", true},
      {"dedicated=", false},
      {"*", true},
      {"*:NoExecute", false},
      {"other", false},
  };
  for (const auto& test : cases) {
    const auto toleration = Toleration::Parse(test.toleration, "t");
    ASSERT_TRUE(toleration.ok()) << test.toleration;
    EXPECT_EQ(toleration->Tolerates(taint), test.tolerates) << test.toleration;
  }
  NodeSpec node = MakeNode();
  EXPECT_EQ(FirstUntolerated(node.taints, {}, false), nullptr);
  node.taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
  EXPECT_NE(FirstUntolerated(node.taints, {}, false), nullptr);
  EXPECT_EQ(FirstUntolerated(node.taints, {}, true), nullptr);
}

TEST(Hostlist, Expands) {
  std::vector<std::string> hosts;
  ASSERT_TRUE(ExpandHostlist("r[0-1]n[8-10],login", 100, &hosts).ok());
  EXPECT_THAT(hosts, ElementsAre("r0n8", "r0n9", "r0n10", "r1n8", "r1n9", "r1n10", "login"));
  for (const char* bad : {"",
                          ",",
                          "a,,b",
                          "a,",
                          "n[",
                          "n]",
                          "n[]",
                          "n[1-]",
                          "n[a]",
                          "n[1]]",
                          "n[0000000001]",
                          "a b",
                          "[1-9][1-9][1-9]"}) {
    hosts.clear();
    EXPECT_FALSE(ExpandHostlist(bad, 100, &hosts).ok()) << bad;
  }
}

// Many names that are long, or that take many steps to make, are refused before they are made.
TEST(Hostlist, NamesAreBounded) {
  std::vector<std::string> hosts;
  const auto error = [&hosts](const std::string& text) {
    hosts.clear();
    return Message(ExpandHostlist(text, kMaxHosts, &hosts));
  };
  std::string brackets = "[1-9999]";
  for (int i = 0; i < 100'000; ++i) brackets += "[1]";
  EXPECT_THAT(error("n[1-60000]" + std::string(500'000, 'x')), HasSubstr("at most 255 bytes"));
  EXPECT_THAT(error(brackets), HasSubstr("at most 255 bytes"));
  EXPECT_THAT(error("n[1-999999999][1-999999999][1-999999999]"), HasSubstr("more than 65536"));
  EXPECT_EQ(error(std::string(254, 'x') + "[1-9]"), "");
  EXPECT_THAT(error(std::string(254, 'x') + "[1-10]"), HasSubstr("at most 255 bytes"));
  EXPECT_THAT(error(std::string(254, 'x') + "[01]"), HasSubstr("at most 255 bytes"));
}

// All that ExpandHostlist writes out is in the set, and what is nearly so is not.
TEST(HostSet, NamesWhatIsWrittenOut) {
  for (const char* text : {"r[0-1]n[8-10],login",
                           "n[08-10,7]",
                           "n[008-100]x",
                           "[1-12][1-12]",
                           "a[1,11][1,11]b,a[5]",
                           "n[0-3][5]-[09-11].x",
                           "n,n,n[1],n[1]",
                           "n[0,00,000]"}) {
    std::vector<std::string> hosts;
    ASSERT_TRUE(ExpandHostlist(text, 1000, &hosts).ok()) << text;
    HostSet set;
    ASSERT_TRUE(set.Add(text, 1000).ok()) << text;
    set.Finish();
    EXPECT_EQ(set.size(), hosts.size()) << text;
    const std::set<std::string> expanded(hosts.begin(), hosts.end());
    std::set<std::string> near = expanded;
    for (const std::string& host : hosts) {
      for (const char* more : {"0", "1", "x", "-"}) {
        near.insert(host + more);
        near.insert(more + host);
        for (size_t i = 0; i < host.size(); ++i) {
          near.insert(host.substr(0, i) + more + host.substr(i));
          near.insert(host.substr(0, i) + more + host.substr(i + 1));
          near.insert(host.substr(0, i) + host.substr(i + 1));
        }
      }
    }
    for (const std::string& name : near) {
      EXPECT_EQ(set.Contains(name), expanded.contains(name)) << text << ": " << name;
    }
  }
}

// 250 bytes name 16 MB: written out, these would take 320 GB.
TEST(HostSet, TakesNoMoreMemoryThanItsText) {
  const std::string far = std::string(240, 'x');
  std::vector<HostSet> sets(20'000);
  for (HostSet& set : sets) {
    ASSERT_TRUE(set.Add(far + "[0-65535]", kMaxHosts).ok());
    set.Finish();
  }
  EXPECT_EQ(sets.back().size(), kMaxHosts);
  EXPECT_TRUE(sets.back().Contains(far + "65535"));
  EXPECT_FALSE(sets.back().Contains(far + "65536"));
  HostSet set;
  EXPECT_THAT(Message(set.Add("n[0-65536]", kMaxHosts)), HasSubstr("more than 65536"));
  HostlistSize size;
  ASSERT_TRUE(MeasureHostlist(far + "[0-65535]", kMaxHosts, &size).ok());
  EXPECT_EQ(size.names, kMaxHosts);
  EXPECT_EQ(size.bytes, kMaxHosts * 245);
}

// Two lists of 40,000 ranges each that do not touch.
TEST(Constraint, HasSoManyRangesAtMost) {
  std::string ranks = "0";
  for (int i = 2; i < 80'000; i += 2) ranks += "," + std::to_string(i);
  const auto parse = [](const std::string& text) {
    std::optional<std::vector<Toleration>> tolerations;
    return Constraint::Parse(nlohmann::json::parse(text), "constraints", &tolerations);
  };
  const std::string one = R"({"ranks":[")" + ranks + R"("]})";
  const auto constraint = parse(one);
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  EXPECT_TRUE(constraint->Matches({"node", 79'998, {}}));
  EXPECT_FALSE(constraint->Matches({"node", 79'997, {}}));
  EXPECT_THAT(Message(parse(R"({"or":[)" + one + "," + one + "]}").status()),
              HasSubstr("constraints.or[1].ranks: more than 65536 ranges in one constraint"));
}

TEST(Hostlist, IsWrittenShort) {
  EXPECT_EQ(FormatHostlist({"n3", "n1", "login", "n2", "n08", "n09", "n10", "n1"}),
            "login,n[1-3,10],n[08-09]");
}

}  // namespace
}  // namespace fluxqueue::graph
