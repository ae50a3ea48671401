// Fluxqueue runs a pod where kube-scheduler would run it: random pods and nodes, kube-scheduler's
// own filters (kube-filters), and our answers beside them.
//
// Where they differ on purpose is said here, and counted:
//   refused      what the webhook refuses with a reason: its rules are about pods of other
//                namespaces, or no node could ever meet it
//   left alone   a pod that names its node is not queued
//   closed       a node that is cordoned or not ready gets nothing of ours, also where the pod
//                tolerates that; kube-scheduler goes by the taints alone
#include "tests/kubernetes/kube_scheduler.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/requests.h"
#include "tests/kubernetes/our_answers.h"
#include "tests/kubernetes/random_worlds.h"

namespace fluxqueue::kubernetes_test {
namespace {

using ::testing::Contains;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kNodeTerms =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

constexpr uint64_t kSeed = 23;
constexpr int kWorlds = 100;
constexpr int kNodes = 20;
constexpr int kPods = 50;

using Counts = std::map<std::string, int>;

// What came of all the pods.
struct Tally {
  Counts pods;     // compared, refused …
  Counts refused;  // by the field that our reason names
  Counts reasons;  // kube-scheduler's why a node is not for a pod
  std::vector<std::string> differences;
};

// The field, without its index: "spec.affinity.podAffinity"; of a container "container".
std::string FieldOf(const std::string& refusal) {
  return refusal.substr(0, refusal.find_first_of(":[ "));
}

// "Too many pods, Insufficient cpu": both. Which taint it is does not matter.
std::vector<std::string> Split(const std::string& why) {
  std::vector<std::string> reasons;
  for (size_t begin = 0; begin < why.size();) {
    const size_t end = std::min(why.find(", ", begin), why.size());
    reasons.push_back(why.substr(begin, end - begin));
    begin = end + 2;
  }
  return reasons;
}

class Comparison {
 public:
  Comparison(const json& world, const json& answer, Tally* tally)
      : world_(world), answer_(answer), tally_(*tally), nodes_(world["nodes"], answer["bound"]) {
    for (const json& runtime : world["runtimeClasses"]) {
      context_.Add(*kubernetes::ParseRuntimeClass(runtime.dump()));
    }
    for (const json& range : answer["limitRanges"]) {
      context_.Add(*kubernetes::ParseLimitRange(range.dump()));
    }
  }

  void Run() {
    for (size_t i = 0; i < world_["pods"].size(); ++i) ComparePod(i);
  }

 private:
  void ComparePod(size_t number) {
    const json& theirs = answer_["pods"][number];
    if (!theirs["invalid"].get_ref<const std::string&>().empty()) return Count("invalid");
    const auto pod = kubernetes::ParsePod(theirs["pod"].dump());
    ASSERT_TRUE(pod.ok()) << Message(pod.status());
    const kubernetes::Namespace space{"team", {{"fluxqueue.io/managed", "true"}}};
    if (!kubernetes::PodOwnership(*pod, space, {}).ours) return Count("left alone");
    const auto jobspec = JobspecOf(*pod);
    if (absl::IsInvalidArgument(jobspec.status())) return Refused(theirs, jobspec.status());
    ASSERT_TRUE(jobspec.ok()) << Message(jobspec.status());
    Count("compared");
    nodes_.SetPod(*jobspec);
    CompareNodes(theirs, *jobspec);
    CompareTemplate(number, *pod);
  }

  void Count(const std::string& what) { ++tally_.pods[what]; }

  void Refused(const json& theirs, const absl::Status& status) {
    Count("refused");
    const std::string field = FieldOf(Message(status));
    ++tally_.refused[field];
    // Of node affinity only what no node could meet.
    if (field !=
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms") {
      return;
    }
    for (const std::string why : theirs["why"]) {
      if (why.empty()) Differ(theirs, Message(status));
    }
  }

  // A template of it, completed by us, asks for what the pod has that the API server made of it.
  void CompareTemplate(size_t number, const kubernetes::Pod& made) {
    const json& theirs = answer_["pods"][number];
    auto of = kubernetes::ParsePod(world_["pods"][number].dump());
    ASSERT_TRUE(of.ok()) << Message(of.status());
    auto completed = kubernetes::CompleteTemplate(of->spec, context_);
    ASSERT_TRUE(completed.ok()) << Message(completed.status());
    const auto requests = kubernetes::EffectiveRequests(*completed);
    if (const auto real = kubernetes::EffectiveRequests(made.spec); requests != real) {
      Differ(theirs,
             fmt::format("a template of it asks for {}, the pod for {}",
                         kubernetes::FormatAmounts(requests),
                         kubernetes::FormatAmounts(real)));
    }
    of->spec = *std::move(completed);
    const auto jobspec = JobspecOf(*of);
    ASSERT_TRUE(jobspec.ok()) << Message(jobspec.status());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_.IsClosed(i) || nodes_.CanRunOn(i, *jobspec) == WhyNot(theirs, i).empty()) continue;
      Differ(theirs, fmt::format("{}: otherwise for a template of it", NameOf(i)));
    }
  }

  void CompareNodes(const json& theirs, const graph::Jobspec& jobspec) {
    std::vector<bool> can(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const std::string why = WhyNot(theirs, i);
      for (const std::string& reason : Split(why)) ++tally_.reasons[reason];
      can[i] = nodes_.CanRunOn(i, jobspec);
      if (nodes_.IsClosed(i)) {
        if (can[i]) Differ(theirs, fmt::format("{} is closed", NameOf(i)));
        if (why.empty()) Count("closed to what tolerates it");
      } else if (can[i] != why.empty()) {
        Differ(theirs,
               fmt::format("{} is {} for us; kube-scheduler: '{}'; {}",
                           NameOf(i),
                           can[i] ? "open" : "not open",
                           why,
                           world_["nodes"][i].dump()));
      }
    }
    const int place = nodes_.Place(jobspec);
    const auto any = std::count(can.begin(), can.end(), true);
    if (place < 0 ? any > 0 : !can[place]) Differ(theirs, fmt::format("it is given {}", place));
    Count(any == 0 ? "no node" : "some nodes");
  }

  static std::string WhyNot(const json& theirs, size_t node) { return theirs["why"][node]; }
  std::string NameOf(size_t node) const { return world_["nodes"][node]["metadata"]["name"]; }

  void Differ(const json& theirs, const std::string& what) {
    constexpr size_t kShown = 5;
    if (tally_.differences.size() == kShown) return Count("more differences");
    tally_.differences.push_back(fmt::format("{}\n  {}", what, theirs["pod"]["spec"].dump()));
  }

  const json& world_;
  const json& answer_;
  Tally& tally_;
  OurNodes nodes_;
  kubernetes::TemplateContext context_;
};

Tally CompareAll() {
  RandomWorlds random(kSeed);
  std::vector<json> worlds;
  worlds.reserve(kWorlds);
  for (int i = 0; i < kWorlds; ++i) worlds.push_back(random.Next(kNodes, kPods));
  const auto answers = AskKubeScheduler(worlds);
  Tally tally;
  if (!answers.ok()) {
    ADD_FAILURE() << Message(answers.status());
    return tally;
  }
  for (size_t i = 0; i < worlds.size(); ++i) Comparison(worlds[i], (*answers)[i], &tally).Run();
  return tally;
}

std::string Text(const char* of, const Counts& counts) {
  std::string text = fmt::format("{}\n", of);
  for (const auto& [what, count] : counts) text += fmt::format("{:7} {}\n", count, what);
  return text;
}

void ExpectManyPods(const Tally& tally) {
  // A test in which most are refused, or run nowhere, is none.
  constexpr int kAll = kWorlds * kPods;
  EXPECT_THAT(tally.pods, Contains(Pair("compared", Gt(kAll * 3 / 4))));
  EXPECT_THAT(tally.pods, Contains(Pair("some nodes", Gt(kAll * 2 / 5))));
  EXPECT_THAT(tally.pods, Contains(Pair("no node", Gt(kAll / 10))));
  EXPECT_THAT(tally.pods, Contains(Pair("invalid", Lt(kAll / 10))));
}

void ExpectFewRefusals(const Tally& tally) {
  EXPECT_THAT(tally.refused,
              UnorderedElementsAre(Pair(kNodeTerms, Gt(20)),
                                   Pair("spec.affinity.podAffinity", Gt(20)),
                                   Pair("spec.affinity.podAntiAffinity", Gt(20))));
}

void ExpectAllReasons(const Tally& tally) {
  for (const char* reason :
       {"Insufficient cpu",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/foo",
        "Insufficient hugepages-2Mi",
        "Insufficient memory",
        "Insufficient nvidia.com/gpu",
        "Too many pods",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) had untolerated taint(s)",
        "node(s) were unschedulable"}) {
    EXPECT_THAT(tally.reasons, Contains(Pair(reason, Gt(100))));
  }
}

TEST(KubeScheduler, RunsAPodWhereWeDo) {
  const Tally tally = CompareAll();
  EXPECT_THAT(tally.differences, IsEmpty());
  SCOPED_TRACE(Text("pods", tally.pods) + Text("refused", tally.refused) +
               Text("nodes", tally.reasons));
  ExpectManyPods(tally);
  ExpectFewRefusals(tally);
  ExpectAllReasons(tally);
}

}  // namespace
}  // namespace fluxqueue::kubernetes_test
