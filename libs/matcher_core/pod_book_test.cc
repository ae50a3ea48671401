// Rules between pods, and host ports, by what a core answers.
#include "libs/matcher_core/pod_book.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/host_ports.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kHostname[] = "kubernetes.io/hostname";

std::string Rule(const std::string& key, const std::string& app, const std::string& more = "") {
  return R"({"key":")" + key + R"(","pods":{"labels":{"app":")" + app + R"("}})" + more + "}";
}

std::string Apart(const std::string& key, const std::string& app) {
  return R"({"apart":[)" + Rule(key, app) + "]}";
}

std::string Beside(const std::string& key, const std::string& app) {
  return R"({"beside":[)" + Rule(key, app) + "]}";
}

std::string Spread(const std::string& key,
                   const std::string& app,
                   int64_t skew = 1,
                   int64_t domains = 1) {
  const std::string more = R"(,"skew":)" + std::to_string(skew) + R"(,"domains":)" +
                           std::to_string(domains) + R"(,"affinity":false,"taints":false)";
  return R"({"spread":[)" + Rule(key, app, more) + "]}";
}

// Of the weight, which may be below 0.
std::string Near(const std::string& key, const std::string& app, int64_t weight) {
  return R"({"near":[)" + Rule(key, app, R"(,"weight":)" + std::to_string(weight)) + "]}";
}

std::string Even(const std::string& key, const std::string& app) {
  return R"({"even":[)" + Rule(key, app, R"(,"affinity":true,"taints":false)") + "]}";
}

struct Asked {
  std::string app;
  std::string rules = {};  // attributes.system.pods
  uint32_t slots = 1;
  std::string space = "lab";
  bool one_per_node = false;
  std::string resource = "cpu";
  std::string constraints = "{}";
  std::string preferred = {};  // attributes.system.job.pods
  std::string job = "none";    // another label
};

std::string Text(const Asked& asked) {
  const std::string count = std::to_string(asked.slots);
  std::string text = JobspecText(asked.one_per_node ? "1" : count, 1);
  const auto replace = [&text](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace(R"("cpu")", "\"" + asked.resource + "\"");
  replace(R"({"properties":[]})", asked.constraints);
  if (asked.one_per_node) {
    replace(R"("resources":[)", R"("resources":[{"type":"node","count":)" + count + R"(,"with":[)");
    replace(R"(],"tasks")", R"(]}],"tasks")");
  }
  const std::string pod = R"({"namespace":")" + asked.space + R"(","labels":{"app":")" + asked.app +
                          R"(","job":")" + asked.job + R"("}})";
  return OfPods(text, pod, asked.rules, asked.preferred);
}

// Nodes a1, a2 of zone a, b1, b2 of zone b, and x1 that is of none; each has eight cores.
class PodBookTest : public CycleByCycleTest {
 protected:
  void SetUp() override {
    for (const std::string name : {"a1", "a2", "b1", "b2", "x1"}) Feed(Upserted(NodeOf(name)));
    Feed(Synced());
  }

  static events::v1::Node NodeOf(const std::string& name, int64_t version = 1) {
    events::v1::Node node = MakeNode(name, 8, version);
    const auto label = [&node](const std::string& key, const std::string& value) {
      node.add_labels()->set_key(key);
      node.mutable_labels()->rbegin()->set_value(value);
    };
    label(kHostname, name);
    if (name[0] != 'x') label("zone", name.substr(0, 1));
    return node;
  }

  void Submit(const std::string& job, const Asked& asked) {
    Feed(Submitted(job, asked.slots, Text(asked)));
  }

  Outcome Try(const std::string& job) { return Ask(Cycle(1, {job})).outcomes(0); }

  // The nodes of its slots; none: it does not start.
  std::vector<std::string> Start(const std::string& job, const Asked& asked) {
    Submit(job, asked);
    const Outcome outcome = Try(job);
    reason_ = outcome.reason();
    return NodesOf(job);
  }

  std::vector<std::string> NodesOf(const std::string& job) const {
    std::vector<std::string> nodes;
    const graph::Placement* held = core_.engine().Find({job, 1, 0});
    if (held == nullptr) return nodes;
    for (const graph::PlacedSlot& slot : held->slots) nodes.push_back(slot.node);
    return nodes;
  }

  // Everywhere that such a pod can be, found by keeping each node for it in turn.
  std::set<std::string> OpenTo(Asked asked) {
    std::set<std::string> open;
    for (const std::string name : {"a1", "a2", "b1", "b2", "x1"}) {
      asked.constraints = R"({"hostlist":[")" + name + R"("]})";
      const std::string job = "try-" + name;
      if (!Start(job, asked).empty()) open.insert(name);
      End(job);
    }
    return open;
  }

  void End(const std::string& job) {
    Envelope message;
    message.mutable_release_requested()->mutable_key()->set_job_id(job);
    message.mutable_release_requested()->mutable_key()->set_attempt(1);
    message.mutable_release_requested()->set_job_ended(true);
    Feed(message);
  }

  void On(const std::string& node, const std::string& job, Asked asked) {
    asked.constraints = R"({"hostlist":[")" + node + R"("]})";
    ASSERT_THAT(Start(job, asked), ElementsAre(node)) << reason_;
  }

  std::string reason_;
};

TEST_F(PodBookTest, PodsThatKeepApartAreOnNodesOfTheirOwn) {
  On("a1", "web-1", {.app = "web"});
  const Asked apart{.app = "db", .rules = Apart(kHostname, "web")};
  EXPECT_THAT(OpenTo(apart), UnorderedElementsAre("a2", "b1", "b2", "x1"));
  const Asked by_zone{.app = "db", .rules = Apart("zone", "web")};
  EXPECT_THAT(OpenTo(by_zone), UnorderedElementsAre("b1", "b2", "x1"));
  const Asked elsewhere{.app = "db", .rules = Apart("zone", "web"), .space = "other"};
  EXPECT_EQ(OpenTo(elsewhere).size(), 5u) << "a rule is about pods of its namespace";
  End("web-1");
  EXPECT_EQ(OpenTo(by_zone).size(), 5u);
}

// Kubernetes looks at the rules of what runs, too.
TEST_F(PodBookTest, ARuleKeepsAwayThoseThatHaveNone) {
  On("a1", "db", {.app = "db", .rules = Apart("zone", "web")});
  EXPECT_THAT(OpenTo({.app = "web"}), UnorderedElementsAre("b1", "b2", "x1"));
  EXPECT_EQ(OpenTo({.app = "api"}).size(), 5u);
  EXPECT_EQ(OpenTo({.app = "web", .space = "other"}).size(), 5u);
}

TEST_F(PodBookTest, WhatKeepsApartFromItsLikeIsRefusedWithTheReason) {
  const Asked alone{.app = "web", .rules = Apart("zone", "web")};
  On("a1", "web-a", alone);
  On("b2", "web-b", alone);
  On("x1", "web-x", alone);
  EXPECT_THAT(Start("web-y", alone), ElementsAre("x1")) << "a node without the label is no domain";
  Feed(Upserted([] {
    events::v1::Node cordoned = NodeOf("x1", 2);
    cordoned.set_unschedulable(true);
    return cordoned;
  }()));
  EXPECT_THAT(Start("web-z", alone), IsEmpty());
  EXPECT_THAT(reason_,
              HasSubstr("rules between pods (affinity, anti-affinity, spread) close 4 of "
                        "the 5 nodes to it"));
  End("web-b");
  EXPECT_EQ(Try("web-z").kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(PodBookTest, AGangIsOnNodesOfItsOwn) {
  Asked gang{.app = "web", .rules = Apart(kHostname, "web"), .slots = 3, .one_per_node = true};
  const std::vector<std::string> nodes = Start("gang", gang);
  EXPECT_EQ(std::set(nodes.begin(), nodes.end()).size(), 3u);
  EXPECT_THAT(Start("another", gang), IsEmpty()) << "two nodes are left";
  gang.slots = 2;
  EXPECT_EQ(Start("smaller", gang).size(), 2u);
  gang.slots = 6;
  Submit("large", gang);
  EXPECT_EQ(Try("large").kind(), Outcome::KIND_UNSATISFIABLE);
}

// The one that is promised something keeps its nodes from those that would be beside it.
TEST_F(PodBookTest, APromiseWaitsForTheEndOfThoseItKeepsApartFrom) {
  On("a1", "web-a", {.app = "web"});
  On("b1", "web-b", {.app = "web"});
  Asked asked{
      .app = "db", .rules = Apart("zone", "web"), .constraints = R"({"properties":["zone"]})"};
  Submit("db", asked);
  Envelope line = Backfill(1, {{.job = "db", .duration_s = 30}});
  const events::v1::CycleAnswered answer = Ask(line);
  ASSERT_EQ(answer.outcomes(0).kind(), Outcome::KIND_RESERVED) << answer.outcomes(0).reason();
  // web-a began first, for a minute.
  const graph::Placement& web = *core_.engine().Find({"web-a", 1, 0});
  EXPECT_EQ(answer.outcomes(0).at_s(), web.start_s + web.duration_s);
  EXPECT_EQ(core_.reservations().at({"db", 1, 0}).slots[0].node[0], 'a');

  asked = {.app = "web", .constraints = R"({"hostlist":["a2"]})"};
  Submit("web-c", asked);
  line = Backfill(1, {{.job = "db", .duration_s = 30}, {.job = "web-c", .duration_s = 3600}}, 1);
  EXPECT_EQ(Ask(line).outcomes(1).kind(), Outcome::KIND_BUSY) << "it would be there by then";
  line = Backfill(1, {{.job = "db", .duration_s = 30}, {.job = "web-c", .duration_s = 5}}, 1);
  EXPECT_EQ(Ask(line).outcomes(1).kind(), Outcome::KIND_ALLOCATED) << "it is gone by then";
}

TEST_F(PodBookTest, PodsGoBesideThoseThatTheyWant) {
  const Asked beside{.app = "api", .rules = Beside("zone", "web")};
  EXPECT_THAT(OpenTo(beside), IsEmpty()) << "there are none";
  On("b1", "web", {.app = "web"});
  EXPECT_THAT(OpenTo(beside), UnorderedElementsAre("b1", "b2"));
  EXPECT_THAT(OpenTo({.app = "web", .rules = Beside("zone", "web"), .space = "other"}),
              UnorderedElementsAre("a1", "a2", "b1", "b2"))
      << "the first of those that want their like begins where it likes, in some domain";
}

TEST_F(PodBookTest, AGangIsBesideItself) {
  const Asked gang{.app = "web", .rules = Beside("zone", "web"), .slots = 12};
  const std::vector<std::string> nodes = Start("gang", gang);
  ASSERT_EQ(nodes.size(), 12u) << reason_;
  for (const std::string& node : nodes) EXPECT_EQ(node[0], nodes[0][0]);
  EXPECT_THAT(Start("more", gang), IsEmpty()) << "its zone has four cores left";
  Asked fewer = gang;
  fewer.slots = 4;
  EXPECT_EQ(Start("fewer", fewer).size(), 4u);
}

// In one cycle, with reservations: each counts for the next.
TEST_F(PodBookTest, TheyCountForEachOtherInTheCycleInWhichTheyStart) {
  Asked gang{.app = "web", .rules = Apart(kHostname, "web"), .slots = 4, .one_per_node = true};
  Submit("gang", gang);
  Submit("like", {.app = "web"});
  Submit("shy", {.app = "shy", .rules = Apart(kHostname, "web")});
  Submit("friend", {.app = "friend", .rules = Beside(kHostname, "web")});
  const auto answer =
      Ask(Backfill(1, {{.job = "gang"}, {.job = "like"}, {.job = "shy"}, {.job = "friend"}}, 4));
  ASSERT_EQ(answer.outcomes_size(), 4);
  EXPECT_EQ(NodesOf("gang").size(), 4u);
  EXPECT_EQ(NodesOf("like").size(), 1u);
  EXPECT_THAT(NodesOf("shy"), IsEmpty()) << "there is no node without one of these";
  EXPECT_EQ(NodesOf("friend").size(), 1u);
}

// The zone where the first of them would go has no room for all.
TEST_F(PodBookTest, AGangIsBesideItselfWhereAllHaveRoom) {
  for (const std::string node : {"a1", "a2"}) {
    Asked fill{.app = "fill", .slots = 6, .constraints = R"({"hostlist":[")" + node + R"("]})"};
    ASSERT_EQ(Start("fill-" + node, fill).size(), 6u);
  }
  const std::vector<std::string> nodes =
      Start("gang", {.app = "web", .rules = Beside("zone", "web"), .slots = 12});
  ASSERT_EQ(nodes.size(), 12u) << reason_;
  for (const std::string& node : nodes) EXPECT_EQ(node[0], 'b');
}

TEST_F(PodBookTest, NothingIsPromisedByWhereOtherPodsAre) {
  for (const std::string node : {"a1", "a2", "b1", "b2", "x1"}) {
    Asked fill{.app = "fill", .slots = 8, .constraints = R"({"hostlist":[")" + node + R"("]})"};
    ASSERT_EQ(Start("fill-" + node, fill).size(), 8u);
  }
  Submit("spread", {.app = "web", .rules = Spread("zone", "web")});
  Submit("beside", {.app = "web", .rules = Beside("zone", "web")});
  Submit("plain", {.app = "api"});
  const auto answer = Ask(Backfill(1,
                                   {{.job = "spread", .duration_s = 30},
                                    {.job = "beside", .duration_s = 30},
                                    {.job = "plain", .duration_s = 30}},
                                   3));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes(2).kind(), Outcome::KIND_RESERVED);
}

// Same rules, same sizes: what one cannot keep among its own pods says nothing of the other's.
TEST_F(PodBookTest, ARefusalIsOfThosePodsAlone) {
  const std::string zone_a = R"({"hostlist":["a1"]})";
  const Asked x{.app = "web", .rules = Apart("zone", "web"), .slots = 2, .constraints = zone_a};
  const Asked y{.app = "api", .rules = Apart("zone", "web"), .slots = 2, .constraints = zone_a};
  Submit("x", x);
  Submit("y", y);
  const auto answer = Ask(Cycle(1, {"x", "y"}));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(answer.outcomes(0).reason(),
              HasSubstr("its pods do not fit by the rules that they have between each other"));
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED);
}

// A tenant's many rules are at no cost of others.
TEST_F(PodBookTest, ManyKindsOfOneNamespaceHoldUpNoOther) {
  std::vector<std::string> line;
  for (size_t i = 0; i < kMostKinds + 1; ++i) {
    const std::string app = "a" + std::to_string(i);
    Submit(app, {.app = app, .rules = Beside("zone", "none")});
    line.push_back(app);
  }
  Submit("other", {.app = "web", .rules = Apart("zone", "web"), .space = "other"});
  line.emplace_back("other");
  const auto answer = Ask(Cycle(1, line));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes().rbegin()->kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(PodBookTest, PodsSpreadOverDomains) {
  const Asked spread{.app = "web", .rules = Spread("zone", "web")};
  On("a1", "web-1", {.app = "web"});
  EXPECT_THAT(OpenTo(spread), UnorderedElementsAre("b1", "b2"));
  const Asked loose{.app = "web", .rules = Spread("zone", "web", 2)};
  EXPECT_THAT(OpenTo(loose), UnorderedElementsAre("a1", "a2", "b1", "b2"));
  On("b1", "web-2", {.app = "web"});
  EXPECT_THAT(OpenTo(spread), UnorderedElementsAre("a1", "a2", "b1", "b2"));
  const Asked three{.app = "web", .rules = Spread("zone", "web", 1, 3)};
  EXPECT_THAT(OpenTo(three), IsEmpty()) << "with too few domains the fewest pods are none";
}

TEST_F(PodBookTest, AGangSpreads) {
  const std::vector<std::string> nodes =
      Start("gang", {.app = "web", .rules = Spread("zone", "web"), .slots = 7});
  ASSERT_EQ(nodes.size(), 7u) << reason_;
  std::map<char, int> pods;
  for (const std::string& node : nodes) ++pods[node[0]];
  EXPECT_EQ(pods['x'], 0);
  EXPECT_LE(std::abs(pods['a'] - pods['b']), 1);
  EXPECT_THAT(Start("two", {.app = "db", .rules = Apart("zone", "db"), .slots = 2}),
              testing::SizeIs(2));
}

// The policy `lonode` would put all on a1.
TEST_F(PodBookTest, PodsGoWhereFewestOfThemAreIfTheyCan) {
  Feed(Configured("lonode"));
  const Asked even{.app = "web", .preferred = Even("zone", "web")};
  std::string zones;
  for (int i = 0; i < 6; ++i) zones += Start("web" + std::to_string(i), even).at(0)[0];
  EXPECT_EQ(zones, "ababab");
  const Asked by_node{.app = "web", .preferred = Even(kHostname, "web")};
  EXPECT_THAT(Start("web6", by_node), ElementsAre("a2"));
  EXPECT_THAT(Start("web7", by_node), ElementsAre("b2"));
  EXPECT_THAT(Start("web8", by_node), ElementsAre("x1"));
  for (const std::string node : {"a2", "b2", "x1"}) {
    Asked fill{.app = "fill", .slots = 7, .constraints = R"({"hostlist":[")" + node + R"("]})"};
    ASSERT_EQ(Start("fill-" + node, fill).size(), 7u);
  }
  EXPECT_THAT(Start("web9", by_node), ElementsAre("a1")) << "the next best that has room";
}

TEST_F(PodBookTest, PodsGoNearThoseThatTheyPreferAndAwayFromOthers) {
  Feed(Configured("lonode"));
  On("b1", "db", {.app = "db"});
  const Asked near{.app = "api", .preferred = Near("zone", "db", 50)};
  EXPECT_THAT(Start("near", near), ElementsAre("b1"));
  const Asked away{.app = "api", .preferred = Near("zone", "api", -1)};
  EXPECT_THAT(Start("away", away), ElementsAre("a1"));
  EXPECT_THAT(Start("away-2", away), ElementsAre("x1")) << "a node without the label has none";
  const Asked by_node{.app = "batch", .preferred = Near(kHostname, "batch", -100)};
  std::set<std::string> nodes;
  for (int i = 0; i < 5; ++i) nodes.insert(Start("b" + std::to_string(i), by_node).at(0));
  EXPECT_EQ(nodes.size(), 5u);
  EXPECT_THAT(Start("sixth", by_node), testing::SizeIs(1)) << "it is no rule";
  const Asked elsewhere{.app = "api", .space = "other", .preferred = Near("zone", "db", 50)};
  EXPECT_THAT(Start("elsewhere", elsewhere), ElementsAre("a1"));
}

TEST_F(PodBookTest, AGangIsEvenAmongItsOwn) {
  Asked gang{.app = "web", .slots = 4, .preferred = Even("zone", "web")};
  std::vector<std::string> nodes = Start("gang", gang);
  std::map<char, int> pods;
  for (const std::string& node : nodes) ++pods[node[0]];
  EXPECT_EQ(pods, (std::map<char, int>{{'a', 2}, {'b', 2}}));
  gang = {.app = "api", .slots = 5, .preferred = Near(kHostname, "api", -100)};
  nodes = Start("apart", gang);
  EXPECT_EQ(std::set(nodes.begin(), nodes.end()).size(), 5u);
  gang.slots = 20;
  EXPECT_EQ(Start("large", gang).size(), 20u) << "all the same where there are too few nodes";
}

// What is preferred changes no promise, and what was promised is placed by it when it starts.
TEST_F(PodBookTest, AGangThatPrefersIsPromisedItsTime) {
  Asked fill{.app = "fill", .slots = 40};
  ASSERT_EQ(Start("fill", fill).size(), 40u);
  Submit("gang", {.app = "web", .slots = 4, .preferred = Even("zone", "web")});
  auto answer = Ask(Backfill(1, {{.job = "gang", .duration_s = 30}}));
  ASSERT_EQ(answer.outcomes(0).kind(), Outcome::KIND_RESERVED);
  End("fill");
  answer = Ask(Backfill(2, {{.job = "gang", .duration_s = 30}}));
  ASSERT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  std::map<char, int> pods;
  for (const std::string& node : NodesOf("gang")) ++pods[node[0]];
  EXPECT_EQ(pods, (std::map<char, int>{{'a', 2}, {'b', 2}}));
}

// What is preferred tells nobody apart for whom it is no rule.
TEST_F(PodBookTest, APreferenceMakesNoKindsOfThoseWithRules) {
  On("a1", "db", {.app = "db"});
  const std::string near_job =
      R"({"near":[{"key":"zone","pods":{"labels":{"job":"x"}},"weight":1}]})";
  ASSERT_THAT(Start("wish", {.app = "wish", .preferred = near_job}), testing::SizeIs(1));
  std::vector<std::string> line;
  for (size_t i = 0; i < kMostKinds + 1; ++i) {
    const std::string job = "sim" + std::to_string(i);
    Submit(job, {.app = "sim", .rules = Beside("zone", "absent"), .job = job});
    line.push_back(job);
  }
  Submit("last", {.app = "sim", .rules = Beside("zone", "db"), .job = "last"});
  line.emplace_back("last");
  const auto answer = Ask(Cycle(1, line));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes().rbegin()->kind(), Outcome::KIND_ALLOCATED);
}

// The node that it prefers would leave none for its second pod.
TEST_F(PodBookTest, WhatAGangPrefersKeepsItFromNoPlace) {
  Feed(Configured("lonode"));
  for (const auto& [name, rack] :
       {std::pair("a1", "r2"), std::pair("a2", "r1"), std::pair("b1", "r1")}) {
    events::v1::Node node = NodeOf(name, 2);
    node.add_labels()->set_key("rack");
    node.mutable_labels()->rbegin()->set_value(rack);
    Feed(Upserted(node));
  }
  On("a2", "magnet", {.app = "magnet"});
  const std::string rules =
      R"({"apart":[)" + Rule("zone", "web") + "," + Rule("rack", "web") + "]}";
  const Asked gang{.app = "web",
                   .rules = rules,
                   .slots = 2,
                   .constraints = R"({"properties":["rack"]})",
                   .preferred = Near(kHostname, "magnet", 100)};
  EXPECT_THAT(Start("gang", gang), UnorderedElementsAre("a1", "b1")) << reason_;
}

TEST_F(PodBookTest, EarlierRulesOfAPoolHeedNoPreferencesOfPods) {
  Envelope pool = Configured("first");
  pool.mutable_pool_configured()->set_rules(model::kPrefersByPods - 1);
  Feed(pool);
  const Asked even{.app = "web", .slots = 2, .preferred = Even("zone", "web")};
  const std::vector<std::string> nodes = Start("web", even);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0], nodes[1]);
}

TEST_F(PodBookTest, PodsThatAreNotOursCount) {
  events::v1::Node node = NodeOf("a1", 2);
  auto* agent = node.add_foreign_pods();
  agent->set_pod(R"({"namespace":"lab","labels":{"app":"agent"}})");
  agent->set_rules(Apart("zone", "web"));
  agent->set_count(1);
  auto* cache = node.add_foreign_pods();
  cache->set_pod(R"({"namespace":"lab","labels":{"app":"cache"}})");
  cache->set_count(2);
  node.add_foreign_pods()->set_pod("unreadable");
  Feed(Upserted(node));
  EXPECT_THAT(OpenTo({.app = "web"}), UnorderedElementsAre("b1", "b2", "x1"));
  EXPECT_THAT(OpenTo({.app = "db", .rules = Apart(kHostname, "cache")}),
              UnorderedElementsAre("a2", "b1", "b2", "x1"));
  EXPECT_THAT(OpenTo({.app = "db", .rules = Beside("zone", "cache")}),
              UnorderedElementsAre("a1", "a2"));
  EXPECT_THAT(OpenTo({.app = "cache", .rules = Spread("zone", "cache", 2)}),
              UnorderedElementsAre("b1", "b2"));
  Feed(Upserted(NodeOf("a1", 3)));
  EXPECT_EQ(OpenTo({.app = "web"}).size(), 5u);
}

TEST_F(PodBookTest, HostPortsAreOnceOnANode) {
  const Asked port{.app = "web", .resource = "hostport-80-tcp"};
  std::set<std::string> nodes;
  for (int i = 0; i < 5; ++i) nodes.insert(Start("web" + std::to_string(i), port).at(0));
  EXPECT_EQ(nodes.size(), 5u);
  EXPECT_THAT(Start("another", port), IsEmpty());
  EXPECT_THAT(reason_, HasSubstr("hostport-80-tcp: 0 of 1 slots fit now"));
  const Asked other{.app = "web", .resource = "hostport-80-udp"};
  EXPECT_EQ(Start("other", other).size(), 1u);
  Asked many = port;
  many.slots = 6;
  Submit("six", many);
  EXPECT_EQ(Try("six").kind(), Outcome::KIND_UNSATISFIABLE);
}

TEST_F(PodBookTest, PortsThatOthersUseAreTaken) {
  events::v1::Node node = NodeOf("a1", 2);
  node.add_foreign()->set_resource("hostport-80-tcp");
  node.mutable_foreign(0)->set_amount(1);
  Feed(Upserted(node));
  EXPECT_THAT(OpenTo({.app = "web", .resource = "hostport-80-tcp"}),
              UnorderedElementsAre("a2", "b1", "b2", "x1"));
}

TEST_F(PodBookTest, MorePortsThanAPoolHasAreToldSo) {
  const auto port = [](size_t number) {
    return Asked{.app = "web", .resource = "hostport-" + std::to_string(number) + "-tcp"};
  };
  for (size_t i = 0; i < kMostHostPorts; ++i) Submit("web" + std::to_string(i), port(i));
  EXPECT_THAT(Start("late", port(kMostHostPorts)), IsEmpty());
  EXPECT_THAT(reason_, HasSubstr("no node has any"));
  End("web0");
  End("late");
  EXPECT_EQ(Start("later", port(kMostHostPorts)).size(), 1u) << "a port that is named no more goes";
}

TEST_F(PodBookTest, ARestoredCoreKeepsTheRules) {
  On("a1", "db", {.app = "db", .rules = Apart("zone", "web")});
  On("b1", "port", {.app = "p", .resource = "hostport-80-tcp"});
  const uint64_t before = core_.Fingerprint();
  ASSERT_TRUE(core_.Restore(tables_.All()).ok());
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_THAT(OpenTo({.app = "web"}), UnorderedElementsAre("b1", "b2", "x1"));
  EXPECT_THAT(OpenTo({.app = "p", .resource = "hostport-80-tcp"}),
              UnorderedElementsAre("a1", "a2", "b2", "x1"));
}

TEST_F(PodBookTest, EarlierRulesOfAPoolRefuseThem) {
  Envelope pool = Configured("first");
  pool.mutable_pool_configured()->set_rules(model::kPodRules - 1);
  Feed(pool);
  Submit("web", {.app = "web", .rules = Apart("zone", "web")});
  const Outcome outcome = Try("web");
  EXPECT_EQ(outcome.kind(), Outcome::KIND_INVALID);
  EXPECT_THAT(outcome.reason(),
              HasSubstr("rules between pods are kept by rules 12 and later; pool "
                        "default goes by 11"));
  EXPECT_THAT(Start("port", {.app = "p", .resource = "hostport-80-tcp"}), IsEmpty());
  Feed(Configured("first"));
  EXPECT_EQ(Try("web").kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(Try("port").kind(), Outcome::KIND_ALLOCATED);
}

}  // namespace
}  // namespace fluxqueue::matcher_core
