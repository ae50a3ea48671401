#include "libs/kubernetes/jobspec.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/constraints.h"
#include "libs/kubernetes/submission.h"

namespace fluxqueue::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTerms =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

PodSpec WithTerms(std::vector<NodeTerm> terms) {
  PodSpec pod;
  pod.required_node_terms = std::move(terms);
  return pod;
}

PodSpec WithTolerations(std::vector<Toleration> tolerations) {
  PodSpec pod;
  pod.tolerations = std::move(tolerations);
  return pod;
}

TEST(Constraint, SaysWhereAPodMayRun) {
  PodSpec selected;
  selected.node_selector = {{"zone", "a"}, {"disk", "ssd"}};
  const NodeExpression in{"k", "In", {"a", "b"}};
  const NodeExpression one{"k", "In", {"a"}};
  struct Row {
    PodSpec pod;
    std::string expected;
  };
  const std::string none = R"({"tolerations":[]})";
  const Row rows[] = {
      {{}, none},
      {selected, R"({"properties":["disk=ssd","zone=a"]},)" + none},
      {WithTerms({{{one}, {}}}), R"({"properties":["k=a"]},)" + none},
      {WithTerms({{{in}, {}}}),
       R"({"or":[{"properties":["k=a"]},{"properties":["k=b"]}]},)" + none},
      {WithTerms({{{{"k", "NotIn", {"a", "b"}}}, {}}}),
       R"({"not":[{"or":[{"properties":["k=a"]},{"properties":["k=b"]}]}]},)" + none},
      {WithTerms({{{{"k", "Exists", {}}, {"l", "DoesNotExist", {}}}, {}}}),
       R"({"and":[{"properties":["k"]},{"not":[{"properties":["l"]}]}]},)" + none},
      {WithTerms({{{{"cores", "Gt", {"8"}}, {"cores", "Lt", {"065"}}}, {}}}),
       R"({"and":[{"gt":["cores=8"]},{"lt":["cores=065"]}]},)" + none},
      {WithTerms({{{{"cores", "Gt", {"many"}}, one}, {}}, {{one}, {}}}),
       R"({"properties":["k=a"]},)" + none},
      {WithTerms({{{one}, {}}, {{}, {}}, {{}, {{"metadata.name", "In", {"n1", "n2"}}}}}),
       R"({"or":[{"properties":["k=a"]},{"hostlist":["n1","n2"]}]},)" + none},
      {WithTerms({{{}, {{"metadata.name", "NotIn", {"n1"}}}}}),
       R"({"not":[{"hostlist":["n1"]}]},)" + none},
      {WithTolerations({{"d", "Equal", "batch", "NoSchedule"},
                        {"spot", "Exists", "", "NoExecute"},
                        {"gpu", "Exists", "", ""},
                        {"gpu", "Exists", "", ""},
                        {"x", "Equal", "y", ""},
                        {"soft", "Exists", "", "PreferNoSchedule"},
                        {"", "Exists", "", "NoSchedule"},
                        {"", "Exists", "", ""}}),
       R"({"tolerations":["*","*:NoSchedule","d=batch:NoSchedule","gpu","spot:NoExecute","x=y"]})"},
  };
  for (const Row& row : rows) {
    const auto constraint = MakeConstraint(row.pod);
    ASSERT_TRUE(constraint.ok()) << constraint.status();
    EXPECT_EQ(*constraint, R"({"and":[)" + row.expected + "]}");
  }
}

TEST(Preferences, AreSaidBesideTheConstraint) {
  PodSpec pod = WithTolerations({{"soft", "Exists", "", "PreferNoSchedule"},
                                 {"spot", "Exists", "", "NoSchedule"},
                                 {"", "Exists", "", "PreferNoSchedule"}});
  pod.preferred_node_terms = {
      {{{{"k", "In", {"a"}}, {"l", "DoesNotExist", {}}}, {}}, 80},
      {{{}, {{"metadata.name", "In", {"n1"}}}}, 1},
      {{}, 5},  // prefers nothing
      {{{{"cores", "Gt", {"many"}}}, {}}, 5},
  };
  const std::string preferences = MakePreferences(pod);
  EXPECT_EQ(preferences,
            R"({"terms":[{"weight":80,"constraint":{"and":[{"properties":["k=a"]},)"
            R"({"not":[{"properties":["l"]}]}]}},{"weight":1,"constraint":{"hostlist":["n1"]}}],)"
            R"("tolerations":["*:PreferNoSchedule","soft:PreferNoSchedule"]})");
  const auto demand = DemandOfPod(pod, "lab", {});
  ASSERT_TRUE(demand.ok()) << demand.status();
  EXPECT_THAT(MakeJobspec(*demand, 2, Millis(0), {.required = {}, .preferred = "rack"}),
              HasSubstr(R"({"duration":0,"topology":{"preferred":"rack"},)"
                        R"("job":{"pod":{"labels":{},"namespace":"lab"},"preferences":)" +
                        preferences + R"(},"constraints":)"));
  EXPECT_EQ(MakePreferences(PodSpec{}), "");
}

// A wish keeps no pod from running: one that cannot be heeded is left out.
TEST(Preferences, WhatIsNoneOrTooMuchIsLeftOut) {
  const NodeExpression good{"k", "Exists", {}};
  const auto preferences = [](const std::vector<PreferredTerm>& terms) {
    PodSpec pod;
    pod.preferred_node_terms = terms;
    return MakePreferences(pod);
  };
  const std::string expected = preferences({{{{good}, {}}, 7}});
  EXPECT_THAT(expected, HasSubstr(R"("terms":[{"weight":7,"constraint":{"properties":["k"]}}])"));
  const std::vector<std::string> many(kMaxPreferredValues, "v");
  const PreferredTerm bad[] = {
      {{{{"k", "Near", {"4"}}}, {}}, 1},
      {{{{"k", "In", {}}}, {}}, 1},
      {{{{"k", "Exists", {}}}, {}}, 0},
      {{{{"k", "Exists", {}}}, {}}, 101},
      {{{{"k", "In", {"no value of a label"}}}, {}}, 1},
      {{{{"", "Exists", {}}}, {}}, 1},
      {{{}, {{"metadata.name", "In", {"n[1-"}}}}, 1},
      {{{{"k", "In", {std::string(kMaxPreferencesBytes, 'x')}}}, {}}, 1},
      {{{{"k", "In", many}}, {}}, 6},  // after the heavier one there is not so much room
  };
  for (const PreferredTerm& term : bad) EXPECT_EQ(preferences({term, {{{good}, {}}, 7}}), expected);
  // Of those that are too many the heaviest.
  EXPECT_THAT(preferences({{{{good}, {}}, 7}, {{{{"k", "In", many}}, {}}, 8}}),
              AllOf(HasSubstr(R"("weight":8)"), Not(HasSubstr(R"("weight":7)"))));
  // However long it is, it is not written out.
  const std::vector<std::string> huge(100'000, "v");
  EXPECT_EQ(preferences({{{{{std::string(500'000, 'k'), "In", huge}}, {}}, 1}}), "");
  PodSpec pod = WithTolerations(
      {{std::string(kMaxPreferencesBytes, '\n'), "Exists", "", "PreferNoSchedule"}});
  EXPECT_EQ(MakePreferences(pod), "");
}

TEST(Constraint, RefusesWhatAGraphOfNodesCannotHold) {
  PodSpec port;
  port.containers.resize(1);
  port.containers[0].host_ports.assign(33, "hostport-80-tcp");
  PodSpec init_port;
  init_port.init_containers = port.containers;
  const std::string ports = "spec.containers: have 33 host ports; allowed are at most 32";
  const auto at = [](const char* rest) { return std::string(kTerms) + rest; };
  const std::pair<PodSpec, std::string> rows[] = {
      {port, ports},
      {init_port, ports},
      {WithTerms({{}, {{{"mem", "Gt", {"4G"}}}, {}}}),
       at("[1].matchExpressions: Gt on \"mem\" compares with \"4G\", which no label is more or "
          "less "
          "than; give a whole number")},
      {WithTerms({{{{"mem", "Lt", {"99999999999999999999"}}}, {}}}),
       at("[0].matchExpressions: Lt on \"mem\" compares with \"99999999999999999999\", which no "
          "label is more or less than; give a whole number")},
      {WithTerms({{{{"mem", "Lt", {"4", "5"}}}, {}}}),
       at("[0].matchExpressions: Lt on \"mem\" has 2 values; give one")},
      {WithTerms({{{{"k", "Near", {"4"}}}, {}}}),
       at("[0].matchExpressions: operator \"Near\" on \"k\": allowed are In, NotIn, Exists, "
          "DoesNotExist, Gt and Lt")},
      {WithTerms({{{{"k", "In", {}}}, {}}}),
       at("[0].matchExpressions: In on \"k\" has no values; give at least one")},
      {WithTerms({{{}, {{"metadata.uid", "In", {"a"}}}}}),
       at("[0].matchFields: In of \"metadata.uid\": allowed are In and NotIn of metadata.name")},
      {WithTerms({{}}), at(": an empty term matches no node; give an expression or remove it")},
      {WithTerms({}), at(": an empty term matches no node; give an expression or remove it")},
  };
  for (const auto& [pod, error] : rows) {
    EXPECT_EQ(Message(CheckExpressible(pod)), error);
    EXPECT_EQ(Message(MakeConstraint(pod).status()), error);
  }
}

constexpr std::string_view kJobText = R"({"metadata":{"name":"j","namespace":"lab","uid":"u1",
    "creationTimestamp":"2026-01-31T12:00:00Z","labels":{"fluxqueue.io/queue":"gpu"},
    "annotations":{"fluxqueue.io/duration":"1h"}},
  "spec":{"parallelism":4,"completions":9,"completionMode":"Indexed","template":{"spec":{
    "priority":7,"nodeSelector":{"disk":"ssd"},
    "tolerations":[{"key":"dedicated","value":"batch","effect":"NoSchedule"}],
    "containers":[{"name":"c","resources":{"requests":{"cpu":"1500m","memory":"3Gi"},
      "limits":{"nvidia.com/gpu":"1"}}}]}}}})";

TEST(Submission, OfAJobIsTheContractsJobspec) {
  const auto job = ParseJob(kJobText);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto submitted = SubmissionOf(*job, {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->spec().jobspec(),
            R"({"version":1,"resources":[{"type":"slot","count":4,"label":"pod","with":[)"
            R"({"type":"cpu","count":1500},{"type":"memory","count":3221225472},)"
            R"({"type":"nvidia.com/gpu","count":1},{"type":"pods","count":1}]}],)"
            R"("tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],)"
            R"("attributes":{"system":{"duration":3600,)"
            R"("job":{"pod":{"labels":{},"namespace":"lab"}},"constraints":{"and":[)"
            R"({"properties":["disk=ssd"]},{"tolerations":["dedicated=batch:NoSchedule"]}]}}}})");
  EXPECT_EQ(submitted->job_id(), "u1");
  EXPECT_EQ(submitted->queue(), "gpu");
  EXPECT_EQ(submitted->priority(), 7);
  EXPECT_EQ(submitted->duration_ms(), 3'600'000);
  EXPECT_EQ(submitted->spec().slots(), 4U);
  EXPECT_EQ(submitted->spec().revision(), 1U);
  EXPECT_EQ(submitted->created_ms(), 1'769'860'800'000);
  const auto& workload = submitted->workload();
  EXPECT_EQ(workload.kind(), "Job");
  EXPECT_EQ(workload.completions(), 9);
  EXPECT_TRUE(workload.indexed() && workload.recreatable());
  EXPECT_FALSE(workload.suspended() || workload.controlled() || submitted->hold());
}

TEST(Submission, TakesTheShortestDeadlineWhereNoDurationIsSaid) {
  Job job;
  EXPECT_FALSE(SubmissionOf(job, {})->has_duration_ms());
  job.pod.active_deadline_s = 60;
  EXPECT_EQ(SubmissionOf(job, {})->duration_ms(), 60'000);
  job.active_deadline_s = 30;
  EXPECT_EQ(SubmissionOf(job, {})->duration_ms(), 30'000);
  job.pod.active_deadline_s = 0;
  job.active_deadline_s = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(SubmissionOf(job, {})->duration_ms(), int64_t{100} * 365 * 24 * 3'600'000);
  job.meta.annotations = {{"fluxqueue.io/duration", "0"}};
  EXPECT_TRUE(SubmissionOf(job, {})->has_duration_ms());
  EXPECT_EQ(SubmissionOf(job, {})->duration_ms(), 0);
}

TEST(Submission, AForeignSuspendIsAHold) {
  Job job;
  job.suspend = true;
  EXPECT_TRUE(SubmissionOf(job, {})->hold());
  job.meta.annotations = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
  EXPECT_FALSE(SubmissionOf(job, {})->hold());
  EXPECT_TRUE(SubmissionOf(job, {})->workload().suspended());
}

TEST(Submission, RefusesJobsThatAskForNothingOrTooMuch) {
  Job job;
  job.parallelism = 0;
  EXPECT_EQ(Message(SubmissionOf(job, {}).status()),
            "spec.parallelism: 0 asks for nothing; use at least 1, and fluxqueue.io/hold=\"true\" "
            "to wait");
  job.parallelism = 1;
  job.completions = 0;
  EXPECT_EQ(Message(SubmissionOf(job, {}).status()),
            "spec.completions: 0 asks for nothing; use at least 1");
  job.completions.reset();
  job.parallelism = 100'001;
  EXPECT_EQ(
      Message(SubmissionOf(job, {}).status()),
      "spec.parallelism: 100001 pods at once are more than the 100000 that one job may have; use a "
      "smaller parallelism");
  job.parallelism = 1;
  job.pod.containers.emplace_back().requests = {{"memory", *ParseQuantity("memory", "1e20")}};
  EXPECT_EQ(Message(SubmissionOf(job, {}).status()),
            "pod template: resources: 9223372036854775807 of memory is more than any node has; "
            "allowed: up to 1Ei in one pod");
  job.pod.containers.back().host_ports.assign(33, "hostport-80-tcp");
  EXPECT_TRUE(Message(SubmissionOf(job, {}).status()).starts_with("pod template: spec.containers"));
}

Job Annotated(const StringMap& annotations) {
  Job job = *ParseJob(kJobText);  // parallelism 4, completions 9, Indexed
  job.meta.annotations = annotations;
  return job;
}

TEST(Submission, ElasticJobsAndArrays) {
  const struct {
    StringMap annotations;
    uint32_t slots;
    uint32_t min_slots;
    const char* count;
  } cases[] = {
      {{{"fluxqueue.io/min-slots", "2"}}, 4, 2, R"("count":{"min":2,"max":4,"operator":"+",)"},
      {{{"fluxqueue.io/min-slots", "1"}, {"fluxqueue.io/max-slots", "3"}},
       3,
       1,
       R"("count":{"min":1,"max":3,"operator":"+","operand":1})"},
      {{{"fluxqueue.io/array", "3"}}, 3, 1, R"("count":{"min":1,"max":3,)"},
      {{{"fluxqueue.io/array", "4"}}, 4, 1, R"("count":{"min":1,"max":4,)"},
      // Nothing can grow: all or nothing, of so many at a time.
      {{{"fluxqueue.io/array", "1"}}, 1, 0, R"("count":1,)"},
      {{{"fluxqueue.io/min-slots", "4"}}, 4, 0, R"("count":4,)"},
      {{{"fluxqueue.io/min-slots", "2"}, {"fluxqueue.io/max-slots", "2"}}, 2, 0, R"("count":2,)"},
      {{{"fluxqueue.io/array", "3"}, {"fluxqueue.io/topology", "preferred: rack"}},
       3,
       1,
       R"("topology":{"preferred":"rack"})"},
  };
  for (const auto& test : cases) {
    const auto submitted = SubmissionOf(Annotated(test.annotations), {});
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    const auto& spec = submitted->spec();
    EXPECT_EQ(spec.slots(), test.slots);
    EXPECT_EQ(spec.min_slots(), test.min_slots);
    EXPECT_THAT(spec.jobspec(), HasSubstr(test.count));
    EXPECT_EQ(spec.amounts(0).amount(), 1500 * test.slots);
    EXPECT_EQ(submitted->workload().completions(), 9);
    EXPECT_TRUE(MayBeElastic(Annotated(test.annotations)));
  }
  EXPECT_FALSE(MayBeElastic(Annotated({{"fluxqueue.io/duration", "1"}})));
  Job from_template = Annotated({});
  from_template.template_annotations = {{"fluxqueue.io/array", "2"}};
  EXPECT_EQ(SubmissionOf(from_template, {})->spec().min_slots(), 1U);
  EXPECT_TRUE(MayBeElastic(from_template));
}

TEST(Submission, RefusesWhatCannotGrow) {
  const std::string at_once =
      "the pods that run at once (the lesser of spec.parallelism 4 and spec.completions 9)";
  const struct {
    StringMap annotations;
    std::string error;
  } cases[] = {
      {{{"fluxqueue.io/min-slots", "0"}},
       "fluxqueue.io/min-slots: \"0\" is no number of pods: allowed are whole numbers from 1 on"},
      {{{"fluxqueue.io/array", "3%"}},
       "fluxqueue.io/array: \"3%\" is no number of pods: allowed are whole numbers from 1 on"},
      {{{"fluxqueue.io/min-slots", "5"}},
       "fluxqueue.io/min-slots: \"5\": allowed are 1 to 4, " + at_once},
      {{{"fluxqueue.io/min-slots", "3"}, {"fluxqueue.io/max-slots", "2"}},
       "fluxqueue.io/max-slots: \"2\": allowed are 3 to 4, from fluxqueue.io/min-slots to " +
           at_once},
      {{{"fluxqueue.io/min-slots", "3"}, {"fluxqueue.io/max-slots", "5"}},
       "fluxqueue.io/max-slots: \"5\": allowed are 3 to 4, from fluxqueue.io/min-slots to " +
           at_once},
      {{{"fluxqueue.io/max-slots", "3"}},
       "fluxqueue.io/max-slots: \"3\": allowed together with fluxqueue.io/min-slots only, which "
       "says with how many pods the Job may start; for all or nothing set spec.parallelism"},
      {{{"fluxqueue.io/array", "5"}}, "fluxqueue.io/array: \"5\": allowed are 1 to 4, " + at_once},
      {{{"fluxqueue.io/array", "3"}, {"fluxqueue.io/min-slots", "1"}},
       "fluxqueue.io/array: \"3\": allowed without fluxqueue.io/min-slots and "
       "fluxqueue.io/max-slots only: a job array starts with one index, and never has more than "
       "this at a time"},
      {{{"fluxqueue.io/array", "3"}, {"fluxqueue.io/topology", "required: rack"}},
       "fluxqueue.io/topology: \"required: rack\": allowed for a Job that grows is \"preferred\" "
       "only: its later pods may find no room in the rack of the first ones"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(Message(SubmissionOf(Annotated(test.annotations), {}).status()), test.error);
  }
  Job plain = Annotated({{"fluxqueue.io/array", "3"}});
  plain.indexed = false;
  EXPECT_EQ(
      Message(SubmissionOf(plain, {}).status()),
      "fluxqueue.io/array: \"3\": allowed for Indexed Jobs (spec.completionMode: Indexed); for "
      "others use fluxqueue.io/min-slots and fluxqueue.io/max-slots");
  Pod pod;
  pod.meta.annotations = {{"fluxqueue.io/min-slots", "1"}};
  EXPECT_EQ(Message(SubmissionOf(pod).status()),
            "fluxqueue.io/min-slots: \"1\": allowed for Jobs only; remove it, or make a Job");
}

TEST(Submission, OfAPodTakesItAsItIs) {
  const auto pod = ParsePod(R"({"metadata":{"name":"p","namespace":"lab","uid":"u2"},"spec":{
      "priority":3,"activeDeadlineSeconds":5,"containers":[{"resources":{"requests":{"cpu":"1"},
      "limits":{"memory":"1Gi"}}}],"volumes":[{"name":"v","persistentVolumeClaim":{}}]}})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  PodDemand demand;
  const auto submitted = SubmissionOf(*pod, 2, &demand);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(demand.requests, (Amounts{{"cpu", 1000}, {"pods", 1}}));
  EXPECT_EQ(demand.mode, Mode::kPinned);
  EXPECT_EQ(submitted->queue(), "default");
  EXPECT_EQ(submitted->priority(), 3);
  EXPECT_EQ(submitted->duration_ms(), 5'000);
  EXPECT_EQ(submitted->spec().slots(), 1U);
  EXPECT_EQ(submitted->spec().revision(), 2U);
  EXPECT_EQ(submitted->workload().kind(), "Pod");
  EXPECT_FALSE(submitted->workload().recreatable());
}

TEST(Jobspec, DurationIsRoundedUp) {
  PodDemand demand{Mode::kDirect, {{"pods", 1}}, "{}"};
  EXPECT_THAT(MakeJobspec(demand, 1, Millis(1), {}), HasSubstr("\"duration\":1,"));
  EXPECT_THAT(MakeJobspec(demand, 1, Millis(0), {}), HasSubstr("\"duration\":0,"));
}

TEST(Jobspec, Topology) {
  const PodDemand demand{Mode::kDirect, {{"pods", 1}}, "{}"};
  EXPECT_EQ(
      MakeJobspec(demand, 2, Millis(0), {.required = "zone", .preferred = "rack"}),
      R"({"version":1,"resources":[{"type":"zone","count":1,"with":[{"type":"slot","count":2,)"
      R"("label":"pod","with":[{"type":"pods","count":1}]}]}],)"
      R"("tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],)"
      R"("attributes":{"system":{"duration":0,"topology":{"preferred":"rack"},)"
      R"("constraints":{}}}})");
}

}  // namespace
}  // namespace fluxqueue::kubernetes
