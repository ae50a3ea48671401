// Commands and claims by gRPC on a whole system: they take the room of real jobs, outlive services
// that die, and leave a log that verify and replay know.
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace v1 = queue::v1;

constexpr int kNodes = 4;

std::string Jobspec(int slots, int cpu_milli) {
  return fmt::format(
      R"({{"version":1,"resources":[{{"type":"slot","count":{},"label":"claim","with":[)"
      R"({{"type":"cpu","count":{}}}]}}],"tasks":[{{"command":["claim"],"slot":"claim",)"
      R"("count":{{"per_slot":1}}}}]}})",
      slots,
      cpu_milli);
}

class ClaimsTest : public SystemTest {
 protected:
  // Ready is who can work; a pool's queue is there when the service queue has read of it, and its
  // nodes when the matcher has.
  static void SetUpTestSuite() {
    StartSystem({.nodes = kNodes});
    if (system_ == nullptr) return;
    const auto known = [](const std::string& what, int count) {
      const auto rows = system_->QueryOne("SELECT count(*) FROM " + what);
      return rows.ok() && *rows == std::to_string(count);
    };
    const absl::Status settled = system_->WaitFor(
        [&] {
          return known("queue.queues WHERE queue = 'default'", 1) &&
                 known("matcher.graph_nodes WHERE present", kNodes);
        },
        30s,
        [] { return "the queue default or the nodes are not known"; });
    ASSERT_TRUE(settled.ok()) << Message(settled);
  }

  static std::unique_ptr<v1::Queue::Stub> Connect() {
    int http = 0;
    int grpc_port = 0;
    std::ifstream(system_->folder() + "/config/queue-1.ports") >> http >> grpc_port;
    // A channel of its own, which does not wait for an earlier one's backoff.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Queue::NewStub(grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", grpc_port), grpc::InsecureChannelCredentials(), arguments));
  }

  static v1::SubmitClaimRequest ClaimRequest(const std::string& client_id, int slots, int cpu) {
    v1::SubmitClaimRequest request;
    request.set_client_id(client_id);
    request.set_jobspec(Jobspec(slots, cpu));
    request.mutable_duration();  // until it is cancelled
    request.set_owner("e2e");
    return request;
  }

  template <typename Request, typename Response>
  static grpc::Status Call(v1::Queue::Stub& stub,
                           grpc::Status (v1::Queue::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&,
                                                                   Response*),
                           const Request& request,
                           Response* response,
                           std::chrono::milliseconds deadline = 30s) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    return (stub.*method)(&context, request, response);
  }

  static void Cancel(const std::string& job_id) {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    v1::CancelJobResponse response;
    const auto stub = Connect();
    const grpc::Status status = Call(*stub, &v1::Queue::Stub::CancelJob, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::string IdOf(const std::string& name) {
    const auto id =
        system_->QueryOne(fmt::format("SELECT job_id FROM queue.jobs WHERE name = '{}'", name));
    EXPECT_TRUE(id.ok()) << Message(id.status());
    return id.ok() ? *id : "";
  }
};

TEST_F(ClaimsTest, AClaimTakesTheRoomOfJobsUntilItIsCancelled) {
  const auto stub = Connect();
  v1::SubmitClaimRequest request = ClaimRequest("all of it", kNodes, 8000);
  request.set_name("everything");
  request.mutable_wait()->set_seconds(20);
  v1::SubmitClaimResponse claim;
  const grpc::Status status = Call(*stub, &v1::Queue::Stub::SubmitClaim, request, &claim);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(claim.job().state(), v1::STATE_RUNNING) << claim.job().ShortDebugString();

  Apply(JobYaml("behind"));
  const absl::Status waits =
      system_->WaitFor([&] { return MessageOf("behind").find("cpu") != std::string::npos; },
                       30s,
                       [&] { return MessageOf("behind"); });
  EXPECT_TRUE(waits.ok()) << Message(waits);
  EXPECT_EQ(StateOf("behind"), "Pending");

  // Services that compare rows with the cluster do not miss it.
  for (const char* service : {"cleanup", "binder", "admission"}) {
    ASSERT_TRUE(system_->KillService(service).ok());
    ASSERT_TRUE(system_->StartService(service).ok());
  }
  EXPECT_EQ(StateOf("everything"), "Running");
  ExpectPromisesKept();
  const auto listed = system_->Fluxqueue({"jobs"});
  ASSERT_TRUE(listed.ok());
  EXPECT_THAT(listed->output, AllOf(HasSubstr("everything"), HasSubstr("Claim")));
  const auto shown = system_->Fluxqueue({"job", "everything"});
  ASSERT_TRUE(shown.ok());
  EXPECT_THAT(shown->output,
              AllOf(HasSubstr("Claim everything"),
                    HasSubstr("Running, held until its time is over or it is cancelled"),
                    HasSubstr("Nodes of attempt 1")));

  Cancel(claim.job().id());
  ExpectState("everything", "Cancelled");
  ExpectState("behind", "Succeeded");
  EXPECT_EQ(Count("binder.jobs WHERE job_id = '" + claim.job().id() + "'"), 0);
  const auto objects = system_->Kubectl({"get", "fluxjobs", "-A", "-o", "name"});
  ASSERT_TRUE(objects.ok());
  EXPECT_THAT(*objects, ::testing::Not(HasSubstr("everything")));
}

TEST_F(ClaimsTest, CommandsOnAJobOfTheCluster) {
  Apply(JobYaml("fills",
                {.parallelism = kNodes, .completions = kNodes, .cpu = "8", .run_seconds = "600"}));
  ExpectState("fills", "Running");
  Apply(JobYaml("next", {.cpu = "8"}));
  ExpectState("next", "Pending");
  const auto stub = Connect();
  v1::HoldRequest hold;
  hold.set_job_id(IdOf("next"));
  v1::HoldResponse held;
  ASSERT_TRUE(Call(*stub, &v1::Queue::Stub::Hold, hold, &held).ok());
  Cancel(IdOf("fills"));
  ExpectState("fills", "Cancelled");
  const auto pods = system_->Kubectl(
      {"get", "pods", "-n", "e2e", "-l", "batch.kubernetes.io/job-name=fills", "-o", "name"});
  ASSERT_TRUE(pods.ok());
  EXPECT_EQ(*pods, "");
  EXPECT_EQ(StateOf("next"), "Pending");
  v1::ReleaseRequest release;
  release.set_job_id(hold.job_id());
  v1::ReleaseResponse released;
  ASSERT_TRUE(Call(*stub, &v1::Queue::Stub::Release, release, &released).ok());
  ExpectState("next", "Succeeded");
}

// Whatever was answered with OK is in the log, however often the queue dies; and what was not can
// be asked again.
TEST_F(ClaimsTest, AQueueThatIsKilledForgetsNoCommand) {
  std::mutex mutex;
  std::map<std::string, std::string> accepted;  // job id, by client id
  std::atomic<int> failures = 0;
  std::jthread client([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const std::string client_id = fmt::format("kill-{}", i);
      v1::SubmitClaimResponse response;
      const auto stub = Connect();
      const grpc::Status status =
          Call(*stub, &v1::Queue::Stub::SubmitClaim, ClaimRequest(client_id, 1, 10), &response, 1s);
      const std::lock_guard lock(mutex);
      if (status.ok()) {
        accepted[client_id] = response.job().id();
      } else {
        ++failures;
      }
    }
  });
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(700ms);
    ASSERT_TRUE(system_->KillService("queue").ok());
    ASSERT_TRUE(system_->StartService("queue").ok());
  }
  std::this_thread::sleep_for(700ms);
  client.request_stop();
  client.join();
  EXPECT_GT(accepted.size(), 5u);
  EXPECT_GT(failures, 0) << "the queue was never away";
  const auto stub = Connect();
  for (const auto& [client_id, job_id] : accepted) {
    EXPECT_EQ(Count("queue.jobs WHERE job_id = '" + job_id + "'"), 1);
    v1::SubmitClaimRequest again = ClaimRequest(client_id, 1, 10);
    again.mutable_wait()->set_seconds(20);
    v1::SubmitClaimResponse response;
    const grpc::Status status = Call(*stub, &v1::Queue::Stub::SubmitClaim, again, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.job().id(), job_id);
    EXPECT_TRUE(response.repeated());
    EXPECT_EQ(response.job().state(), v1::STATE_RUNNING);
  }
  // Also those whose answer was lost.
  const auto live = system_->Query("SELECT job_id FROM queue.jobs WHERE live");
  ASSERT_TRUE(live.ok());
  EXPECT_GE(live->size(), accepted.size());
  for (const auto& row : *live) Cancel(row[0]);
  const absl::Status ended = system_->WaitFor(
      [&] { return Count("queue.jobs WHERE live") == 0; }, 30s, [] { return "live claims"; });
  EXPECT_TRUE(ended.ok()) << Message(ended);
}

// By the command line; the replay at the end of each test plays it again.
TEST_F(ClaimsTest, ACycleWithoutAnAnswerIsAbandoned) {
  ASSERT_TRUE(system_->KillService("matcher").ok());
  Apply(JobYaml("abandoned"));
  const absl::Status asked =
      system_->WaitFor([&] { return Count("queue.cycles WHERE NOT answered") == 1; },
                       30s,
                       [] { return "a cycle that waits for its answer"; });
  ASSERT_TRUE(asked.ok()) << Message(asked);
  Apply(JobYaml("beside"));
  const auto elsewhere = system_->Fluxqueue({"cycle", "abandon", "nowhere"});
  ASSERT_TRUE(elsewhere.ok()) << Message(elsewhere.status());
  EXPECT_NE(elsewhere->exit_code, 0);
  EXPECT_THAT(elsewhere->output, HasSubstr("nowhere"));
  const auto abandoned = system_->Fluxqueue({"cycle", "abandon", "default"});
  ASSERT_TRUE(abandoned.ok()) << Message(abandoned.status());
  EXPECT_EQ(abandoned->exit_code, 0);
  EXPECT_THAT(abandoned->output, HasSubstr("is abandoned"));
  ASSERT_TRUE(system_->StartService("matcher").ok());
  // A job that was alone in such a cycle waits for ten minutes.
  ExpectState("beside", "Succeeded");
  const auto gone = system_->Kubectl({"delete", "job", "abandoned", "--namespace=e2e"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

}  // namespace
}  // namespace fluxqueue::e2e
