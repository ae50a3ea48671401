#include "services/queue/adapters/rpc/call_judge.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/access/fake_authority.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

using access::Act;
using ::testing::HasSubstr;

// ann looks at the jobs of lab and cancels them; boss has the verbs of the queue `night`; club is
// below `account`.
class CallJudgeTest : public ::testing::Test {
 protected:
  CallJudgeTest() {
    authority_.rights = {{"ann", "get jobs lab"}, {"ann", "create jobs/cancel lab"}};
    for (const char* name : {"night", "account", "club"}) {
      authority_.queues[name].meta.name = name;
      authority_.queues[name].pool = "main";
    }
    authority_.queues["night"].subjects = {
        {.kind = "User",
         .name = "boss",
         .verbs = {"view", "cancel", "hold", "prioritise", "move", "claim"}}};
    authority_.queues["club"].parent = "account";
    authority_.spaces["lab"] = {{"team", "lab"}};
  }

  static Caller By(const std::string& user) { return {.who = {.user = user}}; }
  static events::v1::JobFact Job(const std::string& space, const std::string& queue = "night") {
    events::v1::JobFact fact;
    fact.set_job_id("id");
    fact.set_pool("main");
    fact.set_queue(queue);
    fact.set_priority(5);
    fact.set_user("ann");
    fact.mutable_workload()->set_kind(space.empty() ? "Claim" : "Job");
    fact.mutable_workload()->set_namespace_(space);
    fact.mutable_workload()->set_name("x");
    return fact;
  }
  absl::StatusCode May(const std::string& user, Act act, const events::v1::JobFact& job) {
    return judge_.MayDoTo(By(user), act, job).code();
  }
  absl::Status Move(const std::string& user, const std::string& queue, const std::string& space) {
    events::v1::CommandAccepted command;
    command.mutable_move_job()->set_queue(queue);
    return judge_.MayWant(By(user), command, Job(space));
  }
  absl::Status Prioritise(int32_t priority) {
    events::v1::CommandAccepted command;
    command.mutable_set_priority()->set_priority(priority);
    return judge_.MayWant(By("boss"), command, Job("lab", "club"));
  }
  absl::Status Claim(const std::string& user, const std::string& queue, int32_t priority = 0) {
    events::v1::SubmitClaim claim;
    claim.set_queue(queue);
    claim.set_priority(priority);
    return judge_.MayClaim(By(user), "main", claim);
  }
  // "lab night +claims", or the code.
  std::string Listed(const std::string& user, job_store::FactFilter filter) {
    const auto scope = judge_.MayList(By(user), "list", std::move(filter));
    if (!scope.ok()) return absl::StatusCodeToString(scope.status().code());
    return scope->filter.pool + " " + scope->filter.space + " " + scope->filter.queue +
           (scope->filter.claims ? " +claims" : "") + (scope->only_in_queue ? " only" : "");
  }

  static constexpr auto kOk = absl::StatusCode::kOk;
  static constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
  static constexpr auto kNotFound = absl::StatusCode::kNotFound;

  access::FakeAuthority authority_;
  CallJudge judge_{&authority_};
};

TEST_F(CallJudgeTest, AJobIsThereForThoseWhoMayLookAtIt) {
  struct Case {
    const char* user;
    Act act;
    const char* space;
    absl::StatusCode code;
  };
  for (const Case& c : {
           Case{"ann", Act::kView, "lab", kOk},
           {"ann", Act::kCancel, "lab", kOk},
           {"ann", Act::kHold, "lab", kDenied},
           {"ann", Act::kPrioritise, "lab", kDenied},
           {"ann", Act::kMove, "lab", kDenied},
           {"ann", Act::kView, "other", kNotFound},
           {"ann", Act::kCancel, "other", kNotFound},
           {"ann", Act::kPrioritise, "other", kNotFound},
           {"eve", Act::kView, "lab", kNotFound},
           {"eve", Act::kCancel, "lab", kNotFound},
           {"boss", Act::kView, "other", kOk},
           {"boss", Act::kPrioritise, "other", kOk},
           {"boss", Act::kMove, "", kOk},
           // A claim of hers.
           {"ann", Act::kView, "", kOk},
           {"ann", Act::kCancel, "", kOk},
           {"ann", Act::kHold, "", kDenied},
           {"eve", Act::kView, "", kNotFound},
           {"eve", Act::kCancel, "", kNotFound},
       }) {
    EXPECT_EQ(May(c.user, c.act, Job(c.space)), c.code)
        << c.user << " " << SubjectVerb(c.act) << " in " << c.space;
  }
}

TEST_F(CallJudgeTest, AJobThatHeMayNotSeeIsOneThatIsNotThere) {
  EXPECT_EQ(Message(judge_.MayDoTo(By("eve"), Act::kCancel, Job("lab"))),
            "there is no job id; ListJobs has those that are (with `ended`: that were)");
  EXPECT_THAT(Message(judge_.MayDoTo(By("ann"), Act::kHold, Job("lab"))),
              HasSubstr("user 'ann' may not create jobs/hold 'job-x' in namespace 'lab'"));
}

TEST_F(CallJudgeTest, AQueueOfAnotherPoolGrantsNothing) {
  authority_.queues["night"].pool = "other";
  EXPECT_EQ(May("boss", Act::kView, Job("lab")), kNotFound);
}

TEST_F(CallJudgeTest, WhatAnotherReplicaHasJudgedIsNotJudgedAgain) {
  Caller eve = By("eve");
  eve.handed_on = true;
  EXPECT_EQ(judge_.MayDoTo(eve, Act::kCancel, Job("lab")).code(), kNotFound)
      << "anybody can say that he is a replica";
  eve.judged = true;
  EXPECT_TRUE(judge_.MayDoTo(eve, Act::kCancel, Job("lab")).ok());
}

TEST_F(CallJudgeTest, WhereNobodyCanBeAskedNothingIsAllowed) {
  authority_.there = Unavailable("away");
  EXPECT_EQ(May("ann", Act::kView, Job("lab")), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Claim("boss", "night").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Listed("boss", {}), "UNAVAILABLE");
  Caller stranger{.token = "t"};
  EXPECT_EQ(judge_.Identify(&stranger).code(), absl::StatusCode::kUnavailable);
}

TEST_F(CallJudgeTest, ATokenSaysWhoCalls) {
  authority_.tokens["a"] = {.name = "ann", .groups = {"staff"}};
  authority_.tokens["forged"] = {.name = "fluxqueue:client:fluxqueue-cli.system.svc"};
  authority_.tokens["long"] = {.name = std::string(rpc::kMostUserBytes + 1, 'a')};
  Caller ann{.token = "a"};
  ASSERT_TRUE(judge_.Identify(&ann).ok());
  EXPECT_EQ(ann.who, (rpc::Caller{.user = "ann", .groups = {"staff"}}));
  Caller other{.token = "b"};
  EXPECT_EQ(judge_.Identify(&other).code(), absl::StatusCode::kUnauthenticated);
  Caller forged{.token = "forged"};
  EXPECT_EQ(judge_.Identify(&forged).code(), kDenied);
  Caller longer{.token = "long"};
  EXPECT_EQ(judge_.Identify(&longer).code(), absl::StatusCode::kInvalidArgument);
}

// A token with scopes has no rights that they do not have: what an authorizer denies, no FluxQueue
// gives, and no claim of one's own.
TEST_F(CallJudgeTest, WhatIsDeniedIsNotGranted) {
  const auto scoped = [](const std::string& user) {
    Caller caller = By(user);
    caller.who.extra = {{"scopes", {"none"}}};
    return caller;
  };
  EXPECT_EQ(judge_.MayDoTo(scoped("boss"), Act::kView, Job("lab")).code(), kNotFound);
  EXPECT_EQ(judge_.MayDoTo(scoped("ann"), Act::kCancel, Job("")).code(), kNotFound);
  EXPECT_EQ(judge_.MayList(scoped("boss"), "list", {.queue = "night"}).status().code(), kDenied);
  events::v1::SubmitClaim claim;
  claim.set_queue("night");
  EXPECT_EQ(judge_.MayClaim(scoped("boss"), "main", claim).code(), kDenied);
}

TEST_F(CallJudgeTest, ATokenKeepsItsScopes) {
  authority_.tokens["a"] = {.name = "boss", .uid = "7", .extra = {{"scopes", {"none"}}}};
  Caller boss{.token = "a"};
  ASSERT_TRUE(judge_.Identify(&boss).ok());
  EXPECT_EQ(boss.who, (rpc::Caller{.user = "boss", .uid = "7", .extra = {{"scopes", {"none"}}}}));
  EXPECT_EQ(judge_.MayDoTo(boss, Act::kView, Job("lab")).code(), kNotFound);
  authority_.tokens["many"] = {.name = "ann", .extra = {{"k", std::vector<std::string>(101, "v")}}};
  Caller many{.token = "many"};
  EXPECT_EQ(judge_.Identify(&many).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CallJudgeTest, APriorityIsBoundedByTheQueue) {
  authority_.queues["account"].max_priority = 10;
  EXPECT_TRUE(Prioritise(10).ok());
  EXPECT_EQ(Message(Prioritise(11)),
            "priority: 11 is more than FluxQueue 'account' allows; allowed: up to 10");
  authority_.queues["account"].max_priority = 3;
  EXPECT_TRUE(Prioritise(4).ok()) << "it has 5 already";
}

TEST_F(CallJudgeTest, AJobMovesWhereItMayBeSubmitted) {
  EXPECT_TRUE(Move("boss", "club", "lab").ok());
  EXPECT_EQ(Move("boss", "none", "lab").code(), kNotFound);
  authority_.queues["club"].pool = "other";
  EXPECT_EQ(Move("boss", "club", "lab").code(), kNotFound);
  authority_.queues["club"].pool = "main";
  authority_.queues["account"].namespace_selector =
      kubernetes::LabelSelector{.labels = {{"team", "lab"}}};
  EXPECT_TRUE(Move("boss", "club", "lab").ok());
  EXPECT_THAT(Message(Move("boss", "club", "other")), HasSubstr("spec.namespaceSelector"));
  EXPECT_THAT(Message(Move("boss", "club", "")), HasSubstr("spec.namespaceSelector"));
  authority_.queues["account"].namespace_selector.reset();
  authority_.queues["club"].members.users = {"bob"};
  EXPECT_THAT(Message(Move("boss", "club", "lab")), HasSubstr("spec.members"));
  authority_.queues["club"].members = {};
  authority_.queues["club"].max_priority = 4;
  EXPECT_THAT(Message(Move("boss", "club", "lab")), HasSubstr("5 is more than FluxQueue 'club'"));
}

TEST_F(CallJudgeTest, OfAMoveTheCallerOrTheMakerMaySubmit) {
  auto& subjects = authority_.queues["club"].subjects;
  subjects = {{.kind = "User", .name = "bob", .verbs = {"submit"}}};
  EXPECT_EQ(Move("boss", "club", "lab").code(), kDenied);
  subjects = {{.kind = "User", .name = "boss", .verbs = {"submit"}}};
  EXPECT_TRUE(Move("boss", "club", "lab").ok());
  subjects = {{.kind = "User", .name = "ann", .verbs = {"submit"}}};
  EXPECT_TRUE(Move("boss", "club", "lab").ok());
}

// As one that is made there.
TEST_F(CallJudgeTest, AJobMovesWhereItsLimitsAndTheQuotaHold) {
  v1::JobRow row;
  *row.mutable_fact() = Job("lab");
  row.set_duration_ms(7'200'000);
  row.set_jobspec_bytes(300);
  events::v1::Amount* cpu = row.add_amounts();
  cpu->set_resource("cpu");
  cpu->set_amount(4000);
  std::map<std::string, job_store::QueueUse> use = {
      {"night", {.jobs = 1, .jobspec_bytes = 300}},
      {"account", {.jobs = 1, .jobspec_bytes = 100}},
      {"club", {.parent = "account", .jobs = 1, .jobspec_bytes = 100}}};
  const auto move = [&](const std::string& queue) {
    return judge_.TakesAsNew(By("boss"), queue, row, use);
  };
  EXPECT_TRUE(move("club").ok());
  kubernetes::FluxQueue& club = authority_.queues["club"];
  club.max_duration_ms = 3'600'000;
  EXPECT_EQ(Message(move("club")),
            "queue: fluxqueue.io/duration: 7200s is more than FluxQueue 'club' allows; allowed: up "
            "to 3600s");
  EXPECT_EQ(move("club").code(), absl::StatusCode::kFailedPrecondition);
  club.max_duration_ms = 0;
  row.set_qos("night");
  EXPECT_THAT(Message(move("club")), HasSubstr("has no such class of QOS"));
  authority_.queues["account"].qos = {{.name = "night", .most = {{"cpu", 3000}}}};
  EXPECT_THAT(Message(move("club")), HasSubstr("allows a job at most 3"));
  authority_.queues["account"].qos = {{.name = "night", .max_duration_ms = 7'200'000}};
  EXPECT_TRUE(move("club").ok());
  authority_.queues["account"].namespace_quota.jobs = 2;
  EXPECT_THAT(Message(move("club")), HasSubstr("spec.namespaceQuota.jobs"));
  EXPECT_EQ(move("club").code(), absl::StatusCode::kResourceExhausted);
  authority_.queues["account"].namespace_quota = {.jobs = 3, .jobspec_bytes = 499};
  EXPECT_THAT(Message(move("club")), HasSubstr("spec.namespaceQuota.jobspecBytes"));
  // One that is below it already counts there.
  row.mutable_fact()->set_queue("account");
  use["account"].jobspec_bytes = 300;
  use["account"].jobs = 2;
  EXPECT_TRUE(move("club").ok()) << move("club");
  row.mutable_fact()->set_queue("club");
  club.max_duration_ms = 1;
  EXPECT_TRUE(move("club").ok()) << "it is there";
}

TEST_F(CallJudgeTest, AClaimWantsARightAndTheQueue) {
  EXPECT_TRUE(Claim("boss", "night").ok());
  EXPECT_EQ(Claim("eve", "night").code(), kDenied);
  EXPECT_EQ(Claim("boss", "club").code(), kDenied);
  authority_.rights.insert({"boss", "create claims"});
  EXPECT_TRUE(Claim("boss", "club").ok());
  EXPECT_EQ(Claim("boss", "none").code(), kNotFound);
  authority_.queues["club"].max_priority = 3;
  EXPECT_TRUE(Claim("boss", "club", 3).ok());
  EXPECT_THAT(Message(Claim("boss", "club", 4)), HasSubstr("allowed: up to 3"));
  authority_.queues["club"].subjects = {{.kind = "User", .name = "bob", .verbs = {"submit"}}};
  EXPECT_EQ(Claim("boss", "club").code(), kDenied);
  authority_.queues["night"].namespace_selector =
      kubernetes::LabelSelector{.labels = {{"team", "lab"}}};
  EXPECT_EQ(Claim("boss", "night").code(), absl::StatusCode::kFailedPrecondition);
  // A service account's claim is of its namespace.
  authority_.rights.insert({"system:serviceaccount:lab:ci", "create claims"});
  EXPECT_TRUE(Claim("system:serviceaccount:lab:ci", "night").ok());
}

TEST_F(CallJudgeTest, AListIsOfWhatHeMaySee) {
  EXPECT_EQ(Listed("ann", {.space = "lab"}), "PERMISSION_DENIED");
  authority_.rights.insert({"ann", "list jobs lab"});
  authority_.rights.insert({"olga", "list jobs"});
  authority_.rights.insert({"oscar", "list jobs"});
  authority_.rights.insert({"oscar", "list claims"});
  EXPECT_EQ(Listed("ann", {.space = "lab"}), " lab  +claims");
  EXPECT_EQ(Listed("ann", {.space = "other"}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("ann", {}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("olga", {}), "  ");
  EXPECT_EQ(Listed("oscar", {}), "   +claims");
  EXPECT_EQ(Listed("olga", {.kind = "Claim"}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("oscar", {.kind = "Claim"}), "   +claims");
  EXPECT_EQ(Listed("boss", {}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("boss", {.queue = "club"}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("boss", {.queue = "night"}), "main  night +claims only");
  EXPECT_EQ(Listed("boss", {.pool = "other", .queue = "night"}), "PERMISSION_DENIED");
  EXPECT_EQ(Listed("boss", {.space = std::string(300, 'a')}), "INVALID_ARGUMENT");
}

TEST_F(CallJudgeTest, TheLeastQuotaAboveAClaimHolds) {
  EXPECT_EQ(*judge_.QuotaFor("main", "club"), ClaimQuota());
  authority_.queues["account"].claim_quota = 7;
  EXPECT_EQ(*judge_.QuotaFor("main", "club"), ClaimQuota({.claims = 7}));
  authority_.queues["club"].claim_quota = 9;
  EXPECT_EQ(*judge_.QuotaFor("main", "club"), ClaimQuota({.claims = 7}));
  authority_.queues["club"].claim_quota = 3;
  authority_.queues["club"].claim_bytes = 4096;
  EXPECT_EQ(*judge_.QuotaFor("main", "club"), ClaimQuota({.claims = 3, .bytes = 4096}));
}

TEST_F(CallJudgeTest, QueuesAndCyclesAreAskedFor) {
  EXPECT_EQ(judge_.MaySeeQueues(By("ann"), "").code(), kDenied);
  EXPECT_EQ(judge_.MayAbandon(By("ann"), "main").code(), kDenied);
  authority_.rights = {
      {"ann", "list queues"}, {"ann", "get queues"}, {"ann", "create pools/cycle"}};
  EXPECT_TRUE(judge_.MaySeeQueues(By("ann"), "").ok());
  EXPECT_TRUE(judge_.MaySeeQueues(By("ann"), "night").ok());
  EXPECT_TRUE(judge_.MayAbandon(By("ann"), "main").ok());
}

TEST_F(CallJudgeTest, AnExplanationNamesNoJobsOfOthers) {
  v1::ExplainResponse response;
  response.set_position(3);
  for (const char* space : {"lab", "other"}) {
    v1::Job* ahead = response.add_ahead();
    // All that there is, so that a field that comes later is seen.
    const auto* fields = v1::Job::descriptor();
    for (int i = 0; i < fields->field_count(); ++i) {
      const auto* field = fields->field(i);
      if (field->is_repeated() || field->type() != field->TYPE_STRING) continue;
      ahead->GetReflection()->SetString(ahead, field, "secret");
    }
    ahead->set_namespace_(space);
    ahead->set_pool("main");
    ahead->set_queue("club");
    ahead->add_nodes("secret");
    ahead->set_slots(4);
    ahead->mutable_start()->set_seconds(5);
    ahead->mutable_duration()->set_seconds(6);
  }
  judge_.Redact(By("ann"), &response);
  ASSERT_EQ(response.ahead_size(), 2);
  EXPECT_EQ(response.ahead(0).namespace_(), "lab");
  EXPECT_EQ(response.ahead(0).name(), "secret");
  v1::Job size_and_times;
  size_and_times.set_slots(4);
  size_and_times.mutable_start()->set_seconds(5);
  size_and_times.mutable_duration()->set_seconds(6);
  size_and_times.mutable_created();
  size_and_times.mutable_updated();
  EXPECT_EQ(response.ahead(1).DebugString(), size_and_times.DebugString());
  EXPECT_EQ(response.position(), 3);
}

TEST_F(CallJudgeTest, APromiseNamesNoJobsOfOtherNamespaces) {
  const auto told = [this](const std::string& user, const std::string& space) {
    v1::GetJobResponse response;
    response.mutable_job()->set_namespace_(space);
    const auto add = [&response](const char* cause, const char* by) {
      v1::GetJobResponse::Promise* promise = response.add_promises();
      promise->set_cause(cause);
      promise->set_by(by);
    };
    add("ahead", "of lab");
    add("ahead", "of other");
    add("overrun", "gone");
    add("node", "n1");
    const auto space_of = [](const std::string& id) {
      return id.starts_with("of ") ? id.substr(3) : std::string();
    };
    judge_.Redact(By(user), space_of, &response);
    std::vector<std::string> by;
    for (const auto& promise : response.promises()) by.push_back(promise.by());
    return by;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(told("ann", "lab"), ElementsAre("of lab", "", "", "n1"));
  EXPECT_THAT(told("ann", ""), ElementsAre("", "", "", "n1")) << "claims are of no namespace";
  authority_.rights.insert({"olga", "list jobs"});
  EXPECT_THAT(told("olga", "lab"), ElementsAre("of lab", "of other", "gone", "n1"));
  authority_.there = Unavailable("away");
  EXPECT_THAT(told("olga", "lab"), ElementsAre("of lab", "", "", "n1"));
}

TEST_F(CallJudgeTest, WithoutAnAuthorityAllMayDoEverything) {
  const CallJudge nobody(nullptr);
  EXPECT_FALSE(nobody.on());
  EXPECT_TRUE(nobody.MayDoTo(By("eve"), Act::kPrioritise, Job("lab")).ok());
  EXPECT_TRUE(nobody.MayClaim(By("eve"), "main", {}).ok());
  EXPECT_TRUE(nobody.MayAbandon(By("eve"), "main").ok());
  EXPECT_TRUE(nobody.MaySeeQueues(By("eve"), "").ok());
  EXPECT_TRUE(nobody.MayList(By("eve"), "list", {})->filter.claims);
}

}  // namespace
}  // namespace fluxqueue::queue
