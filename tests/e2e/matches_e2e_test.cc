// Matches on the cluster's own graph by gRPC: claims that take the room of real jobs, and the API's
// views of it; then verify and replay.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "fluxcli/fluxcli.grpc.pb.h"
#include "fluxion/fluxion.grpc.pb.h"
#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"
#include "service/external_plugin.grpc.pb.h"

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace v1 = matcher::v1;

constexpr int kNodes = 4;  // of 8 cores

std::string Jobspec(int slots, int cpu_milli) {
  return fmt::format(
      R"({{"version":1,"resources":[{{"type":"slot","count":{},"label":"s","with":[)"
      R"({{"type":"cpu","count":{}}}]}}],"tasks":[{{"command":["x"],"slot":"s",)"
      R"("count":{{"per_slot":1}}}}],"attributes":{{"system":{{"duration":600}}}}}})",
      slots,
      cpu_milli);
}

class MatchesTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = kNodes});
    if (system_ == nullptr) return;
    const absl::Status settled = system_->WaitFor(
        [&] {
          const auto pools = system_->QueryOne("SELECT count(*) FROM queue.pools");
          const auto queues =
              system_->QueryOne("SELECT count(*) FROM queue.queues WHERE queue = 'default'");
          const auto nodes =
              system_->QueryOne("SELECT count(*) FROM matcher.graph_nodes WHERE present");
          return pools.ok() && *pools == "1" && queues.ok() && *queues == "1" && nodes.ok() &&
                 *nodes == std::to_string(kNodes);
        },
        30s,
        [] { return "the pool, its queue or its nodes are not known"; });
    ASSERT_TRUE(settled.ok()) << Message(settled);
  }

  void SetUp() override {
    SystemTest::SetUp();
    if (system_ != nullptr) Connect();
  }

  // A connection of its own, which does not wait for an earlier one's backoff.
  void Connect() {
    int http = 0;
    int port = 0;
    std::ifstream(system_->folder() + "/config/graph-1.ports") >> http >> port;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", port), grpc::InsecureChannelCredentials(), arguments);
    matcher_ = v1::Matcher::NewStub(channel_);
  }

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::Matcher::Stub::*method)(grpc::ClientContext*,
                                                              const Request&,
                                                              Response*),
                    const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    return (matcher_.get()->*method)(&context, request, response);
  }

  v1::MatchResponse Match(int slots, int cpu_milli, const std::string& job_id = "") {
    v1::MatchRequest request;
    request.set_jobspec(Jobspec(slots, cpu_milli));
    request.set_job_id(job_id);
    request.set_nodes(true);
    request.set_explain(true);
    v1::MatchResponse response;
    const grpc::Status status = Call(&v1::Matcher::Stub::Match, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  void Release(const std::string& job_id) {
    v1::ReleaseRequest request;
    request.set_job_id(job_id);
    v1::ReleaseResponse response;
    const grpc::Status status = Call(&v1::Matcher::Stub::Release, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Matcher::Stub> matcher_;
};

TEST_F(MatchesTest, AMatchTakesRoomUntilItIsReleased) {
  const v1::MatchResponse all = Match(4, 8000);
  ASSERT_EQ(all.outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(all.allocation().nodes_size(), kNodes);
  EXPECT_EQ(all.allocation().nodes(0).amounts().at("cpu"), 8000);
  EXPECT_EQ(all.allocation().duration_s(), 600);
  const v1::MatchResponse busy = Match(1, 1000);
  EXPECT_EQ(busy.outcome(), v1::OUTCOME_BUSY);
  EXPECT_THAT(busy.reason(), HasSubstr("cpu"));
  Apply(JobYaml("waits"));
  ExpectState("waits", "Pending");
  v1::GetJobRequest get;
  get.set_job(all.job());
  v1::GetJobResponse got;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::GetJob, get, &got).ok());
  EXPECT_EQ(got.job_id(), all.job_id());
  Release(all.job_id());
  ExpectState("waits", "Succeeded");
  const grpc::Status gone = Call(&v1::Matcher::Stub::GetJob, get, &got);
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::NOT_FOUND);
  // What the pool could never give.
  EXPECT_EQ(Match(1, 9000).outcome(), v1::OUTCOME_UNSATISFIABLE);
}

TEST_F(MatchesTest, TheSameIdIsTheSameJob) {
  const v1::MatchResponse first = Match(1, 1000, "once");
  const v1::MatchResponse again = Match(1, 1000, "once");
  ASSERT_EQ(first.outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(again.job_id(), first.job_id());
  EXPECT_EQ(again.allocation().nodes(0).node(), first.allocation().nodes(0).node());
  Release(first.job_id());
}

// As where it runs out of memory: nobody else notices, and it has forgotten nothing but private
// graphs.
TEST_F(MatchesTest, TheGraphServiceDiesAlone) {
  const v1::MatchResponse kept = Match(1, 1000, "kept");
  ASSERT_EQ(kept.outcome(), v1::OUTCOME_ALLOCATED);
  Apply(JobYaml("before", {.run_seconds = "5"}));
  ExpectState("before", "Running");
  ASSERT_TRUE(system_->KillService("graph").ok());
  Apply(JobYaml("meanwhile"));
  ExpectState("meanwhile", "Succeeded");
  ExpectState("before", "Succeeded");
  for (const char* service : {"admission", "queue", "matcher", "binder", "cleanup"}) {
    const auto ready = system_->Readiness(service);
    ASSERT_TRUE(ready.ok()) << Message(ready.status());
    EXPECT_THAT(*ready, HasSubstr("ok")) << service;
  }
  ASSERT_TRUE(system_->StartService("graph").ok());
  Connect();
  const v1::MatchResponse again = Match(1, 1000, "kept");
  EXPECT_EQ(again.job_id(), kept.job_id());
  EXPECT_EQ(again.allocation().nodes(0).node(), kept.allocation().nodes(0).node());
  Release(kept.job_id());
}

TEST_F(MatchesTest, LooksAndTrials) {
  const v1::MatchResponse held = Match(3, 8000);
  ASSERT_EQ(held.outcome(), v1::OUTCOME_ALLOCATED);
  v1::WhatIfRequest what_if;
  what_if.add_jobspecs(Jobspec(1, 8000));
  what_if.add_jobspecs(Jobspec(1, 8000));
  v1::WhatIfResponse trials;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::WhatIf, what_if, &trials).ok());
  ASSERT_EQ(trials.trials_size(), 2);
  EXPECT_EQ(trials.trials(0).outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(trials.trials(1).outcome(), v1::OUTCOME_RESERVED);
  EXPECT_NEAR(static_cast<double>(trials.trials(1).allocation().at_s()),
              static_cast<double>(held.allocation().at_s() + 600),
              2);
  v1::ExplainRequest explain;
  explain.set_jobspec(Jobspec(2, 8000));
  v1::ExplainResponse why;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Explain, explain, &why).ok());
  EXPECT_THAT(why.sentence(), HasSubstr("1 fit now"));
  v1::FindRequest find;
  find.set_criteria("status=up");
  v1::FindResponse found;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Find, find, &found).ok());
  EXPECT_GT(found.vertices(), kNodes);
  grpc::ClientContext context;
  v1::GetGraphRequest graph;
  graph.set_view(v1::GetGraphRequest::VIEW_SUMMARY);
  const auto reader = matcher_->GetGraph(&context, graph);
  v1::GetGraphResponse piece;
  ASSERT_TRUE(reader->Read(&piece));
  int64_t cpu_held = 0;
  for (const auto& level : piece.levels()) {
    if (level.type() == "cpu") cpu_held = level.held();
  }
  EXPECT_EQ(cpu_held, 24'000);
  grpc::ClientContext elsewhere;
  graph.set_pool("nowhere");
  const auto nothing = matcher_->GetGraph(&elsewhere, graph);
  EXPECT_FALSE(nothing->Read(&piece));
  EXPECT_EQ(nothing->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  Release(held.job_id());
}

TEST_F(MatchesTest, AWatchTellsWhatHappens) {
  const v1::MatchResponse held = Match(1, 1000);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 30s);
  v1::WatchAllocationsRequest request;
  request.set_nodes(true);
  const auto reader = matcher_->WatchAllocations(&context, request);
  v1::WatchAllocationsResponse event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), v1::WatchAllocationsResponse::KIND_HELD);
  EXPECT_EQ(event.job_id(), held.job_id());
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), v1::WatchAllocationsResponse::KIND_SYNCED);
  const v1::MatchResponse other = Match(1, 2000);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), v1::WatchAllocationsResponse::KIND_ALLOCATED);
  EXPECT_EQ(event.job_id(), other.job_id());
  EXPECT_EQ(event.allocation().nodes(0).amounts().at("cpu"), 2000);
  Release(held.job_id());
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), v1::WatchAllocationsResponse::KIND_RELEASED);
  EXPECT_EQ(event.job_id(), held.job_id());
  context.TryCancel();
  Release(other.job_id());
}

TEST_F(MatchesTest, ClientsOfTheAncestorsMatchOnTheCluster) {
  const auto fluxion = ::fluxion::FluxionService::NewStub(channel_);
  ::fluxion::MatchRequest match;
  // In their words.
  match.set_jobspec(
      "version: 9999\n"
      "resources: [{type: node, count: 1, with: [{type: slot, count: 1, label: task,\n"
      "  with: [{type: core, count: 4}, {type: memory, count: 512, unit: MB}]}]}]\n"
      "tasks: [{command: [app], slot: task, count: {per_slot: 1}}]\n"
      "attributes: {system: {duration: 3600}}\n");
  match.set_request("allocate");
  ::fluxion::MatchResponse matched;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(fluxion->Match(&context, match, &matched).ok());
  }
  EXPECT_EQ(matched.status(), ::fluxion::MatchResponse::MATCH_SUCCESS);
  EXPECT_THAT(matched.allocation(), HasSubstr("\"graph\""));
  const auto plugin = ::service::ExternalPluginService::NewStub(channel_);
  ::service::GroupResponse group;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(plugin->ListGroups(&context, {}, &group).ok());
  }
  EXPECT_EQ(group.size(), 1);
  ::fluxion::CancelRequest cancel;
  cancel.set_jobid(matched.jobid());
  ::fluxion::CancelResponse cancelled;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(fluxion->Cancel(&context, cancel, &cancelled).ok());
  }
  EXPECT_EQ(cancelled.status(), ::fluxion::CancelResponse::CANCEL_SUCCESS);

  const auto fluxcli = ::fluxcli::FluxcliService::NewStub(channel_);
  ::fluxcli::MatchRequest pods;
  pods.mutable_ps()->set_id("pods");
  pods.mutable_ps()->set_cpu(2);
  pods.mutable_ps()->set_memory(int64_t{1} << 30);
  pods.set_count(4);
  ::fluxcli::MatchResponse placed;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(fluxcli->Match(&context, pods, &placed).ok());
  }
  int tasks = 0;
  for (const auto& node : placed.nodelist()) tasks += node.tasks();
  EXPECT_EQ(tasks, 4);
  ::fluxcli::CancelRequest back;
  back.set_jobid(placed.jobid());
  ::fluxcli::CancelResponse over;
  grpc::ClientContext context;
  ASSERT_TRUE(fluxcli->Cancel(&context, back, &over).ok());
  EXPECT_EQ(over.error(), 0);
}

}  // namespace
}  // namespace fluxqueue::e2e
