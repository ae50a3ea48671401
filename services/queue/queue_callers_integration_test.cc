// Who may call the queue, and for whom, where its replicas ask for certificates.
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/rpc/caller.h"
#include "libs/rpc/testing_tls.h"
#include "services/matcher/adapters/claims.h"
#include "services/queue/testing_queue_api.h"

namespace fluxqueue::queue {
namespace {

using ::testing::HasSubstr;

constexpr char kQueue[] = "fluxqueue-queue.system.svc";
constexpr char kMatcher[] = "fluxqueue-matcher.system.svc";
constexpr char kCli[] = "fluxqueue-cli.system.svc";

class QueueCallersTest : public QueueApiTest {
 protected:
  static void SetUpTestSuite() {
    tls_ = std::make_unique<rpc::TlsFolder>();
    tls_->Authority("ca");
    for (const char* name : {kQueue, kMatcher, kCli}) {
      tls_->Sign("ca", name, fmt::format("subjectAltName=DNS:{}", name));
    }
    stack_ = std::make_unique<Stack>(
        Access{.tls = {Showing(kQueue).certificate, Showing(kQueue).key, tls_->Path("ca.crt")},
               .callers = {.queue = kQueue, .matcher = kMatcher, .clients = {kCli}},
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

  static inline std::unique_ptr<rpc::TlsFolder> tls_;
};

TEST_F(QueueCallersTest, OnlyOurCertificatesAreLetIn) {
  const std::string job = Claim("kept", 1, 100).job().id();
  EXPECT_EQ(CancelBy(Nothing(), job).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CancelBy({}, job).error_code(), grpc::StatusCode::UNAVAILABLE);  // plain text
  EXPECT_EQ(CancelBy(Showing(kMatcher), job).error_code(), grpc::StatusCode::PERMISSION_DENIED);
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

TEST_F(QueueCallersTest, TheMatcherClaimsForItsCaller) {
  job_store::FactStore facts({.dsn = stack_->dsn(), .application = "matcher", .schema = "matcher"},
                             1);
  peers::Peers queues({.files = Showing(kMatcher)}, facts);
  rpc::WorkerPool workers(1);
  matcher::Claims claims(queues, workers);
  const matcher::CallInfo call{.deadline = std::chrono::system_clock::now() + kDeadline,
                               .cancelled = [] { return false; },
                               .caller = {.user = "ann", .groups = {"staff"}}};
  std::promise<absl::StatusOr<v1::Job>> submitted;
  claims.Submit(call,
                {.pool = kPool,
                 .client_id = "of-the-matcher",
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

}  // namespace
}  // namespace fluxqueue::queue
