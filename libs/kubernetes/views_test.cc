#include "libs/kubernetes/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/node.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr std::string_view kPodText = R"({
  "metadata": {"name": "a-0", "namespace": "lab", "uid": "u1", "resourceVersion": "42",
    "creationTimestamp": "2026-01-31T12:00:00Z", "deletionTimestamp": "2026-01-31T13:00:00+01:00",
    "labels": {"batch.kubernetes.io/job-completion-index": "3"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"},
      {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "j1", "controller": true}]},
  "spec": {"schedulerName": "fluxqueue", "nodeName": "n1", "priority": -5, "hostNetwork": true,
    "schedulingGates": [{"name": "fluxqueue.io/gate"}], "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "value": "b"}, {"operator": "Exists"}],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "containers": [{"name": "c", "ports": [{"containerPort": 80}, {"hostPort": 81}],
      "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2"}}}],
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [],
        "preferredDuringSchedulingIgnoredDuringExecution": [
          {"weight": 9, "podAffinityTerm": {"topologyKey": "rack"}}]},
      "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "namespaces": ["lab"], "namespaceSelector": {},
         "matchLabelKeys": ["hash"], "mismatchLabelKeys": ["tenant"],
         "labelSelector": {"matchLabels": {"app": "web"},
           "matchExpressions": [{"key": "tier", "operator": "Exists"}]}}],
        "preferredDuringSchedulingIgnoredDuringExecution": [
          {"weight": 3, "podAffinityTerm": {"topologyKey": "host"}}]},
      "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference":
          {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}}]}},
    "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway", "topologyKey": "s"},
      {"whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone", "maxSkew": 2, "minDomains": 3,
       "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}],
    "volumes": [{"name": "e", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {}}],
    "resourceClaims": [{"name": "rc"}]},
  "status": {"phase": "Failed", "reason": "Evicted", "startTime": "2026-01-31T12:00:01Z",
    "conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "False"},
      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-31T12:00:02Z"}}}]}})";

TEST(PodView, HasWhatWeUse) {
  const auto read = ParsePod(kPodText);
  ASSERT_TRUE(read.ok()) << read.status();
  const Pod& pod = *read;
  EXPECT_EQ(pod.meta.namespace_name, "lab");
  EXPECT_EQ(pod.meta.created_ms, 1'769'860'800'000);
  EXPECT_EQ(pod.meta.deleted_ms, pod.meta.created_ms);  // one hour east
  ASSERT_NE(pod.meta.Controller(), nullptr);
  EXPECT_EQ(pod.meta.Controller()->uid, "j1");
  EXPECT_EQ(pod.Index(), 3);
  EXPECT_TRUE(pod.Bound());
  EXPECT_TRUE(pod.Ended());
  EXPECT_EQ(pod.spec.priority, -5);
  EXPECT_EQ(pod.spec.gates, std::vector<std::string>{"fluxqueue.io/gate"});
  EXPECT_EQ(pod.spec.tolerations[0].op, "Equal");
  EXPECT_TRUE(pod.spec.init_containers[0].sidecar);
  EXPECT_EQ(pod.spec.containers[0].requests, (Amounts{{"cpu", 1000}, {"memory", 1 << 30}}));
  EXPECT_EQ(pod.spec.containers[0].limits, (Amounts{{"nvidia.com/gpu", 2}}));
  EXPECT_THAT(pod.spec.containers[0].host_ports,
              testing::ElementsAre("hostport-80-tcp", "hostport-81-tcp"));
  EXPECT_TRUE(pod.spec.beside_pods.empty());
  ASSERT_EQ(pod.spec.apart_from_pods.size(), 1u);
  const PodTerm& apart = pod.spec.apart_from_pods[0];
  EXPECT_EQ(apart.pods->labels, (StringMap{{"app", "web"}}));
  EXPECT_EQ(apart.pods->expressions[0].op, "Exists");
  EXPECT_EQ(apart.topology_key, "zone");
  EXPECT_EQ(apart.namespaces, std::vector<std::string>{"lab"});
  EXPECT_TRUE(apart.selects_namespaces);
  EXPECT_EQ(apart.same_keys, std::vector<std::string>{"hash"});
  EXPECT_EQ(apart.other_keys, std::vector<std::string>{"tenant"});
  ASSERT_EQ(pod.spec.preferred_node_terms.size(), 1u);
  EXPECT_EQ(pod.spec.preferred_node_terms[0].weight, 7);
  EXPECT_EQ(pod.spec.preferred_node_terms[0].term.fields[0].values[0], "n");
  ASSERT_TRUE(pod.spec.required_node_terms);
  EXPECT_EQ((*pod.spec.required_node_terms)[0].expressions[0].values[0], "v");
  ASSERT_EQ(pod.spec.preferred_pods.size(), 2u);
  EXPECT_EQ(pod.spec.preferred_pods[0].weight, 9);
  EXPECT_EQ(pod.spec.preferred_pods[0].term.topology_key, "rack");
  EXPECT_EQ(pod.spec.preferred_pods[1].weight, -3) << "of an anti-affinity";
  ASSERT_EQ(pod.spec.preferred_spread.size(), 1u);
  EXPECT_EQ(pod.spec.preferred_spread[0].topology_key, "s");
  ASSERT_EQ(pod.spec.spread.size(), 1u) << "ScheduleAnyway is no rule";
  EXPECT_EQ(pod.spec.spread[0].topology_key, "zone");
  EXPECT_FALSE(pod.spec.spread[0].pods);
  EXPECT_EQ(pod.spec.spread[0].max_skew, 2);
  EXPECT_EQ(pod.spec.spread[0].min_domains, 3);
  EXPECT_FALSE(pod.spec.spread[0].heeds_affinity);
  EXPECT_TRUE(pod.spec.spread[0].heeds_taints);
  EXPECT_EQ(pod.spec.claim_volume, "p");
  EXPECT_EQ(pod.spec.ephemeral_volume, "");
  EXPECT_EQ(pod.spec.resource_claim, "rc");
  EXPECT_TRUE(pod.status.disruption_target);
  EXPECT_FALSE(pod.status.ready);
  EXPECT_EQ(pod.status.waits_because, kUnschedulable);
  EXPECT_EQ(pod.status.finished_ms - pod.status.started_ms, 1000);
}

TEST(PodView, MissingAndNullAreDefaults) {
  for (const char* text : {"{}",
                           R"({"metadata":null,"spec":null,"status":null})",
                           R"({"spec":{"containers":null,"nodeSelector":null,"affinity":{}}})",
                           R"({"spec":{"containers":[null]}})"}) {
    EXPECT_TRUE(ParsePod(text).ok()) << text << ParsePod(text).status();
  }
}

TEST(PodView, ANulInATextIsNone) {
  const auto pod = ParsePod(
      R"({"metadata": {"name": "a", "annotations": {"k\u0000": "a\u0000b"}},
          "spec": {"containers": [{"resources": {"requests": {"x.io/\u0000": "1"}}}]}})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->meta.annotations, (StringMap{{"k\uFFFD", "a\uFFFDb"}}));
  EXPECT_EQ(pod->spec.containers[0].requests, (Amounts{{"x.io/\uFFFD", 1}}));
}

TEST(Views, ErrorsNameThePath) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"", "pod: not JSON: Empty: no JSON found"},
      {"[]", "pod: must be a JSON object"},
      {R"({"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{},{"resources":{"requests":{"cpu":"x"}}}]}})",
       "pod b/a: spec.containers[1].resources.requests.cpu: \"x\" is not a quantity; allowed are "
       "numbers "
       "such as 2, 0.5, 1500m, 3Gi, 1e3"},
      {R"({"spec":{"overhead":{"cpu":true}}})", "pod: spec.overhead.cpu: must be a quantity"},
      {R"({"spec":{"containers":{}}})", "pod: spec.containers: must be an array"},
      {R"({"spec":[]})", "pod: spec: must be an object"},
      {R"({"spec":{"nodeName":7}})", "pod: spec.nodeName: must be a string"},
      {R"({"spec":{"priority":3000000000}})",
       "pod: spec.priority: 3000000000 is outside of -2147483648 to 2147483647"},
      {R"({"spec":{"hostNetwork":"yes"}})", "pod: spec.hostNetwork: must be true or false"},
      {R"({"metadata":{"creationTimestamp":"yesterday"}})",
       "pod: metadata.creationTimestamp: \"yesterday\" is not a time such as 2026-01-31T12:00:00Z"},
      {R"({"metadata":{"creationTimestamp":"2026-02-30T12:00:00Z"}})",
       "pod: metadata.creationTimestamp: \"2026-02-30T12:00:00Z\" is not a time such as "
       "2026-01-31T12:00:00Z"},
  };
  for (const Row& row : rows) {
    const auto pod = ParsePod(row.text);
    ASSERT_FALSE(pod.ok()) << row.text;
    EXPECT_EQ(Message(pod.status()), row.error);
    EXPECT_TRUE(absl::IsInvalidArgument(pod.status()));
  }
}

TEST(JobView, HasWhatWeUse) {
  const auto job = ParseJob(R"({"metadata":{"name":"j"},"spec":{"parallelism":8,"completions":3,
      "completionMode":"Indexed","suspend":true,"activeDeadlineSeconds":60,"managedBy":"x/y",
      "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}},
      "status":{"active":2,"succeeded":1,"conditions":[{"type":"Suspended","status":"True"},
        {"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"m",
         "lastTransitionTime":"2026-01-31T12:00:00Z"}]}})");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->Slots(), 3);
  EXPECT_TRUE(job->indexed && job->suspend && job->suspended && job->has_failed && job->Ended());
  EXPECT_EQ(job->reason, "BackoffLimitExceeded");
  EXPECT_EQ(job->completed_ms, 1'769'860'800'000);
  EXPECT_EQ(job->template_labels.at("a"), "b");
  EXPECT_EQ(ParseJob(R"({"spec":{"parallelism":5}})")->Slots(), 5);
  EXPECT_EQ(ParseJob("{}")->Slots(), 1);
  EXPECT_FALSE(ParseJob(R"({"spec":{"parallelism":-1}})").ok());
}

TEST(JobView, KnowsWhetherItsPodFailurePolicyIgnoresDisruptions) {
  struct Row {
    const char* policy;
    int64_t rules;
    bool ignores;
  };
  const std::vector<Row> rows = {
      {"null", 0, false},
      {R"({"rules":null})", 0, false},
      {R"({"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]})",
       1,
       true},
      {R"({"rules":[{"action":"Ignore","onExitCodes":{"operator":"In","values":[42]}},
          {"action":"Ignore","onPodConditions":[{"type":"ConfigIssue","status":"True"},
            {"type":"DisruptionTarget","status":"True"}]}]})",
       2,
       true},
      // A pod that is told to go may exit so, and the first rule that matches decides.
      {R"({"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}},
          {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]})",
       2,
       false},
      {R"({"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"False"}]}]})",
       1,
       false},
      {R"({"rules":[{"action":"Count","onPodConditions":[{"type":"DisruptionTarget"}]}]})",
       1,
       false},
      {R"({"rules":[{"action":"Ignore","onExitCodes":{"operator":"In","values":[42]}}]})",
       1,
       false},
  };
  for (const Row& row : rows) {
    const auto job = ParseJob(std::string(R"({"spec":{"podReplacementPolicy":"Failed",)") +
                              R"("podFailurePolicy":)" + row.policy + "}}");
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->failure_rules, row.rules) << row.policy;
    EXPECT_EQ(job->ignores_disruptions, row.ignores) << row.policy;
    EXPECT_EQ(job->pod_replacement, "Failed");
  }
}

TEST(OtherViews, HaveWhatWeUse) {
  const auto range = ParseLimitRange(R"({"spec":{"limits":[{"type":"Pod","default":{"cpu":"9"}},
      {"type":"Container","default":{"cpu":"2"},"defaultRequest":{"memory":"1Gi"}}]}})");
  EXPECT_EQ(range->default_limits, (Amounts{{"cpu", 2000}}));
  EXPECT_EQ(range->default_requests, (Amounts{{"memory", 1 << 30}}));
  const auto runtime =
      ParseRuntimeClass(R"({"metadata":{"name":"kata"},"overhead":{"podFixed":{"cpu":"250m"}},
      "scheduling":{"nodeSelector":{"kata":"yes"},"tolerations":[{"key":"vm"}]}})");
  EXPECT_EQ(runtime->overhead, (Amounts{{"cpu", 250}}));
  EXPECT_EQ(runtime->node_selector, (StringMap{{"kata", "yes"}}));
  ASSERT_EQ(runtime->tolerations.size(), 1U);
  EXPECT_EQ(runtime->tolerations[0].op, "Equal");
  const auto priority =
      ParsePriorityClass(R"({"metadata":{"name":"high"},"value":100,"globalDefault":true})");
  EXPECT_TRUE(priority->value == 100 && priority->global_default);
  const auto queue = ParseFluxQueue(R"({"metadata":{"name":"q"},"spec":{"weight":2,
      "queueDepth":64,"defaultDuration":"1h","rejectAfter":"24h","reserveAfter":"0"}})");
  ASSERT_TRUE(queue.ok()) << queue.status();
  EXPECT_EQ(queue->default_duration_ms, 3'600'000);
  EXPECT_EQ(queue->queue_depth, 64U);
  EXPECT_FALSE(queue->max_duration_ms);
  EXPECT_EQ(queue->reject_after_ms, 86'400'000);
  EXPECT_EQ(queue->reserve_after_ms, 0);
  EXPECT_FALSE(queue->EndsDurations() || queue->BoundsUndeclared());
  const auto ends = ParseFluxQueue(
      R"({"spec":{"enforceDuration":"end","enforceGrace":"30s","maxDuration":"1h"}})");
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_TRUE(ends->EndsDurations() && ends->BoundsUndeclared());
  EXPECT_EQ(ends->enforce_grace_ms, 30'000);
  EXPECT_FALSE(ParseFluxQueue(R"({"spec":{"enforceDuration":"end","undeclaredDuration":"plan"}})")
                   ->BoundsUndeclared());
  EXPECT_TRUE(ParseFluxQueue(R"({"spec":{"undeclaredDuration":"bound"}})")->BoundsUndeclared());
  EXPECT_FALSE(ParseFluxQueue(R"({"spec":{"reserveAfter":"at once"}})").ok());
  EXPECT_FALSE(ParseFluxQueue(R"({"spec":{"maxDuration":"soon"}})").ok());
  const auto ordered = ParseFluxQueue(R"({"metadata":{"name":"q"},"spec":{"parent":"all",
      "order":"fair-share","halfLife":"168h","agingPeriod":"1h","predictDurations":true,
      "preemption":{"reclaim":true,"byPriority":true,"grace":"30s"},
      "guarantee":{"cpu":"8","nvidia.com/gpu":2},
      "limits":{"queue":{"cpu":"100","memory":"1Ti","gpu":8,"resources":{"example.com/fpga":1}},
                "perNamespace":{"queuedJobs":100},"perUser":{"runningJobs":4,"gpuHours":200}}}})");
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_EQ(ordered->parent, "all");
  EXPECT_EQ(ordered->order, "fair-share");
  EXPECT_EQ(ordered->half_life_ms, 604'800'000);
  EXPECT_EQ(ordered->aging_ms, 3'600'000);
  EXPECT_TRUE(ordered->predict_durations);
  EXPECT_TRUE(ordered->preempts_to_reclaim && ordered->preempts_by_priority);
  EXPECT_EQ(ordered->preemption_grace_ms, 30'000);
  EXPECT_FALSE(queue->preempts_to_reclaim || queue->preempts_by_priority);
  EXPECT_FALSE(ParseFluxQueue(R"({"spec":{"preemption":{"grace":"long"}}})").ok());
  EXPECT_EQ(ordered->guarantee, (Amounts{{"cpu", 8000}, {"nvidia.com/gpu", 2}}));
  EXPECT_EQ(
      ordered->limits.amounts,
      (Amounts{
          {"cpu", 100'000}, {"memory", int64_t{1} << 40}, {"gpu", 8}, {"example.com/fpga", 1}}));
  EXPECT_EQ(ordered->namespace_limits.queued_jobs, 100U);
  EXPECT_EQ(ordered->user_limits.running_jobs, 4U);
  EXPECT_EQ(ordered->user_limits.gpu_hours, 200);
  const auto account = ParseFluxQueue(R"({"metadata":{"name":"lab"},"spec":{
      "members":{"users":["ann"],"namespaces":["work"]},"users":[{"name":"ann","weight":3}],
      "budgets":[{"resource":"gpu","hours":1000,"period":"year","whenSpent":"warn"},
                 {"resource":"cpu","hours":5}],
      "limits":{"perJob":{"gpu":8},"perJobAtLeast":{"cpu":"500m"}},
      "qos":[{"name":"short","maxPriority":10,"maxDuration":"1h","perJob":{"memory":"1Gi"},
              "members":{"users":["bob"]}}],"defaultQos":"short"}})");
  ASSERT_TRUE(account.ok()) << account.status();
  EXPECT_TRUE(account->members.Include("ann", "x") && account->members.Include("x", "work"));
  EXPECT_FALSE(account->members.Include("x", "x") || account->qos[0].members.AreAll());
  EXPECT_EQ(account->user_weights, (std::map<std::string, int32_t>{{"ann", 3}}));
  ASSERT_EQ(account->budgets.size(), 2U);
  EXPECT_EQ(account->budgets[0].hours, 1000);
  EXPECT_EQ(account->budgets[0].period + account->budgets[0].when_spent, "yearwarn");
  EXPECT_EQ(account->most_per_job, (Amounts{{"gpu", 8}}));
  EXPECT_EQ(account->least_per_job, (Amounts{{"cpu", 500}}));
  EXPECT_EQ(account->qos[0].max_priority, 10);
  EXPECT_EQ(account->qos[0].max_duration_ms, 3'600'000);
  EXPECT_EQ(account->default_qos, "short");
  for (const char* bad : {R"({"runningJobs":-1})", R"({"cpu":"-1"})", R"({"gpuHours":-5})"}) {
    const auto refused = ParseFluxQueue(R"({"metadata":{"name":"q"},"spec":{"limits":{"perUser":)" +
                                        std::string(bad) + "}}}");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(std::string(refused.status().message()).find("fluxqueue q: spec.limits.perUser."),
              std::string::npos)
        << refused.status();
  }
  EXPECT_EQ(ParseMeta(R"({"metadata":{"uid":"u"}})")->uid, "u");
}

// The CRD refuses most of it. Told with the key, the value and what is allowed.
TEST(ViewsTest, AFluxQueueSaysWhomItIsFor) {
  const auto queue = ParseFluxQueue(R"({"metadata":{"name":"q"},"spec":{
      "namespaceSelector":{"matchLabels":{"team":"lab"},
        "matchExpressions":[{"key":"tier","operator":"NotIn","values":["old","test"]},
                            {"key":"locked","operator":"DoesNotExist"}]},
      "subjects":[{"kind":"Group","name":"physics","verbs":["submit","view"]},
                  {"kind":"ServiceAccount","name":"ci","namespace":"build","verbs":["cancel"]}],
      "namespaceQuota":{"jobs":5,"jobspecBytes":"64Mi"},"claimQuota":9,"claimBytes":"16Mi"}})");
  ASSERT_TRUE(queue.ok()) << queue.status();
  const LabelSelector& selector = *queue->namespace_selector;
  EXPECT_EQ(selector.Text(), "team=lab,tier notin (old,test),!locked");
  EXPECT_TRUE(selector.Selects({{"team", "lab"}}));
  EXPECT_TRUE(selector.Selects({{"team", "lab"}, {"tier", "new"}}));
  EXPECT_FALSE(selector.Selects({{"team", "lab"}, {"tier", "test"}}));
  EXPECT_FALSE(selector.Selects({{"team", "lab"}, {"locked", ""}}));
  EXPECT_FALSE(selector.Selects({{"team", "other"}}));
  EXPECT_FALSE(selector.Selects({}));
  ASSERT_EQ(queue->subjects.size(), 2);
  EXPECT_TRUE(queue->subjects[0].Is("ann", {"chemistry", "physics"}));
  EXPECT_FALSE(queue->subjects[0].Is("physics", {"chemistry"}));
  EXPECT_TRUE(queue->subjects[0].Has("view"));
  EXPECT_FALSE(queue->subjects[1].Has("view"));
  EXPECT_TRUE(queue->subjects[1].Is("system:serviceaccount:build:ci", {}));
  EXPECT_FALSE(queue->subjects[1].Is("system:serviceaccount:other:ci", {}));
  EXPECT_EQ(queue->namespace_quota.jobs, 5);
  EXPECT_EQ(queue->namespace_quota.jobspec_bytes, int64_t{64} << 20);
  EXPECT_EQ(queue->claim_quota, 9);
  EXPECT_EQ(queue->claim_bytes, int64_t{16} << 20);
  const auto open = ParseFluxQueue(R"({"spec":{"namespaceSelector":{}}})");
  EXPECT_TRUE(open->namespace_selector->Selects({}));
  EXPECT_FALSE(ParseFluxQueue(R"({"spec":{}})")->namespace_selector);
}

TEST(Views, AFluxQueueBoundsPriorities) {
  const auto queue = ParseFluxQueue(R"({"metadata": {"name": "q"}, "spec": {"maxPriority": 5}})");
  ASSERT_TRUE(queue.ok()) << queue.status();
  EXPECT_EQ(queue->max_priority, 5);
}

TEST(Views, FluxQueuesThatCannotBe) {
  struct Case {
    const char* spec;
    const char* problem;
  };
  for (const Case& bad : std::vector<Case>{
           {R"({"budgets":[{"resource":"gpu","hours":-1}]})",
            "spec.budgets[0].hours: -1 is outside of 0 to 2147483647"},
           {R"({"budgets":[{"resource":"gpu","hours":3000000000}]})",
            "spec.budgets[0].hours: 3000000000 is outside of 0 to 2147483647"},
           {R"({"weight":3000000000})",
            "spec.weight: 3000000000 is outside of -2147483648 to 2147483647"},
           {R"({"users":[{"name":"ann","weight":3000000000}]})",
            "spec.users[0].weight: 3000000000 is outside of -2147483648 to 2147483647"},
           {R"({"maxDuration":"900000h"})",
            "spec.maxDuration: \"900000h\" is not a duration: allowed are seconds (\"90\") or a "
            "sum "
            "of h, m, s and ms (\"1h30m\", \"90s\"), a century at most"},
           {R"({"defaultDuration":"200y"})", "spec.defaultDuration: \"200y\" is not a duration"},
           {R"({"defaultDuration":"10000000h"})", "spec.defaultDuration: \"10000000h\" is not a"},
           {R"({"qos":[{"name":"a","maxDuration":"soon"}]})",
            "spec.qos[0].maxDuration: \"soon\" is not a duration"},
           {R"({"guarantee":{"google.com/tpu":"-1"}})", "google.com/tpu"}}) {
    const auto refused =
        ParseFluxQueue(R"({"metadata":{"name":"q"},"spec":)" + std::string(bad.spec) + "}");
    ASSERT_FALSE(refused.ok()) << bad.spec;
    EXPECT_THAT(Message(refused.status()), testing::HasSubstr("fluxqueue q: "));
    EXPECT_THAT(Message(refused.status()), testing::HasSubstr(bad.problem));
  }
}

TEST(Views, FluxWindows) {
  const auto window = ParseFluxWindow(R"({"metadata":{"name":"w"},"spec":{"pool":"gpus",
      "start":"2026-11-22T20:00:00Z","end":"2026-11-22T23:30:00+01:00","nodes":["a","b"],
      "nodeSelector":{"row":"2"},"namespaces":["course"]}})");
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_EQ(window->pool, "gpus");
  EXPECT_EQ(window->end_ms - window->start_ms, 9'000'000);
  EXPECT_FALSE(window->duration_ms);
  EXPECT_EQ(window->nodes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(window->node_selector, (StringMap{{"row", "2"}}));
  EXPECT_EQ(window->namespaces, std::vector<std::string>{"course"});
  const auto lasting =
      ParseFluxWindow(R"({"spec":{"start":"2026-11-22T20:00:00Z","duration":"1h30m"}})");
  ASSERT_TRUE(lasting.ok()) << lasting.status();
  EXPECT_EQ(lasting->duration_ms, 5'400'000);
  EXPECT_EQ(lasting->end_ms, 0);
  for (const char* bad : {R"({"start":"tonight"})", R"({"duration":"long"})", R"({"nodes":"a"})"}) {
    const auto refused =
        ParseFluxWindow(R"({"metadata":{"name":"w"},"spec":)" + std::string(bad) + "}");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(std::string(refused.status().message()).find("fluxwindow w: spec."),
              std::string::npos)
        << refused.status();
  }
}

TEST(NodeView, BecomesAnEvent) {
  const auto node = ParseNode(R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7",
      "labels":{"b":"2","a":"1","fluxqueue.io/pool":"gpu"}},
      "spec":{"unschedulable":true,"taints":[{"key":"z","effect":"NoSchedule"},
        {"key":"a","value":"v","effect":"NoExecute"}]},
      "status":{"allocatable":{"cpu":"3920m","memory":"7Gi","pods":"110","nvidia.com/gpu":"0"},
        "conditions":[{"type":"MemoryPressure","status":"False"},
          {"type":"Ready","status":"True","lastTransitionTime":"2026-01-31T12:00:00Z"}]}})");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(PoolOf(*node), "gpu");
  EXPECT_EQ(node->ready_changed_ms, 1'769'860'800'000);
  const events::v1::Node event = ToEvent(*node, {{"cpu", 100}, {"pods", 1}});
  EXPECT_EQ(ToAmounts(event.allocatable()),
            (Amounts{{"cpu", 3920}, {"memory", int64_t{7} << 30}, {"pods", 110}}));
  EXPECT_EQ(ToAmounts(event.foreign()), (Amounts{{"cpu", 100}, {"pods", 1}}));
  EXPECT_EQ(event.labels(0).key(), "a");
  EXPECT_EQ(event.taints(0).key(), "a");
  EXPECT_TRUE(event.unschedulable() && event.ready());
  Node later = *node;
  later.meta.resource_version = "8";
  EXPECT_EQ(InventoryOf(event), InventoryOf(ToEvent(later, {{"cpu", 100}, {"pods", 1}})));
  EXPECT_NE(InventoryOf(event), InventoryOf(ToEvent(later, {})));
}

TEST(NodeView, AmountsBeyondAllNumbersStayNumbers) {
  const auto node = ParseNode(
      R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4","memory":"100e18"}}})");
  ASSERT_TRUE(node.ok()) << node.status();
  const events::v1::Node event = ToEvent(*node, {{"cpu", int64_t{1} << 62}});
  EXPECT_EQ(ToAmounts(event.allocatable()), (Amounts{{"cpu", 4000}, {"memory", kMostAmount}}));
  EXPECT_EQ(ToAmounts(event.foreign()), (Amounts{{"cpu", kMostAmount}}));
}

RC_GTEST_PROP(Views, OddTextNeverCrashes, (const std::string& text)) {
  (void)ParsePod(text);
  (void)ParseJob(text);
  (void)ParseNode(text);
}

TEST(JsonText, IsAlwaysValid) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x01ü"), "\"a\\\"b\\\\c\\u000a\\u0001ü\"");
  EXPECT_EQ(JsonString("\xff\xc3(\xed\xa0\x80"), R"("\ufffd\ufffd(\ufffd\ufffd\ufffd")");
  EXPECT_EQ(JsonObject({{"a", "1"}, {"b", "2"}}), R"({"a":"1","b":"2"})");
}

TEST(WhyClosedTest, ACordonAndTaintsThatAreNotTolerated) {
  const auto why = [](const std::string& node, const std::string& tolerations) {
    const auto parsed =
        ParseNode(R"({"metadata": {"name": "n", "uid": "u"}, "spec": {)" + node + "}}");
    const auto pod =
        ParsePod(R"({"metadata": {"name": "p", "uid": "u"}, "spec": {"tolerations": [)" +
                 tolerations + "]}}");
    CHECK(parsed.ok() && pod.ok(), "{} {}", node, tolerations);
    return WhyClosed(*parsed, pod->spec.tolerations).value_or("");
  };
  const std::string spot =
      R"("taints": [{"key": "spot", "value": "going", "effect": "NoExecute"}])";
  EXPECT_EQ(why("", ""), "");
  EXPECT_EQ(why(R"("unschedulable": true)", ""), "is cordoned");
  EXPECT_EQ(why(R"("unschedulable": true)",
                R"({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})"),
            "");
  EXPECT_EQ(why(spot, ""), "has the taint spot=going:NoExecute");
  EXPECT_EQ(why(spot, R"({"key": "spot", "value": "going", "effect": "NoSchedule"})"),
            "has the taint spot=going:NoExecute");
  EXPECT_EQ(why(spot, R"({"key": "spot", "value": "other"})"),
            "has the taint spot=going:NoExecute");
  EXPECT_EQ(why(spot, R"({"key": "spot", "value": "going"})"), "");
  EXPECT_EQ(why(spot, R"({"key": "spot", "operator": "Exists", "effect": "NoExecute"})"), "");
  EXPECT_EQ(why(spot, R"({"operator": "Exists"})"), "");
  EXPECT_EQ(why(R"("taints": [{"key": "spot", "effect": "PreferNoSchedule"}])", ""), "");
}

}  // namespace
}  // namespace fluxqueue::kubernetes
