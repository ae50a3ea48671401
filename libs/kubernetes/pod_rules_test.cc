#include "libs/kubernetes/pod_rules.h"

#include <gtest/gtest.h>

namespace fluxqueue::kubernetes {
namespace {

const StringMap kWeb = {{"app", "web"}, {"controller-uid", "u-1"}};
const LabelSelector kSelectsWeb = {.labels = {{"app", "web"}}};

PodTerm By(const char* key, LabelSelector pods) {
  return {.pods = std::move(pods), .topology_key = key};
}

PodRules Made(const PodSpec& pod, const StringMap& labels = kWeb) {
  const absl::StatusOr<PodRules> rules = MakePodRules(pod, "lab", labels);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.value_or(PodRules());
}

std::string Refusal(const PodSpec& pod) {
  return std::string(MakePodRules(pod, "lab", kWeb).status().message());
}

TEST(PodRulesTest, APodWithoutRulesSaysWhoItIs) {
  const PodRules rules = Made(PodSpec());
  EXPECT_EQ(rules.pod, R"({"labels":{"app":"web","controller-uid":"u-1"},"namespace":"lab"})");
  EXPECT_EQ(rules.rules, "");
  EXPECT_FALSE(rules.one_per_node);
  EXPECT_FALSE(rules.among_own);
}

TEST(PodRulesTest, APodApartFromItsLikeIsAloneOnItsNode) {
  PodSpec pod;
  pod.apart_from_pods = {By("kubernetes.io/hostname", kSelectsWeb)};
  const PodRules rules = Made(pod);
  EXPECT_EQ(rules.rules,
            R"({"apart":[{"key":"kubernetes.io/hostname",)"
            R"("pods":{"expressions":[],"labels":{"app":"web"}}}]})");
  EXPECT_TRUE(rules.one_per_node);
  EXPECT_FALSE(rules.among_own) << "its like is kept away by the node that it has alone";
  EXPECT_FALSE(Made(pod, {{"app", "db"}}).one_per_node) << "it may have company of its own";
}

TEST(PodRulesTest, RulesBeyondTheNodeAreKeptAmongItsOwnPods) {
  PodSpec zone;
  zone.apart_from_pods = {By("zone", kSelectsWeb)};
  EXPECT_TRUE(Made(zone).among_own);
  EXPECT_FALSE(Made(zone, {{"app", "db"}}).among_own);
  PodSpec spread;
  spread.spread = {{.pods = kSelectsWeb, .topology_key = "zone", .max_skew = 2, .min_domains = 3}};
  EXPECT_TRUE(Made(spread).among_own);
  EXPECT_EQ(Made(spread).rules,
            R"({"spread":[{"affinity":true,"domains":3,"key":"zone",)"
            R"("pods":{"expressions":[],"labels":{"app":"web"}},"skew":2,"taints":false}]})");
}

// As the API server merges them into the selector of a pod; once it has, nothing is added.
TEST(PodRulesTest, LabelKeysBecomeExpressions) {
  PodSpec pod;
  PodTerm term = By("zone", {});
  term.same_keys = {"app", "absent"};
  term.other_keys = {"tier"};
  pod.beside_pods = {term};
  const StringMap labels = {{"app", "web"}, {"tier", "a"}};
  const PodRules rules = Made(pod, labels);
  EXPECT_EQ(rules.rules,
            R"({"beside":[{"key":"zone","pods":{"expressions":[)"
            R"({"key":"app","op":"In","values":["web"]},)"
            R"({"key":"tier","op":"NotIn","values":["a"]}],"labels":{}}}]})");
  pod.beside_pods[0].pods->expressions = {{"app", "In", {"web"}}, {"tier", "NotIn", {"a"}}};
  EXPECT_EQ(Made(pod, labels).rules, rules.rules);
}

TEST(PodRulesTest, ARuleWithoutASelectorIsAboutNoPods) {
  PodSpec pod;
  pod.apart_from_pods = {{.pods = std::nullopt, .topology_key = "zone"}};
  EXPECT_EQ(Made(pod).rules,
            R"({"apart":[{"key":"zone","pods":{"expressions":[)"
            R"({"key":"zone","op":"In","values":[]}],"labels":{}}}]})");
}

TEST(PodRulesTest, PodsOfOtherNamespacesAreRefused) {
  PodSpec pod;
  pod.apart_from_pods = {By("zone", kSelectsWeb)};
  pod.apart_from_pods[0].namespaces = {"lab"};
  EXPECT_EQ(Refusal(pod), "");
  pod.apart_from_pods[0].namespaces = {"lab", "other"};
  EXPECT_EQ(Refusal(pod),
            "spec.affinity.podAntiAffinity: a required term: looks at pods of other namespaces "
            "(lab, other), which cannot be queued for; allowed is the pod's own, \"lab\": leave "
            "namespaces and namespaceSelector out");
  pod.apart_from_pods[0].namespaces = {};
  pod.apart_from_pods[0].selects_namespaces = true;
  EXPECT_NE(Refusal(pod).find("(namespaceSelector)"), std::string::npos);
}

TEST(PodRulesTest, TooManyRulesAndTooLongOnesAreRefused) {
  PodSpec many;
  many.apart_from_pods.assign(17, By("zone", kSelectsWeb));
  EXPECT_EQ(Refusal(many),
            "spec.affinity, spec.topologySpreadConstraints: have 17 required rules between pods; "
            "allowed are at most 16");
  PodSpec wide;
  LabelSelector selector;
  for (int i = 0; i < 65; ++i) selector.labels[std::to_string(i)] = "x";
  wide.apart_from_pods = {By("zone", selector)};
  EXPECT_NE(Refusal(wide).find("ask for 65 labels; allowed are at most 64"), std::string::npos);
  PodSpec large;
  large.spread = {{.pods = LabelSelector{.expressions = {{"a", "In", {std::string(20'000, 'x')}}}},
                   .topology_key = "zone"}};
  EXPECT_NE(Refusal(large).find("allowed are at most 16384"), std::string::npos);
}

TEST(PodPreferencesTest, HaveTheHeaviestFirst) {
  PodSpec pod;
  EXPECT_EQ(Made(pod).preferred, "");
  PodTerm elsewhere = By("zone", kSelectsWeb);
  elsewhere.namespaces = {"other"};
  pod.preferred_pods = {{By("zone", kSelectsWeb), 5},
                        {By("rack", kSelectsWeb), -80},
                        {By("rack", kSelectsWeb), 0},
                        {elsewhere, 100}};
  pod.preferred_spread = {
      {.pods = kSelectsWeb, .topology_key = "zone", .same_keys = {"controller-uid"}}};
  EXPECT_EQ(Made(pod).preferred,
            R"({"even":[{"affinity":true,"key":"zone","pods":{"expressions":[)"
            R"({"key":"controller-uid","op":"In","values":["u-1"]}],"labels":{"app":"web"}},)"
            R"("taints":false}],"near":[)"
            R"({"key":"rack","pods":{"expressions":[],"labels":{"app":"web"}},"weight":-80},)"
            R"({"key":"zone","pods":{"expressions":[],"labels":{"app":"web"}},"weight":5}]})");
}

TEST(PodPreferencesTest, WhatIsTooMuchIsLeftOut) {
  PodSpec pod;
  pod.preferred_pods.assign(20, {By("zone", kSelectsWeb), 1});
  const auto count = [](const std::string& text) {
    size_t terms = 0;
    for (size_t at = 0; (at = text.find("\"key\":\"zone\"", at)) != std::string::npos; ++at) {
      ++terms;
    }
    return terms;
  };
  EXPECT_EQ(count(Made(pod).preferred), kMaxPodRules);
  LabelSelector wide;
  for (int i = 0; i < 40; ++i) wide.labels[std::to_string(i)] = "x";
  pod.preferred_pods = {{By("zone", wide), 1}, {By("zone", wide), 1}, {By("zone", kSelectsWeb), 1}};
  EXPECT_EQ(count(Made(pod).preferred), 2u);
  const LabelSelector long_one = {.labels = {{"a", std::string(3000, 'x')}}};
  pod.preferred_pods = {{By("zone", long_one), 1}, {By("zone", long_one), 1}};
  EXPECT_EQ(count(Made(pod).preferred), 1u);
  EXPECT_LE(Made(pod).preferred.size(), kMaxPodPreferenceBytes);
}

}  // namespace
}  // namespace fluxqueue::kubernetes
