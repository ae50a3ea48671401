// Who may do what by gRPC, with the rights that k8s/rbac gives, tokens of a real control plane, and
// the queue's own account.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/access/cluster_authority.h"
#include "libs/rpc/caller.h"
#include "libs/rpc/testing_tls.h"
#include "libs/testing/mini_cluster.h"
#include "services/queue/testing_queue_api.h"

namespace fluxqueue::queue {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kQueue[] = "fluxqueue-queue.fluxqueue-system.svc";
constexpr char kGraph[] = "fluxqueue-graph.fluxqueue-system.svc";
// k8s/rbac/people.yaml gives it all rights.
constexpr char kCli[] = "fluxqueue-cli.fluxqueue-system.svc";

constexpr char kTenants[] = R"(apiVersion: v1
kind: Namespace
metadata: {name: a, labels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: b}
---
apiVersion: v1
kind: Namespace
metadata: {name: bb}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: claimer, namespace: bb}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: tenant, namespace: a}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: b}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: claimer, namespace: b}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: claimer-2, namespace: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: tenant, namespace: a}]
---
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: default}
spec:
  pool: main
  namespaceSelector: {}
  maxPriority: 100
  claimQuota: 1
  claimBytes: 500
  subjects:
    - {kind: ServiceAccount, name: manager, namespace: b, verbs: [view, prioritise, move, hold]}
    - {kind: Group, name: "system:serviceaccounts:b", verbs: [claim]}
    - {kind: Group, name: "system:serviceaccounts:bb", verbs: [claim]}
---
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: night}
spec:
  pool: main
  namespaceSelector: {matchLabels: {team: a}}
)";

class QueueAccessTest : public QueueApiTest {
 protected:
  static void SetUpTestSuite() {
    auto cluster = testing::MiniCluster::Start();
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    for (const char* file :
         {"namespace.yaml", "crds/fluxqueues.yaml", "rbac/queue.yaml", "rbac/people.yaml"}) {
      Kubectl({"apply", "-f", fmt::format("{}/k8s/{}", FLUXQUEUE_SOURCE_DIR, file)});
    }
    Kubectl({"wait", "--for=condition=Established", "crd/fluxqueues.fluxqueue.io"});
    Kubectl({"apply", "-f", "-"}, kTenants);

    auto config = kubernetes::ReadKubeconfig(cluster_->kubeconfig());
    ASSERT_TRUE(config.ok()) << config.status();
    config->tls.certificate = config->tls.key = "";
    config->token = Kubectl({"create", "token", "fluxqueue-queue", "-n", "fluxqueue-system"});
    client_ = std::make_unique<kubernetes::Client>(*std::move(config));
    authority_ = std::make_unique<access::ClusterAuthority>(*client_, clock_);

    tls_ = std::make_unique<rpc::TlsFolder>();
    tls_->Authority("ca");
    for (const char* name : {kQueue, kGraph, kCli}) {
      tls_->Sign("ca", name, fmt::format("subjectAltName=DNS:{}", name));
    }
    stack_ = std::make_unique<Stack>(
        Access{.tls = {Showing(kQueue).certificate, Showing(kQueue).key, tls_->Path("ca.crt")},
               .callers = {.queue = kQueue, .graph = kGraph, .clients = {kCli}},
               .authority = authority_.get(),
               .client = Showing(kCli)});
    stack_->Say("admission/watch", queue_core::QueueMade("night"));
    anybody_ = stack_->first().NewStub(Nothing());
  }
  static void TearDownTestSuite() {
    anybody_.reset();
    stack_.reset();
    tls_.reset();
    authority_.reset();
    client_.reset();
    cluster_.reset();
  }
  void TearDown() override {
    jobs_.insert(jobs_.end(), claims_.begin(), claims_.end());
    // Again, where the pool was on its way.
    Stack::WaitFor(
        [&] {
          for (const std::string& id : jobs_) Cancel(id);
          return Live() == 0;
        },
        "no live job");
  }

  static rpc::ChannelFiles Nothing() { return {.authority = tls_->Path("ca.crt"), .name = kQueue}; }
  static rpc::ChannelFiles Showing(const std::string& name) {
    rpc::ChannelFiles files = Nothing();
    files.certificate = tls_->Path(name + ".crt");
    files.key = tls_->Path(name + ".key");
    return files;
  }
  static std::string Kubectl(const std::vector<std::string>& arguments,
                             const std::string& input = "") {
    auto output = cluster_->Kubectl(arguments, input);
    EXPECT_TRUE(output.ok()) << output.status();
    if (!output.ok()) return "";
    while (!output->empty() && output->back() == '\n') output->pop_back();
    return *output;
  }
  static std::string Token(const std::string& account,
                           const std::string& space,
                           const std::string& audience = "fluxqueue") {
    return Kubectl({"create", "token", account, "-n", space, "--audience", audience});
  }

  // With a token, to a replica that sees no certificate.
  template <typename Request, typename Response>
  static grpc::Status As(const std::string& token,
                         grpc::Status (v1::Queue::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&,
                                                                 Response*),
                         const Request& request,
                         Response* response,
                         v1::Queue::Stub& stub = *anybody_) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    context.AddMetadata(rpc::kAuthorization, "Bearer " + token);
    return (stub.*method)(&context, request, response);
  }
  static grpc::Status GetAs(const std::string& token, const std::string& job_id) {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    v1::GetJobResponse response;
    return As(token, &v1::Queue::Stub::GetJob, request, &response);
  }
  static grpc::Status CancelAs(const std::string& token,
                               const std::string& job_id,
                               v1::Queue::Stub& stub = *anybody_) {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    v1::CancelJobResponse response;
    return As(token, &v1::Queue::Stub::CancelJob, request, &response, stub);
  }
  static grpc::Status PrioritiseAs(const std::string& token,
                                   const std::string& job_id,
                                   int32_t priority) {
    v1::SetPriorityRequest request;
    request.set_job_id(job_id);
    request.set_priority(priority);
    v1::SetPriorityResponse response;
    return As(token, &v1::Queue::Stub::SetPriority, request, &response);
  }
  static grpc::Status MoveAs(const std::string& token, const std::string& job_id) {
    v1::MoveRequest request;
    request.set_job_id(job_id);
    request.set_queue("night");
    v1::MoveResponse response;
    return As(token, &v1::Queue::Stub::Move, request, &response);
  }
  // How many there are; -1: he may not.
  static int ListAs(const std::string& token, const std::string& space) {
    v1::ListJobsRequest request;
    request.set_namespace_(space);
    v1::ListJobsResponse response;
    const grpc::Status status = As(token, &v1::Queue::Stub::ListJobs, request, &response);
    EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::PERMISSION_DENIED)
        << status.error_message();
    return status.ok() ? response.jobs_size() : -1;
  }
  // What a watch says first.
  static v1::WatchJobsResponse WatchAs(const std::string& token,
                                       const std::string& space,
                                       grpc::Status* status) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    context.AddMetadata(rpc::kAuthorization, "Bearer " + token);
    v1::WatchJobsRequest request;
    request.set_pool(kPool);
    request.set_namespace_(space);
    const auto stream = anybody_->WatchJobs(&context, request);
    v1::WatchJobsResponse first;
    if (stream->Read(&first)) context.TryCancel();
    *status = stream->Finish();
    return first;
  }

  // Held, as admission says it.
  std::string Job(const std::string& id, const std::string& space) {
    events::v1::Envelope message = queue_core::Submitted(id, {.hold = true, .space = space});
    auto* spec = message.mutable_job_submitted()->mutable_spec();
    spec->set_jobspec(matcher_core::JobspecText(1, 100));
    stack_->Say("admission/watch", message);
    jobs_.push_back(id);
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    Stack::WaitFor([&] { return Call(&v1::Queue::Stub::GetJob, request, &response).ok(); }, id);
    return id;
  }

  static inline RealClock clock_;
  static inline std::unique_ptr<testing::MiniCluster> cluster_;
  static inline std::unique_ptr<kubernetes::Client> client_;
  static inline std::unique_ptr<access::ClusterAuthority> authority_;
  static inline std::unique_ptr<rpc::TlsFolder> tls_;
  static inline std::unique_ptr<v1::Queue::Stub> anybody_;
  std::vector<std::string> jobs_;
};

TEST_F(QueueAccessTest, ATenantHasTheJobsOfHisNamespace) {
  const std::string token = Token("tenant", "a");
  const std::string own = Job("own", "a");
  const std::string other = Job("other", "b");
  EXPECT_TRUE(GetAs(token, own).ok());
  EXPECT_EQ(ListAs(token, "a"), 1);
  EXPECT_EQ(ListAs(token, "b"), -1);
  EXPECT_EQ(ListAs(token, ""), -1);
  grpc::Status status;
  EXPECT_EQ(WatchAs(token, "a", &status).job().id(), own);
  EXPECT_EQ(WatchAs(token, "b", &status).job().id(), "");
  EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED);
  v1::ListQueuesResponse queues;
  EXPECT_TRUE(As(token, &v1::Queue::Stub::ListQueues, v1::ListQueuesRequest(), &queues).ok());

  status = PrioritiseAs(token, own, 5);
  EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("user 'system:serviceaccount:a:tenant' may not create jobs/priority "
                        "'job-name-of-own' in namespace 'a'"));
  EXPECT_TRUE(CancelAs(token, own).ok());
  ExpectState(own, v1::STATE_CANCELLED);
  EXPECT_EQ(Get(own).job().message(), "cancelled by system:serviceaccount:a:tenant");
  EXPECT_EQ(Get(other).job().state(), v1::STATE_PENDING);
}

TEST_F(QueueAccessTest, AJobOfAnotherNamespaceIsNotThere) {
  const std::string token = Token("tenant", "a");
  const std::string other = Job("other-2", "b");
  const auto told = [&](const std::string& id, const auto& call) {
    const grpc::Status status = call(id);
    std::string text = status.error_message() + status.error_details();
    for (size_t at = text.find(id); at != std::string::npos; at = text.find(id)) {
      text.replace(at, id.size(), "ID");
    }
    return fmt::format("{} {}", static_cast<int>(status.error_code()), text);
  };
  const auto get = [&](const std::string& id) { return GetAs(token, id); };
  const auto cancel = [&](const std::string& id) { return CancelAs(token, id); };
  const auto prioritise = [&](const std::string& id) { return PrioritiseAs(token, id, 1); };
  const auto move = [&](const std::string& id) { return MoveAs(token, id); };
  EXPECT_THAT(told(other, get), HasSubstr("5 there is no job ID"));
  EXPECT_EQ(told(other, get), told("nothing", get));
  EXPECT_EQ(told(other, cancel), told("nothing", cancel));
  EXPECT_EQ(told(other, prioritise), told("nothing", prioritise));
  EXPECT_EQ(told(other, move), told("nothing", move));
  const auto find = [&](const std::string& flux_job) {
    v1::FindJobRequest request;
    request.set_namespace_("b");
    request.set_flux_job(flux_job);
    v1::FindJobResponse response;
    return As(token, &v1::Queue::Stub::FindJob, request, &response);
  };
  EXPECT_EQ(told("job-name-of-other-2", find), told("job-name-of-nothing", find));
  EXPECT_EQ(Get(other).job().state(), v1::STATE_PENDING);
}

TEST_F(QueueAccessTest, WhoSaysToBeAReplicaIsJudgedAllTheSame) {
  const std::string other = Job("other-3", "b");
  grpc::ClientContext context;
  context.AddMetadata(rpc::kAuthorization, "Bearer " + Token("tenant", "a"));
  context.AddMetadata(kHandedOn, "1");
  v1::CancelJobRequest request;
  request.set_job_id(other);
  v1::CancelJobResponse response;
  EXPECT_EQ(anybody_->CancelJob(&context, request, &response).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(QueueAccessTest, ATokenIsMadeForUs) {
  const std::string own = Job("own-2", "a");
  EXPECT_EQ(GetAs(Token("tenant", "a", "https://kubernetes.default.svc"), own).error_code(),
            StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(GetAs("a.b.c", own).error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(QueueAccessTest, ATokenEndsWithItsAccount) {
  const std::string own = Job("own-3", "a");
  Kubectl({"create", "serviceaccount", "leaver", "-n", "a"});
  Kubectl({"create",
           "rolebinding",
           "leaver",
           "-n",
           "a",
           "--clusterrole=view",
           "--serviceaccount=a:leaver"});
  const std::string token = Token("leaver", "a");
  EXPECT_TRUE(GetAs(token, own).ok());
  EXPECT_EQ(CancelAs(token, own).error_code(), StatusCode::PERMISSION_DENIED) << "he may look";
  Kubectl({"delete", "serviceaccount", "leaver", "-n", "a"});
  Stack::WaitFor([&] { return GetAs(token, own).error_code() == StatusCode::UNAUTHENTICATED; },
                 "the token to be nobody's");
}

TEST_F(QueueAccessTest, AManagerHasTheVerbsOfHisQueue) {
  const std::string token = Token("manager", "b");
  const std::string job = Job("managed", "a");
  EXPECT_TRUE(PrioritiseAs(token, job, 100).ok());
  const grpc::Status high = PrioritiseAs(token, job, 101);
  EXPECT_EQ(high.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(high.error_message(),
            "priority: 101 is more than FluxQueue 'default' allows; allowed: up to 100");
  EXPECT_EQ(CancelAs(token, job).error_code(), StatusCode::PERMISSION_DENIED);
  const std::string of_b = Job("of-b", "b");
  EXPECT_THAT(MoveAs(token, of_b).error_message(), HasSubstr("spec.namespaceSelector"));
  EXPECT_TRUE(MoveAs(token, job).ok());
  Stack::WaitFor([&] { return Get(job).job().queue() == "night"; }, "the job in its new queue");
  EXPECT_EQ(GetAs(token, job).error_code(), StatusCode::NOT_FOUND) << "it has left his queue";
}

TEST_F(QueueAccessTest, AClaimIsItsCallers) {
  const std::string claimer = Token("claimer", "b");
  const std::string tenant = Token("tenant", "a");
  v1::SubmitClaimRequest request = ClaimRequest("of-a-caller", 1, 100);
  request.set_owner("bob");
  v1::SubmitClaimResponse response;
  EXPECT_EQ(As(tenant, &v1::Queue::Stub::SubmitClaim, request, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
  const grpc::Status made = As(claimer, &v1::Queue::Stub::SubmitClaim, request, &response);
  ASSERT_TRUE(made.ok()) << made.error_message();
  const std::string id = response.job().id();
  claims_.push_back(id);
  EXPECT_EQ(response.job().owner(), "bob");
  job_store::FactStore facts(
      {.dsn = stack_->dsn_of("queue"), .application = "test", .schema = "queue"}, 1);
  EXPECT_EQ((*facts.Find(id))->user(), "system:serviceaccount:b:claimer");

  EXPECT_TRUE(As(claimer, &v1::Queue::Stub::SubmitClaim, request, &response).ok());
  EXPECT_TRUE(response.repeated());
  v1::SubmitClaimRequest another = ClaimRequest("one-too-many", 1, 100);
  const grpc::Status refused = As(claimer, &v1::Queue::Stub::SubmitClaim, another, &response);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "claims of 'system:serviceaccount:b' that have not ended: 1; allowed: 1 "
            "(spec.claimQuota); release some, or have it raised");
  // Whoever may make accounts has any number of them.
  const grpc::Status by_another =
      As(Token("claimer-2", "b"), &v1::Queue::Stub::SubmitClaim, another, &response);
  EXPECT_EQ(by_another.error_message(), refused.error_message());
  v1::SubmitClaimResponse of_bb;
  const grpc::Status elsewhere =
      As(Token("claimer", "bb"), &v1::Queue::Stub::SubmitClaim, another, &of_bb);
  EXPECT_TRUE(elsewhere.ok()) << elsewhere.error_message();
  claims_.push_back(of_bb.job().id());
  const grpc::Status taken = Call(&v1::Queue::Stub::SubmitClaim, request, &response);
  EXPECT_EQ(taken.error_code(), StatusCode::FAILED_PRECONDITION) << "the id is another's";
  EXPECT_EQ(GetAs(tenant, id).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(CancelAs(tenant, id).error_code(), StatusCode::NOT_FOUND);
  EXPECT_TRUE(GetAs(claimer, id).ok());
  EXPECT_EQ(PrioritiseAs(claimer, id, 5).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(CancelAs(claimer, id).ok());
  ExpectState(id, v1::STATE_CANCELLED);
  v1::SubmitClaimRequest large = another;
  large.set_client_id("too-long");
  large.mutable_jobspec()->append(500, ' ');
  const grpc::Status too_long = As(claimer, &v1::Queue::Stub::SubmitClaim, large, &response);
  EXPECT_EQ(too_long.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(too_long.error_message(), HasSubstr("allowed: 500 (spec.claimBytes)"));
  another.set_client_id("in-its-place");
  EXPECT_TRUE(As(claimer, &v1::Queue::Stub::SubmitClaim, another, &response).ok());
  claims_.push_back(response.job().id());
}

TEST_F(QueueAccessTest, AReplicaHandsOnForTheTokensUser) {
  const std::string own = Job("handed-on", "a");
  const std::string other = Job("not-handed-on", "b");
  std::unique_ptr<Replica> second = stack_->MakeReplica("queue-2");
  Stack::WaitFor(
      [] { return stack_->Number("SELECT count(DISTINCT holder) FROM queue.inbox") == 2; },
      "both to hold something");
  Stack::WaitFor([&] { return stack_->first().Holds() != second->Holds(); }, "one holder");
  const Replica& away = stack_->first().Holds() ? *second : stack_->first();
  const auto stub = away.NewStub(Nothing());
  const std::string token = Token("tenant", "a");
  EXPECT_EQ(CancelAs(token, other, *stub).error_code(), StatusCode::NOT_FOUND);
  const grpc::Status status = CancelAs(token, own, *stub);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectState(own, v1::STATE_CANCELLED);
  EXPECT_EQ(Get(own).job().message(), "cancelled by system:serviceaccount:a:tenant");
  second.reset();
  Stack::WaitFor([] { return stack_->first().Holds(); }, "the first to hold the pool again");
}

// Stops the API server: the last.
TEST_F(QueueAccessTest, WithoutTheApiServerNobodyMayDoAnything) {
  const std::string own = Job("own-4", "a");
  const std::string token = Token("tenant", "a");
  ASSERT_TRUE(cluster_->KillApiServer().ok());
  EXPECT_EQ(GetAs(token, own).error_code(), StatusCode::UNAVAILABLE);
  // What was known of the command line is forgotten.
  for (const std::string& id : {own, std::string("nothing")}) {
    Stack::WaitFor([&] { return Cancel(id).error_code() == StatusCode::UNAVAILABLE; },
                   "nobody to say what the command line may do to " + id);
  }
  ASSERT_TRUE(cluster_->StartApiServer().ok());
  Stack::WaitFor([&] { return GetAs(token, own).ok(); }, "the tenant to be known again");
}

}  // namespace
}  // namespace fluxqueue::queue
