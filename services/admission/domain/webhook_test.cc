#include "services/admission/domain/webhook.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/labels.h"
#include "services/admission/domain/objects_for_test.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = Verdict::Kind;
using Change = std::function<void(json&)>;

const json kToleration = {{"key", "fluxqueue.io/dedicated"}, {"operator", "Exists"}};

TEST(WebhookTest, HoldsAPodBySchedulerName) {
  const json pod = PodJson();
  const Verdict verdict = Judge(pod);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  json want = pod;
  want["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
  want["spec"]["schedulerName"] = "fluxqueue";
  want["spec"]["tolerations"] = json::array({kToleration});
  EXPECT_EQ(Patched(pod, verdict), want);
  EXPECT_EQ(json::parse(verdict.patch).size(), 3);
}

TEST(WebhookTest, TakesSoManyAnnotationsAndNoMore) {
  json many = json::object();
  for (size_t i = 0; i < kubernetes::kMostAnnotations; ++i) many[fmt::format("a{}", i)] = "";
  json more = many;
  more["one"] = "";
  json pod = PodJson();
  json job = JobJson();
  json inner = JobJson();
  const auto judge = [&](const json& annotations) {
    pod["metadata"]["annotations"] = annotations;
    job["metadata"]["annotations"] = annotations;
    inner["spec"]["template"]["metadata"]["annotations"] = annotations;
    return std::vector{Judge(pod), Judge(job), Judge(inner)};
  };
  for (const Verdict& verdict : judge(many)) EXPECT_EQ(verdict.kind, Kind::kHold);
  for (const Verdict& verdict : judge(more)) {
    EXPECT_EQ(verdict.kind, Kind::kRefuse);
    EXPECT_THAT(verdict.message, HasSubstr("these are 501, and what is queued may have 500"));
  }
}

TEST(WebhookTest, HoldsAPodWithAClaimByAGate) {
  json pod = PodJson();
  pod["metadata"]["labels"] = {{"app", "x"}};
  pod["spec"]["tolerations"] = json::array({{{"key", "k"}, {"operator", "Exists"}}});
  pod["spec"]["volumes"] =
      json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}});
  const Verdict verdict = Judge(pod);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  json want = pod;
  want["metadata"]["labels"]["fluxqueue.io/held"] = "pinned";
  want["spec"]["schedulingGates"] = json::array({{{"name", "fluxqueue.io/gate"}}});
  want["spec"]["tolerations"].push_back(kToleration);
  EXPECT_EQ(Patched(pod, verdict), want);
}

TEST(WebhookTest, HoldsASmallJobByItsTemplate) {
  const json job = JobJson("j", 16);
  const Verdict verdict = Judge(job);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  json want = job;
  want["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
  json& inner = want["spec"]["template"];
  inner["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
  inner["spec"]["schedulerName"] = "fluxqueue";
  inner["spec"]["tolerations"] = json::array({kToleration});
  EXPECT_EQ(Patched(job, verdict), want);
}

struct SuspendCase {
  const char* name;
  Change change;
  bool suspended;  // afterwards
  bool annotated;
};

TEST(WebhookTest, SuspendsWhatIsLargeOrHasADeadline) {
  const auto parallel = [](int pods) {
    return [pods](json& job) { job["spec"]["parallelism"] = job["spec"]["completions"] = pods; };
  };
  const auto owner = [](const char* kind) {
    return [kind](json& job) {
      job["spec"]["parallelism"] = job["spec"]["completions"] = 17;
      job["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "x/v1"},
                                                         {"kind", kind},
                                                         {"name", "o"},
                                                         {"uid", "u"},
                                                         {"controller", true}}});
    };
  };
  const std::vector<SuspendCase> cases = {
      {"16 pods", parallel(16), false, false},
      {"17 pods", parallel(17), true, true},
      {"deadline", [](json& job) { job["spec"]["activeDeadlineSeconds"] = 60; }, true, true},
      {"few at once",
       [](json& job) {
         job["spec"]["parallelism"] = 4;
         job["spec"]["completions"] = 100;
       },
       false,
       false},
      {"more parallelism than completions",
       [](json& job) {
         job["spec"]["parallelism"] = 100;
         job["spec"]["completions"] = 4;
       },
       false,
       false},
      {"a work queue",
       [](json& job) {
         job["spec"]["parallelism"] = 17;
         job["spec"].erase("completions");
       },
       true,
       true},
      {"of a CronJob", owner("CronJob"), true, true},
      {"of a JobSet", owner("JobSet"), false, false},
      {"suspended by its user",
       [](json& job) {
         job["spec"]["parallelism"] = job["spec"]["completions"] = 17;
         job["spec"]["suspend"] = true;
       },
       true,
       false},
      {"made from an export of ours",
       [](json& job) {
         job["spec"]["parallelism"] = job["spec"]["completions"] = 17;
         job["spec"]["suspend"] = true;
         job["metadata"]["annotations"] = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
       },
       true,
       true},
      {"applied again with suspend: false",
       [](json& job) {
         job["spec"]["parallelism"] = job["spec"]["completions"] = 17;
         job["metadata"]["annotations"] = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
       },
       true,
       true},
  };
  for (const SuspendCase& test : cases) {
    json job = JobJson();
    test.change(job);
    const Verdict verdict = Judge(job);
    ASSERT_EQ(verdict.kind, Kind::kHold) << test.name << ": " << verdict.message;
    const json held = Patched(job, verdict);
    EXPECT_EQ(held["spec"]["suspend"], test.suspended) << test.name;
    const json annotations = held["metadata"].value("annotations", json::object());
    EXPECT_EQ(annotations.contains("fluxqueue.io/suspended-by"), test.annotated) << test.name;
    EXPECT_EQ(held["spec"]["template"]["spec"]["schedulerName"], "fluxqueue") << test.name;
  }
}

TEST(WebhookTest, SaysWhoMadeItWhateverTheObjectSays) {
  const auto owned = [](const char* kind, bool controller) {
    return json{{{"apiVersion", "x/v1"},
                 {"kind", kind},
                 {"name", "nightly"},
                 {"uid", "u"},
                 {"controller", controller}}};
  };
  struct Row {
    const char* asks;
    json owners;
    const char* want;
  };
  const std::vector<Row> rows = {
      {"ann", nullptr, "ann"},
      {"system:serviceaccount:work:ci", nullptr, "system:serviceaccount:work:ci"},
      {"system:serviceaccount:kube-system:cronjob-controller",
       owned("CronJob", true),
       "namespace:work"},
      {"system:kube-controller-manager", owned("CronJob", true), "namespace:work"},
      {"system:serviceaccount:jobset-system:jobset", owned("JobSet", true), "namespace:work"},
      // An owner that they name themselves makes nobody another.
      {"ann", owned("CronJob", true), "ann"},
      {"system:serviceaccount:work:ci", owned("CronJob", true), "system:serviceaccount:work:ci"},
      {"system:kube-controller-manager", owned("CronJob", false), "system:kube-controller-manager"},
  };
  for (const Row& row : rows) {
    json job = JobJson("j", /*parallelism=*/100);
    job["metadata"]["annotations"] = {{"fluxqueue.io/user", "somebody-else"}};
    if (!row.owners.is_null()) job["metadata"]["ownerReferences"] = row.owners;
    for (const bool annotated : {true, false}) {
      if (!annotated) job["metadata"].erase("annotations");
      Review review = ReviewOf(job);
      review.user = row.asks;
      const Verdict verdict = Decide(review, SmallCluster(), {});
      ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
      const json held = Patched(job, verdict);
      EXPECT_EQ(held["metadata"]["annotations"]["fluxqueue.io/user"], row.want);
      // What the patch made needs none.
      review.object = held.dump();
      EXPECT_EQ(Decide(review, SmallCluster(), {}).patch, "");
    }
  }
  Review review = ReviewOf(PodJson());
  review.user = "ann";
  const json pod = Patched(PodJson(), Decide(review, SmallCluster(), {}));
  EXPECT_EQ(pod["metadata"]["annotations"]["fluxqueue.io/user"], "ann");
}

TEST(WebhookTest, NamesTheTraceOfTheRequestThatMadeIt) {
  const tracing::Context span{std::string(32, 'a'), std::string(16, 'b')};
  for (json object : {PodJson(), JobJson()}) {
    object["metadata"]["annotations"] = {{"fluxqueue.io/traceparent", "a copy of another's"}};
    Review review = ReviewOf(object);
    EXPECT_EQ(Patched(object, Decide(review, SmallCluster(), {}))["metadata"]["annotations"],
              json::object());
    review.span = span;
    const json held = Patched(object, Decide(review, SmallCluster(), {}));
    EXPECT_EQ(held["metadata"]["annotations"]["fluxqueue.io/traceparent"], tracing::Format(span));
    // Asked again in the same request.
    review.object = held.dump();
    review.span->span_id = std::string(16, 'c');
    EXPECT_EQ(Decide(review, SmallCluster(), {}).patch, "");
  }
}

TEST(WebhookTest, ItsOwnOutputNeedsNoPatch) {
  json pinned = PodJson();
  pinned["spec"]["volumes"] =
      json::array({{{"name", "v"}, {"ephemeral", {{"volumeClaimTemplate", json::object()}}}}});
  json labelled = JobJson("l", 2);
  labelled["metadata"]["labels"] = {{"fluxqueue.io/queue", "night"}};
  for (const json& object : {PodJson(), pinned, JobJson("a", 1), JobJson("b", 50), labelled}) {
    const Verdict first = Judge(object);
    ASSERT_EQ(first.kind, Kind::kHold) << first.message;
    EXPECT_FALSE(first.patch.empty());
    const Verdict second = Judge(Patched(object, first));
    EXPECT_EQ(second.kind, Kind::kHold) << second.message;
    EXPECT_EQ(second.patch, "") << object.dump();
  }
}

TEST(WebhookTest, AcceptsGenerateName) {
  json pod = PodJson();
  pod["metadata"].erase("name");
  pod["metadata"].erase("uid");
  pod["metadata"]["generateName"] = "p-";
  EXPECT_EQ(Judge(pod).kind, Kind::kHold);
}

json OwnedPod(const char* api_version, const char* kind) {
  json pod = PodJson();
  pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", api_version},
                                                     {"kind", kind},
                                                     {"name", "o"},
                                                     {"uid", "u"},
                                                     {"controller", true}}});
  return pod;
}

TEST(WebhookTest, LeavesAloneWhatIsNotOurs) {
  const auto with = [](json object, const Change& change) {
    change(object);
    return object;
  };
  const auto optout = [](json& object) {
    object["metadata"]["labels"] = {{"fluxqueue.io/managed", "false"}};
  };
  const std::vector<std::pair<const char*, json>> cases = {
      {"another namespace", with(PodJson(), [](json& p) { p["metadata"]["namespace"] = "free"; })},
      {"kube-system", with(JobJson(), [](json& j) { j["metadata"]["namespace"] = "kube-system"; })},
      {"ours",
       with(PodJson(),
            [](json& p) {
              p["metadata"]["namespace"] = "fluxqueue-system";
              p["metadata"]["labels"] = {{"fluxqueue.io/queue", "default"}};
            })},
      {"opted out", with(PodJson(), optout)},
      {"job opted out", with(JobJson(), optout)},
      {"template opted out",
       with(JobJson(),
            [](json& j) {
              j["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/managed", "false"}};
            })},
      {"bound", with(PodJson(), [](json& p) { p["spec"]["nodeName"] = "n1"; })},
  };
  for (const auto& [name, object] : cases) {
    const Verdict verdict = Judge(object);
    EXPECT_EQ(verdict.kind, Kind::kLeave) << name << ": " << verdict.message;
    EXPECT_EQ(verdict.patch, "") << name;
  }
}

constexpr const char* kJobController = "system:serviceaccount:kube-system:job-controller";
constexpr const char* kDaemonSetController =
    "system:serviceaccount:kube-system:daemon-set-controller";

TEST(WebhookTest, WhoMakesAPodSaysWhetherItIsLeftToItsOwner) {
  json mirror = PodJson();
  mirror["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "x"}};
  struct Row {
    json pod;
    const char* user;
    bool by_node;
    Kind want;
  };
  const std::vector<Row> rows = {
      {OwnedPod("batch/v1", "Job"), kJobController, false, Kind::kLeave},
      {OwnedPod("batch/v1", "Job"), "system:kube-controller-manager", false, Kind::kLeave},
      {OwnedPod("batch/v1", "Job"), "ann", false, Kind::kRefuse},
      {OwnedPod("batch/v1", "Job"), kDaemonSetController, false, Kind::kRefuse},
      {OwnedPod("apps/v1", "DaemonSet"), kDaemonSetController, false, Kind::kLeave},
      {OwnedPod("apps/v1", "DaemonSet"), "ann", false, Kind::kHold},
      {OwnedPod("apps/v1", "DaemonSet"), kJobController, false, Kind::kHold},
      {mirror, "system:node:n1", true, Kind::kLeave},
      {mirror, "ann", false, Kind::kHold},
  };
  for (const Row& row : rows) {
    Review review = ReviewOf(row.pod);
    review.user = row.user;
    if (row.by_node) review.groups = {"system:nodes"};
    const Verdict verdict = Decide(review, SmallCluster(), {});
    EXPECT_EQ(verdict.kind, row.want) << row.user << ": " << row.pod.dump() << verdict.message;
    const bool refused = row.want == Kind::kRefuse;
    EXPECT_THAT(verdict.message, HasSubstr(refused ? "ownerReferences" : ""));
    EXPECT_EQ(verdict.patch.empty(), row.want != Kind::kHold);
  }
}

TEST(WebhookTest, HoldsThePodsOfOtherControllersOneByOne) {
  struct Row {
    const char* api_version;
    const char* kind;
    const char* user;
    const char* charged;
  };
  const std::vector<Row> rows = {
      {"apps/v1",
       "ReplicaSet",
       "system:serviceaccount:kube-system:replicaset-controller",
       "namespace:work"},
      {"apps/v1",
       "StatefulSet",
       "system:serviceaccount:kube-system:statefulset-controller",
       "namespace:work"},
      {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "ann", "ann"},
      {"v1", "ConfigMap", "ann", "ann"},
      {"batch.volcano.sh/v1alpha1", "Job", "ann", "ann"},
  };
  for (const Row& row : rows) {
    const json pod = OwnedPod(row.api_version, row.kind);
    Review review = ReviewOf(pod);
    review.user = row.user;
    review.group_size = 0U;
    const Verdict verdict = Decide(review, SmallCluster(), {});
    ASSERT_EQ(verdict.kind, Kind::kHold) << row.kind << ": " << verdict.message;
    const json held = Patched(pod, verdict);
    EXPECT_EQ(held["metadata"]["labels"]["fluxqueue.io/held"], "direct");
    EXPECT_EQ(held["spec"]["schedulerName"], "fluxqueue");
    EXPECT_EQ(held["metadata"]["annotations"]["fluxqueue.io/user"], row.charged);
  }
}

TEST(WebhookTest, TakesWhatIsLabelledElsewhere) {
  json job = JobJson();
  job["metadata"]["namespace"] = "free";
  job["metadata"]["labels"] = {{"fluxqueue.io/queue", "default"}};
  EXPECT_EQ(Judge(job).kind, Kind::kHold);
}

TEST(WebhookTest, AsksForASecondLookAtWhatSeemsAbsent) {
  json pod = PodJson();
  pod["metadata"]["namespace"] = "new";
  Verdict verdict = Judge(pod);
  EXPECT_EQ(verdict.kind, Kind::kLeave);
  EXPECT_EQ(verdict.absent, (Absent{Absent::Kind::kNamespace, "new"}));
  ClusterFacts facts = SmallCluster();
  facts.Upsert(kubernetes::Namespace{"new", {{"fluxqueue.io/managed", "true"}}});
  verdict = Judge(pod, facts);
  EXPECT_EQ(verdict.kind, Kind::kHold);
  EXPECT_FALSE(verdict.absent);
}

// Objects come to webhooks before they are validated.
TEST(WebhookTest, LooksUpNothingThatCannotBeAName) {
  for (const char* name : {"../../../../api/v1/pods?x=", "..", "a/b", ""}) {
    for (const char* field : {"priorityClassName", "runtimeClassName"}) {
      json job = JobJson();
      job["spec"]["template"]["spec"][field] = name;
      const Verdict verdict = Judge(job);
      EXPECT_FALSE(verdict.absent) << name;
      if (*name == '\0') continue;  // as if it were not there
      EXPECT_EQ(verdict.kind, Kind::kRefuse) << name;
      EXPECT_THAT(verdict.message, HasSubstr(field));
      EXPECT_THAT(verdict.message, HasSubstr("not the name of an object"));
    }
    Review review = ReviewOf(PodJson());
    review.space = name;
    const Verdict verdict = Decide(review, SmallCluster(), {});
    EXPECT_FALSE(verdict.absent) << name;
    EXPECT_EQ(verdict.kind, Kind::kRefuse) << name;
    EXPECT_THAT(verdict.message, HasSubstr("not the name of a namespace"));
  }
}

struct RefusalCase {
  const char* name;
  json object;
  Change change;
  std::vector<std::string> words;
};

// Its time counts from its start, not from when it came into line.
TEST(WebhookTest, SuspendsWhatItsQueueWillEnd) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  queue.max_duration_ms = 3'600'000;
  queue.enforce_duration = "end";
  facts.Upsert(queue);
  const Verdict verdict = Judge(JobJson(), facts);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  EXPECT_EQ(Patched(JobJson(), verdict)["spec"]["suspend"], true);
}

TEST(WebhookTest, RefusesWhatDeclaresNoDurationWhereTheQueueWantsOne) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  queue.max_duration_ms = 3'600'000;
  queue.undeclared_duration = "refuse";
  facts.Upsert(queue);
  const Verdict verdict = Judge(JobJson(), facts);
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message,
              HasSubstr("fluxqueue.io/duration: it is not there, and FluxQueue 'default' wants it: "
                        "say how long it may run, up to 3600s"));
  json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/duration", "30m"}};
  EXPECT_EQ(Judge(job, facts).kind, Kind::kHold);
}

// A tree lab > train; lab takes jobs of the namespace "work" and of ann.
ClusterFacts WithAccounts() {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.members = {.users = {"ann"}, .namespaces = {"work"}};
  queue.qos = {{.name = "normal", .max_priority = 10, .max_duration_ms = 3'600'000},
               {.name = "urgent", .most = {{"cpu", 2000}}, .members = {.users = {"ann"}}}};
  queue.default_qos = "normal";
  facts.Upsert(queue);
  queue = {};
  queue.meta.name = "train";
  queue.parent = "lab";
  facts.Upsert(queue);
  return facts;
}

TEST(WebhookTest, AQueueTakesJobsOfItsMembers) {
  ClusterFacts facts = WithAccounts();
  facts.Upsert(kubernetes::Namespace{"other", {{"fluxqueue.io/managed", "true"}}});
  json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/queue", "train"},
                                    {"fluxqueue.io/duration", "30m"}};
  EXPECT_EQ(Judge(job, facts).kind, Kind::kHold);
  job["metadata"]["namespace"] = "other";
  Review review = ReviewOf(job);
  review.user = "ann";
  EXPECT_EQ(Decide(review, facts, {}).kind, Kind::kHold);
  // What the object says of its user proves nothing.
  job["metadata"]["annotations"]["fluxqueue.io/user"] = "ann";
  review = ReviewOf(job);
  review.user = "eve";
  const Verdict verdict = Decide(review, facts, {});
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message,
              HasSubstr("fluxqueue.io/queue: FluxQueue 'lab' takes jobs of its members "
                        "(spec.members), and namespace 'other' and user 'eve' are none"));
}

TEST(WebhookTest, AQueueBoundsThePriorityOfItsJobs) {
  ClusterFacts facts = WithAccounts();
  kubernetes::FluxQueue queue;
  queue.meta.name = "low";
  queue.max_priority = 5;
  facts.Upsert(queue);
  queue = {};
  queue.meta.name = "below";
  queue.parent = "low";
  facts.Upsert(queue);
  json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/queue", "below"},
                                    {"fluxqueue.io/priority", "5"}};
  EXPECT_EQ(Judge(job, facts).kind, Kind::kHold);
  job["metadata"]["annotations"]["fluxqueue.io/priority"] = "2147483647";
  const Verdict verdict = Judge(job, facts);
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message,
              HasSubstr("fluxqueue.io/priority: 2147483647 is more than FluxQueue 'low' allows; "
                        "allowed: up to 5"));
  // A PriorityClass is no way around it.
  job["metadata"]["annotations"].erase("fluxqueue.io/priority");
  job["spec"]["template"]["spec"]["priorityClassName"] = "urgent";
  EXPECT_EQ(Judge(job, facts).kind, Kind::kRefuse);
}

// Nobody can be asked then whom the queue takes.
TEST(WebhookTest, AParentThatDoesNotCountOpensNoQueue) {
  json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/queue", "train"},
                                    {"fluxqueue.io/duration", "30m"}};
  job["metadata"]["namespace"] = "other";
  const auto judge = [&job](ClusterFacts facts, std::string_view pool, std::string_view parent) {
    facts.Upsert(kubernetes::Namespace{"other", {{"fluxqueue.io/managed", "true"}}});
    kubernetes::FluxQueue lab = *facts.FindQueue("lab");
    lab.pool = pool;
    lab.parent = parent;
    facts.Upsert(lab);
    return Judge(job, facts);
  };
  EXPECT_EQ(judge(WithAccounts(), "", "").kind, Kind::kRefuse);
  EXPECT_THAT(judge(WithAccounts(), "elsewhere", "").message,
              HasSubstr("its parent 'lab' takes, and that one does not count"));
  EXPECT_EQ(judge(WithAccounts(), "", "train").kind, Kind::kRefuse);
  ClusterFacts facts = WithAccounts();
  kubernetes::FluxQueue train = *facts.FindQueue("train");
  train.namespace_selector.emplace();
  facts.Upsert(train);
  EXPECT_EQ(judge(facts, "elsewhere", "").kind, Kind::kHold) << "it says itself whom it takes";
}

TEST(WebhookTest, AClassOfQosHasCeilings) {
  const ClusterFacts facts = WithAccounts();
  const auto judge = [&facts](std::map<std::string, std::string> more, std::string user) {
    json job = JobJson();
    more.emplace("fluxqueue.io/queue", "train");
    job["metadata"]["annotations"] = more;
    Review review = ReviewOf(job);
    review.user = std::move(user);
    const Verdict verdict = Decide(review, facts, {});
    return verdict.kind == Kind::kHold ? "held" : verdict.message;
  };
  const std::pair<const std::string, std::string> half_an_hour = {"fluxqueue.io/duration", "30m"};
  EXPECT_EQ(judge({half_an_hour, {"fluxqueue.io/priority", "10"}}, "eve"), "held");
  EXPECT_THAT(judge({half_an_hour, {"fluxqueue.io/priority", "11"}}, "eve"),
              HasSubstr("fluxqueue.io/priority: 11 is more than class 'normal' of QOS allows; "
                        "allowed: up to 10"));
  EXPECT_THAT(
      judge({}, "eve"),
      HasSubstr("fluxqueue.io/duration: unlimited is more than class 'normal' of QOS allows; "
                "allowed: up to 3600s"));
  EXPECT_THAT(judge({{"fluxqueue.io/qos", "urgent"}}, "eve"),
              HasSubstr("fluxqueue.io/qos: class 'urgent' is for its members"));
  EXPECT_THAT(
      judge({{"fluxqueue.io/qos", "urgent"}}, "ann"),
      HasSubstr("fluxqueue.io/qos: it asks for cpu 4, and class 'urgent' of QOS allows a job "
                "at most 2"));
  EXPECT_THAT(judge({{"fluxqueue.io/qos", "gold"}}, "ann"),
              HasSubstr("fluxqueue.io/qos: 'gold': FluxQueue 'train' has no such class of QOS; "
                        "allowed: normal, urgent"));
}

TEST(WebhookTest, RefusesInWords) {
  const auto annotate = [](const char* key, const char* value) {
    return [=](json& object) { object["metadata"]["annotations"] = {{key, value}}; };
  };
  const auto label = [](const char* key, const char* value) {
    return [=](json& object) { object["metadata"]["labels"] = {{key, value}}; };
  };
  const std::vector<RefusalCase> cases = {
      {"duration",
       JobJson(),
       annotate("fluxqueue.io/duration", "soon"),
       {"fluxqueue.io/duration", "soon", "1h30m"}},
      {"a duration beyond a century",
       JobJson(),
       annotate("fluxqueue.io/duration", "10000000h"),
       {"fluxqueue.io/duration", "\"10000000h\"", "a century at most"}},
      {"a duration in years",
       PodJson(),
       annotate("fluxqueue.io/duration", "200y"),
       {"fluxqueue.io/duration", "\"200y\"", "h, m, s and ms"}},
      {"priority",
       PodJson(),
       annotate("fluxqueue.io/priority", "high"),
       {"fluxqueue.io/priority", "high", "whole numbers"}},
      {"hold",
       PodJson(),
       annotate("fluxqueue.io/hold", "yes"),
       {"fluxqueue.io/hold", "yes", "true"}},
      {"typing error", PodJson(), label("fluxqueue.io/que", "default"), {"fluxqueue.io/que"}},
      {"queue",
       JobJson(),
       label("fluxqueue.io/queue", "nihgt"),
       {"fluxqueue.io/queue", "nihgt", "default, night"}},
      {"a group of no size",
       PodJson(),
       label("fluxqueue.io/group-name", "g"),
       {"fluxqueue.io/group-name", "fluxqueue.io/group-size"}},
      {"a group of Jobs",
       JobJson(),
       label("fluxqueue.io/group-name", "g"),
       {"fluxqueue.io/group-name", "allowed for pods only", "spec.template.metadata"}},
      {"too long for its queue",
       JobJson(),
       [](json& job) {
         job["metadata"]["annotations"] = {{"fluxqueue.io/queue", "night"},
                                           {"fluxqueue.io/duration", "2h"}};
       },
       {"fluxqueue.io/duration", "7200s", "night", "3600s"}},
      {"unlimited",
       JobJson(),
       [](json& job) {
         job["metadata"]["annotations"] = {{"fluxqueue.io/queue", "night"},
                                           {"fluxqueue.io/duration", "0"}};
       },
       {"unlimited", "night"}},
      {"an array of pods that have no index",
       JobJson(),
       annotate("fluxqueue.io/array", "2"),
       {"fluxqueue.io/array", "2", "Indexed"}},
      {"an elastic Job that is too small",
       JobJson("j", 3),
       annotate("fluxqueue.io/min-slots", "4"),
       {"fluxqueue.io/min-slots", "4", "1 to 3", "spec.parallelism 3"}},
      {"an elastic pod",
       PodJson(),
       annotate("fluxqueue.io/min-slots", "1"),
       {"fluxqueue.io/min-slots", "Jobs only"}},
      {"a pod to be tried again",
       PodJson(),
       annotate("fluxqueue.io/ignore-disruptions", "true"),
       {"fluxqueue.io/ignore-disruptions", "true", "Jobs only"}},
      {"disruptions, neither ignored nor not",
       JobJson(),
       annotate("fluxqueue.io/ignore-disruptions", "yes"),
       {"fluxqueue.io/ignore-disruptions", "yes", "\"true\" and \"false\""}},
      {"a podFailurePolicy where containers are restarted",
       JobJson(),
       [](json& job) {
         job = AsksToIgnoreDisruptions();
         job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure";
       },
       {"fluxqueue.io/ignore-disruptions: \"true\"",
        "spec.template.spec.restartPolicy is 'OnFailure'",
        "Never"}},
      {"more rules than a podFailurePolicy has",
       JobJson(),
       [](json& job) {
         job = AsksToIgnoreDisruptions();
         job["spec"]["podFailurePolicy"]["rules"] = json(20, json{{"action", "Count"}});
       },
       {"fluxqueue.io/ignore-disruptions: \"true\"", "spec.podFailurePolicy has 20 rules", "20"}},
      {"no pods",
       JobJson(),
       [](json& job) { job["spec"]["parallelism"] = 0; },
       {"spec.parallelism", "0"}},
      {"class",
       JobJson(),
       [](json& job) { job["spec"]["template"]["spec"]["priorityClassName"] = "nope"; },
       {"priorityClassName", "nope"}},
      {"runtime",
       PodJson(),
       [](json& pod) { pod["spec"]["runtimeClassName"] = "nope"; },
       {"runtimeClassName", "nope"}},
      {"gate",
       JobJson(),
       [](json& job) {
         job["spec"]["template"]["spec"]["schedulingGates"] = json::array({{{"name", "x/y"}}});
       },
       {"schedulingGates", "x/y"}},
      {"pods of another namespace",
       PodJson(),
       [](json& pod) {
         const json term = {{"topologyKey", "zone"}, {"namespaces", {"other"}}};
         pod["spec"]["affinity"]["podAntiAffinity"]
            ["requiredDuringSchedulingIgnoredDuringExecution"] = json::array({term});
       },
       {"spec.affinity.podAntiAffinity", "other namespaces (other)"}},
      {"quantity",
       PodJson(),
       [](json& pod) { pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"; },
       {"much"}},
  };
  for (const RefusalCase& test : cases) {
    json object = test.object;
    test.change(object);
    const Verdict verdict = Judge(object);
    EXPECT_EQ(verdict.kind, Kind::kRefuse) << test.name;
    for (const std::string& word : test.words) {
      EXPECT_THAT(verdict.message, HasSubstr(word)) << test.name;
    }
  }
}

TEST(WebhookTest, RefusesAJobspecThatIsTooLarge) {
  const Verdict verdict = Judge(JobJson(), SmallCluster(), {.max_jobspec_bytes = 100});
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("100"));
}

// Less than a megabyte of values would be 60 MB of constraints, which nobody writes out to see that
// they are too many.
TEST(WebhookTest, RefusesAnAffinityBeforeItHasGrown) {
  json pod = PodJson();
  json values = json::array();
  for (int i = 0; i < 200'000; ++i) values.push_back("v");
  const json expression = {{"key", std::string(300, 'k')}, {"operator", "In"}, {"values", values}};
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms", json::array({{{"matchExpressions", json::array({expression})}}})}};
  const Verdict verdict = Judge(pod);
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("each value with its key"));
  EXPECT_LE(verdict.message.size(), 1024);
}

TEST(WebhookTest, AnUnreadableObjectThatIsNotOursIsNotRefused) {
  json pod = PodJson();
  pod["metadata"]["namespace"] = "free";
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much";
  EXPECT_EQ(Judge(pod).kind, Kind::kLeave);
}

TEST(WebhookTest, WarnsOfWhatItIsNotFor) {
  Review review = ReviewOf(PodJson());
  review.resource = "daemonsets";
  review.group = "apps";
  Verdict verdict = Decide(review, SmallCluster(), {});
  EXPECT_EQ(verdict.kind, Kind::kLeave);
  ASSERT_EQ(verdict.warnings.size(), 1);
  EXPECT_THAT(verdict.warnings[0], HasSubstr("daemonsets.apps"));
  review = ReviewOf(PodJson());
  review.operation = "UPDATE";
  verdict = Decide(review, SmallCluster(), {});
  EXPECT_EQ(verdict.kind, Kind::kLeave);
  EXPECT_THAT(verdict.warnings.at(0), HasSubstr("UPDATE"));
}

TEST(WebhookTest, WarnsOfAnotherScheduler) {
  json pod = PodJson();
  pod["spec"]["schedulerName"] = "volcano";
  const Verdict verdict = Judge(pod);
  EXPECT_EQ(verdict.kind, Kind::kHold);
  EXPECT_THAT(verdict.warnings.at(0), HasSubstr("volcano"));
  EXPECT_EQ(Patched(pod, verdict)["spec"]["schedulerName"], "fluxqueue");
  pod["spec"]["schedulerName"] = "\n" + std::string(1'000'000, 'x');
  EXPECT_LT(Judge(pod).warnings.at(0).size(), 2'000U);
}

}  // namespace
}  // namespace fluxqueue::admission
