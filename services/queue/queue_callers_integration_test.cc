// Who may call the queue, and for whom, where its replicas ask for certificates.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/access/fake_authority.h"
#include "libs/rpc/caller.h"
#include "libs/rpc/testing_tls.h"
#include "services/graph/adapters/claims.h"
#include "services/queue/testing_queue_api.h"

namespace fluxqueue::queue {
namespace {

using ::testing::HasSubstr;

constexpr char kQueue[] = "fluxqueue-queue.system.svc";
constexpr char kGraph[] = "fluxqueue-graph.system.svc";
constexpr char kCli[] = "fluxqueue-cli.system.svc";

class QueueCallersTest : public QueueApiTest {
 protected:
  static void SetUpTestSuite() {
    tls_ = std::make_unique<rpc::TlsFolder>();
    tls_->Authority("ca");
    for (const char* name : {kQueue, kGraph, kCli}) {
      tls_->Sign("ca", name, fmt::format("subjectAltName=DNS:{}", name));
    }
    for (const char* right : {"get claims", "create claims", "create claims/cancel"}) {
      authority_.rights.insert({fmt::format("fluxqueue:client:{}", kCli), right});
    }
    authority_.rights.insert({"ann", "create claims"});
    authority_.queues["default"].meta.name = "default";
    authority_.queues["default"].pool = kPool;
    stack_ = std::make_unique<Stack>(
        Access{.tls = {Showing(kQueue).certificate, Showing(kQueue).key, tls_->Path("ca.crt")},
               .callers = {.queue = kQueue, .graph = kGraph, .clients = {kCli}},
               .authority = &authority_,
               .client = Showing(kCli)});
  }
  static void TearDownTestSuite() {
    stack_.reset();
    tls_.reset();
  }

  static rpc::ChannelFiles Nothing() { return {.authority = tls_->Path("ca.crt"), .name = kQueue}; }
  static rpc::ChannelFiles Showing(const std::string& name) {
    rpc::ChannelFiles files = Nothing();
    files.certificate = tls_->Path(name + ".crt");
    files.key = tls_->Path(name + ".key");
    return files;
  }

  // What it is told that cancels the job so.
  static grpc::Status CancelBy(const rpc::ChannelFiles& files,
                               const std::string& job_id,
                               const rpc::Caller& forwarded = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    if (!forwarded.user.empty()) rpc::Forward(forwarded, &context);
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    v1::CancelJobResponse response;
    return stack_->first().NewStub(files)->CancelJob(&context, request, &response);
  }
  static std::string EndOf(const std::string& job_id) {
    ExpectState(job_id, v1::STATE_CANCELLED);
    return Get(job_id).job().message();
  }

  static inline access::FakeAuthority authority_;
  static inline std::unique_ptr<rpc::TlsFolder> tls_;
};

TEST_F(QueueCallersTest, OnlyOurCertificatesAreLetIn) {
  const std::string job = Claim("kept", 1, 100).job().id();
  EXPECT_EQ(CancelBy(Nothing(), job).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CancelBy({}, job).error_code(), grpc::StatusCode::UNAVAILABLE);  // plain text
  EXPECT_EQ(CancelBy(Showing(kGraph), job).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CancelBy(Nothing(), job, {.user = "ann"}).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CancelBy(Showing(kCli), job, {.user = "ann"}).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  grpc::ClientContext context;
  const auto stub = stack_->first().NewStub(Nothing());
  const auto stream = stub->WatchJobs(&context, v1::WatchJobsRequest());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Get(job).job().state(), v1::STATE_RUNNING);
}

TEST_F(QueueCallersTest, AReplicaHandsOnForItsCaller) {
  const std::string job = Claim("handed-on", 1, 100).job().id();
  std::unique_ptr<Replica> second = stack_->MakeReplica("queue-2");
  Stack::WaitFor(
      [] { return stack_->Number("SELECT count(DISTINCT holder) FROM queue.inbox") == 2; },
      "both to hold something");
  Stack::WaitFor([&] { return stack_->first().Holds() != second->Holds(); }, "one holder");
  Replica& other = stack_->first().Holds() ? *second : stack_->first();
  v1::CancelJobRequest request;
  request.set_job_id(job);
  v1::CancelJobResponse response;
  const grpc::Status status = Call(&v1::Queue::Stub::CancelJob, request, &response, other.stub());
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(EndOf(job), fmt::format("cancelled by fluxqueue:client:{}", kCli));
  second.reset();
  Stack::WaitFor([] { return stack_->first().Holds(); }, "the first to hold the pool again");
}

TEST_F(QueueCallersTest, TheGraphServiceClaimsForItsCaller) {
  job_store::FactStore facts(
      {.dsn = stack_->dsn_of("graph"), .application = "graph", .schema = "queue"}, 1);
  peers::Peers queues({.files = Showing(kGraph)}, facts);
  rpc::WorkerPool workers(1);
  graph_service::Claims claims(queues, workers);
  const graph_service::CallInfo call{.deadline = std::chrono::system_clock::now() + kDeadline,
                                     .cancelled = [] { return false; },
                                     .caller = {.user = "ann", .groups = {"staff"}}};
  std::promise<absl::StatusOr<v1::Job>> submitted;
  claims.Submit(call,
                {.pool = kPool,
                 .client_id = "of-the-graph-service",
                 .jobspec = matcher_core::JobspecText(1, 100),
                 .duration_s = 600,
                 .named = true},
                [&](absl::StatusOr<v1::Job> job) { submitted.set_value(std::move(job)); });
  const absl::StatusOr<v1::Job> job = submitted.get_future().get();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::STATE_RUNNING);
  std::promise<absl::Status> cancelled;
  claims.Cancel(
      call, kPool, job->id(), [&](const absl::Status& status) { cancelled.set_value(status); });
  ASSERT_TRUE(cancelled.get_future().get().ok());
  EXPECT_EQ(EndOf(job->id()), "cancelled by ann");
}

// The API server does not say whose tokens they are: some calls wait for it, the others are told.
TEST_F(QueueCallersTest, StrangersWhoCannotBeToldApartAreTurnedAway) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<int> asked = 0;
  authority_.on_token = [&] {
    ++asked;
    answered.wait();
  };
  const auto stub = stack_->first().NewStub(Nothing());
  const auto show = [](grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kDeadline);
    context->AddMetadata(rpc::kAuthorization, "Bearer of-nobody");
  };
  constexpr int kThreads = 4;
  constexpr int kWaiting = 256;
  constexpr int kCalls = 300;
  struct Ask {
    grpc::ClientContext context;
    v1::ListQueuesRequest request;
    v1::ListQueuesResponse response;
  };
  std::vector<std::unique_ptr<Ask>> asks;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<grpc::Status> ended;
  const auto wait_for = [&](size_t count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kDeadline, [&] { return ended.size() >= count; }));
    return ended;
  };
  for (int i = 0; i < kCalls; ++i) {
    // Then none of those that follow is begun.
    if (i == kThreads) Stack::WaitFor([&] { return asked == kThreads; }, "threads that ask");
    Ask& ask = *asks.emplace_back(std::make_unique<Ask>());
    show(&ask.context);
    stub->async()->ListQueues(
        &ask.context, &ask.request, &ask.response, [&](const grpc::Status& status) {
          const std::lock_guard lock(mutex);
          ended.push_back(status);
          changed.notify_all();
        });
  }
  for (const grpc::Status& status : wait_for(kCalls - kThreads - kWaiting)) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("as many calls with a token wait already"));
  }
  // Commands and streams, too; and who shows a certificate waits for nobody.
  grpc::ClientContext command;
  show(&command);
  v1::CancelJobRequest request;
  request.set_job_id("some");
  v1::CancelJobResponse response;
  EXPECT_EQ(stub->CancelJob(&command, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  for (const char* pool : {kPool, "elsewhere"}) {
    grpc::ClientContext watch;
    show(&watch);
    v1::WatchJobsRequest all;
    all.set_pool(pool);
    EXPECT_EQ(stub->WatchJobs(&watch, all)->Finish().error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(CancelBy(Showing(kCli), "some").error_code(), grpc::StatusCode::NOT_FOUND);
  answer.set_value();
  const std::vector<grpc::Status> all = wait_for(kCalls);
  EXPECT_EQ(std::count_if(all.begin(),
                          all.end(),
                          [](const grpc::Status& status) {
                            return status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
                          }),
            kThreads + kWaiting);
  authority_.on_token = nullptr;
}

TEST_F(QueueCallersTest, ALargeRequestIsNotRead) {
  v1::SubmitClaimRequest request = ClaimRequest("large", 1, 100);
  request.set_pool(std::string(5 << 20, 'x'));
  v1::SubmitClaimResponse response;
  const grpc::Status status = Call(&v1::Queue::Stub::SubmitClaim, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("larger than max"));
}

}  // namespace
}  // namespace fluxqueue::queue
