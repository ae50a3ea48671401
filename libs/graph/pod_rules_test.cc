#include "libs/graph/pod_rules.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"

namespace fluxqueue::graph {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::string& system) {
  return R"({"version":1,"resources":[{"type":"slot","count":2,"label":"pod","with":[)"
         R"({"type":"cpu","count":1500}]}],"tasks":[{"command":["pod"],"slot":"pod",)"
         R"("count":{"per_slot":1}}],"attributes":{"system":{)" +
         system + "}}}";
}

std::string Pods(const std::string& pods, const std::string& pod = "{}") {
  return Text(R"("job":{"pod":)" + pod + R"(},"pods":)" + pods);
}

TEST(PodRules, AreReadFromAJobspec) {
  const std::string pod = R"({"namespace":"lab","labels":{"app":"web"}})";
  const std::string web = R"("pods":{"labels":{"app":"web"}})";
  const auto spec = ParseJobspec(
      Pods(R"({"apart":[{"key":"zone",)" + web +
               R"(}],"beside":[{"key":"rack","pods":{"expressions":)"
               R"([{"key":"tier","op":"In","values":["a","b"]}]}}],"spread":[{"key":"zone",)" +
               web + R"(,"skew":2,"domains":3,"affinity":true,"taints":false}]})",
           pod));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const PodRules& rules = spec->pods;
  EXPECT_EQ(rules.space, "lab");
  EXPECT_EQ(rules.labels, (LabelMap{{"app", "web"}}));
  ASSERT_EQ(rules.apart.size(), 1u);
  EXPECT_EQ(rules.apart[0].key, "zone");
  EXPECT_TRUE(rules.apart[0].pods.Selects(rules.labels));
  ASSERT_EQ(rules.beside.size(), 1u);
  EXPECT_EQ(rules.beside[0].pods.Text(), "tier in (a,b)");
  ASSERT_EQ(rules.spread.size(), 1u);
  EXPECT_EQ(rules.spread[0].skew, 2);
  EXPECT_EQ(rules.spread[0].domains, 3);
  EXPECT_TRUE(rules.spread[0].heeds_constraint);
  EXPECT_FALSE(rules.spread[0].heeds_taints);

  // What fits in the same places says nothing of who the pods are, and all of their rules.
  const auto alike = [&](const std::string& pods, const std::string& who) {
    return ParseJobspec(Pods(pods, who))->shape;
  };
  const std::string apart = R"({"apart":[{"key":"zone",)" + web + "}]}";
  EXPECT_EQ(alike(apart, pod), alike(apart, R"({"namespace":"lab"})"));
  EXPECT_NE(alike(apart, pod), alike(R"({"beside":[{"key":"zone",)" + web + "}]}", pod));

  const std::string at = "attributes.system.pods";
  const std::pair<std::string, std::string> bad[] = {
      {Pods("[]", pod), at + ": must be an object, is array"},
      {Pods("{}", pod), at + ": has 0 rules, 1 to 16 are allowed"},
      {Pods(R"({"near":[]})", pod), at + ".near: this key is not supported here"},
      {Pods(R"({"apart":[{"key":"zone"}]})", pod), at + ".apart[0].pods: is missing"},
      {Pods(R"({"apart":[{"key":"",)" + web + "}]}", pod), at + ".apart[0].key: must be a string"},
      {Pods(R"({"apart":[{"key":"z","pods":{"labels":{"a":1}}}]})", pod),
       at + ".apart[0].pods.labels.a: must be a string, is 1"},
      {Pods(R"({"apart":[{"key":"z","pods":{"expressions":[{"key":"a","op":"Gt"}]}}]})", pod),
       at + R"(.apart[0].pods.expressions[0].op: must be one of DoesNotExist, Exists, In, NotIn)"},
      {Pods(R"({"spread":[{"key":"z",)" + web + R"(,"affinity":true,"taints":true,"skew":0}]})",
            pod),
       at + ".spread[0].skew: must be from 1 to 2147483648, is 0"},
      {Text(R"("pods":)" + apart),
       "attributes.system.job.pod: is missing; rules between pods are about one namespace"},
      {Pods(apart, R"({"labels":{}})"), "attributes.system.job.pod.namespace: is missing"},
      {Pods(R"({"apart":[{"key":")" + std::string(kMaxPodRuleBytes, 'k') + "\"," + web + "}]}",
            pod),
       at + ": has 16"},
  };
  for (const auto& [text, error] : bad) {
    EXPECT_THAT(Message(ParseJobspec(text).status()), HasSubstr(error)) << text;
  }
}

TEST(PodPreferences, AreReadFromAJobspec) {
  const std::string pod = R"({"namespace":"lab","labels":{"app":"web"}})";
  const std::string web = R"("pods":{"labels":{"app":"web"}})";
  const auto preferring = [](const std::string& pods, const std::string& who) {
    return ParseJobspec(Text(R"("job":{"pod":)" + who + R"(,"pods":)" + pods + "}"));
  };
  const std::string near = R"({"near":[{"key":"zone",)" + web + R"(,"weight":-7}]})";
  const auto spec = preferring(R"({"even":[{"key":"rack",)" + web +
                                   R"(,"affinity":false,"taints":true}],"near":[{"key":"zone",)" +
                                   web + R"(,"weight":-7}]})",
                               pod);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const PodPreferences& preferred = spec->preferences.pods;
  ASSERT_EQ(preferred.near.size(), 1u);
  EXPECT_EQ(preferred.near[0].weight, -7);
  EXPECT_TRUE(preferred.near[0].pods.Selects(spec->pods.labels));
  ASSERT_EQ(preferred.even.size(), 1u);
  EXPECT_EQ(preferred.even[0].key, "rack");
  EXPECT_FALSE(preferred.even[0].heeds_constraint);
  EXPECT_TRUE(preferred.even[0].heeds_taints);
  EXPECT_TRUE(spec->pods.AreNone()) << "it is no rule";
  EXPECT_EQ(spec->shape, preferring(near, pod)->shape) << "they fit in the same places";
  EXPECT_NE(spec->preferences.signature, preferring(near, pod)->preferences.signature);

  const std::string at = "attributes.system.job.pods";
  const std::pair<std::string, std::string> bad[] = {
      {"[]", at + ": must be an object, is array"},
      {"{}", at + ": has 0 rules, 1 to 16 are allowed"},
      {R"({"near":[{"key":"zone",)" + web + "}]}", at + ".near[0].weight: is missing"},
      {R"({"near":[{"key":"zone",)" + web + R"(,"weight":101}]})",
       at + ".near[0].weight: must be from -100 to 100, is 101"},
      {R"({"even":[{"key":"zone",)" + web + R"(,"skew":1}]})",
       at + ".even[0].skew: this key is not supported here"},
  };
  for (const auto& [pods, error] : bad) {
    EXPECT_THAT(Message(preferring(pods, pod).status()), HasSubstr(error)) << pods;
  }
  EXPECT_THAT(Message(preferring(near, R"({"labels":{}})").status()), HasSubstr("namespace"));
}

}  // namespace
}  // namespace fluxqueue::graph
