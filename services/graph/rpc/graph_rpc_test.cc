#include "services/graph/rpc/graph_rpc.h"

#include <chrono>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fluxcli/fluxcli.grpc.pb.h"
#include "fluxion/fluxion.grpc.pb.h"
#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "service/external_plugin.grpc.pb.h"

#include "libs/base/status_macros.h"
#include "libs/config/section.h"
#include "services/graph/domain/test_graphs.h"
#include "services/graph/rpc/graph_resolver.h"

namespace fluxqueue::graph_service {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using Event = v1::WatchAllocationsResponse;

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details().empty() ||
      !details.details(0).UnpackTo(&info)) {
    return "none";
  }
  return info.reason();
}

std::string Trailing(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kReasonKey);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

class GraphRpcTest : public testing::Test {
 protected:
  GraphRpcTest() { config_.grpc.port = 0; }

  void SetUp() override { Start(nullptr); }

  void Start(ClusterGraph* cluster) {
    server_.reset();
    metrics_ = std::make_unique<metrics::Registry>();
    tracer_ = std::make_unique<tracing::Tracer>(tracing::TracerOptions{}, *metrics_);
    server_ = std::make_unique<GraphRpc>(
        config_, cluster, judge_, [] { return absl::OkStatus(); }, *metrics_, *tracer_, clock_);
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    channel_ = Connect();
    matcher_ = v1::Matcher::NewStub(channel_);
  }

  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server_->port()),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  // Calls `method` on the graph of `key_`.
  template <typename Method, typename Request, typename Response>
  grpc::Status Call(Method method, const Request& request, Response* response) {
    grpc::ClientContext context;
    if (!key_.empty()) context.AddMetadata(kGraphKey, key_);
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    return ((*matcher_).*method)(&context, request, response);
  }

  void CreateGraph(int nodes = 4) {
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph(nodes));
    request.set_policy("low");
    v1::CreateGraphResponse response;
    key_.clear();
    const grpc::Status status = Call(&v1::Matcher::Stub::CreateGraph, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.idle_limit().seconds(), config_.private_graphs.idle.count() / 1000);
    key_ = response.key();
  }

  v1::MatchResponse Match(int nodes, int cores, v1::Operation operation = v1::OPERATION_ALLOCATE) {
    v1::MatchRequest request;
    request.set_jobspec(TestJobspec(nodes, cores));
    request.set_operation(operation);
    request.set_nodes(true);
    v1::MatchResponse response;
    const grpc::Status status = Call(&v1::Matcher::Stub::Match, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  RpcConfig config_{.grpc = {}, .ancestors = true, .calls = {}, .private_graphs = {}};
  const GraphJudge judge_{nullptr};
  RealClock clock_;
  std::unique_ptr<metrics::Registry> metrics_;
  std::unique_ptr<tracing::Tracer> tracer_;
  std::unique_ptr<GraphRpc> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Matcher::Stub> matcher_;
  std::string key_;
};

TEST_F(GraphRpcTest, AJobGoesThroughItsLife) {
  CreateGraph();
  const v1::MatchResponse match = Match(2, 3);
  EXPECT_EQ(match.outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(match.allocation().nodes(1).node(), "node1");
  EXPECT_GT(match.overhead().nanos(), 0);

  v1::GetJobRequest get;
  get.set_job(match.job());
  get.set_format(v1::FORMAT_RV1);
  v1::GetJobResponse job;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::GetJob, get, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_ALLOCATED);
  EXPECT_TRUE(json::parse(job.allocation().resources()).contains("scheduling"));

  v1::ReleaseRequest release;
  release.set_job(match.job());
  v1::ReleaseResponse released;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Release, release, &released).ok());
  EXPECT_TRUE(released.all());
  const grpc::Status again = Call(&v1::Matcher::Stub::Release, release, &released);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(again), "NOT_FOUND");
}

TEST_F(GraphRpcTest, ErrorsSayWhichFieldIsWrong) {
  CreateGraph();
  v1::MatchRequest request;
  request.set_jobspec("{}");
  v1::MatchResponse response;
  const grpc::Status status = Call(&v1::Matcher::Stub::Match, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "jobspec");
}

TEST_F(GraphRpcTest, ExplainAndFind) {
  CreateGraph();
  ASSERT_EQ(Match(4, 4).outcome(), v1::OUTCOME_ALLOCATED);
  v1::ExplainRequest explain;
  explain.set_jobspec(TestJobspec(1, 1));
  v1::ExplainResponse why;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Explain, explain, &why).ok());
  EXPECT_EQ(why.missing(), "core");
  EXPECT_EQ(why.holders(0).job(), 1);
  v1::FindRequest find;
  find.set_criteria("names=node2");
  find.set_format(v1::FORMAT_JGF);
  v1::FindResponse found;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Find, find, &found).ok());
  EXPECT_EQ(found.vertices(), 3);
  EXPECT_THAT(found.resources(), HasSubstr("/cluster0/rack1/node2"));
}

TEST_F(GraphRpcTest, WhatIfTriesOneAfterTheOther) {
  CreateGraph();
  v1::WhatIfRequest request;
  for (int i = 0; i < 3; ++i) request.add_jobspecs(TestJobspec(2, 4, 100));
  v1::WhatIfResponse response;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::WhatIf, request, &response).ok());
  ASSERT_EQ(response.trials_size(), 3);
  EXPECT_EQ(response.trials(0).outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(response.trials(1).outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(response.trials(2).outcome(), v1::OUTCOME_RESERVED);
  EXPECT_EQ(response.trials(2).allocation().at_s(), 100);
  EXPECT_EQ(Match(4, 4).outcome(), v1::OUTCOME_ALLOCATED);
  request.set_jobspecs(1, "bad");
  const grpc::Status status = Call(&v1::Matcher::Stub::WhatIf, request, &response);
  EXPECT_THAT(status.error_details(), HasSubstr("jobspecs[1]"));
}

TEST_F(GraphRpcTest, TheGraphComesInPieces) {
  CreateGraph(400);
  grpc::ClientContext context;
  context.AddMetadata(kGraphKey, key_);
  const auto stream = matcher_->GetGraph(&context, {});
  std::string text;
  int pieces = 0;
  v1::GetGraphResponse piece;
  for (; stream->Read(&piece); ++pieces) text += piece.jgf();
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_GT(pieces, 2);
  EXPECT_EQ(text, TestGraph(400));

  grpc::ClientContext again;
  again.AddMetadata(kGraphKey, key_);
  v1::GetGraphRequest request;
  request.set_view(v1::GetGraphRequest::VIEW_SUMMARY);
  const auto summary = matcher_->GetGraph(&again, request);
  ASSERT_TRUE(summary->Read(&piece));
  EXPECT_EQ(piece.levels(2).type(), "node");
  EXPECT_EQ(piece.levels(2).vertices(), 400);
  EXPECT_FALSE(summary->Read(&piece));
  EXPECT_TRUE(summary->Finish().ok());
}

TEST_F(GraphRpcTest, AStreamMatchesAndGivesBack) {
  CreateGraph();
  grpc::ClientContext context;
  context.AddMetadata(kGraphKey, key_);
  const auto stream = matcher_->MatchStream(&context);
  v1::MatchStreamRequest request;
  v1::MatchStreamResponse response;
  request.mutable_match()->set_jobspec(TestJobspec(4, 4));
  for (int i = 1; i <= 3; ++i) {
    // Each takes the place of the one before it.
    request.set_tag(i);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.tag(), i);
    EXPECT_EQ(response.code(), 0) << response.message();
    EXPECT_EQ(response.match().outcome(), v1::OUTCOME_ALLOCATED);
    request.set_release(response.match().job());
  }
  request.mutable_match()->set_jobspec("bad");
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_FALSE(response.has_match());
  request.clear_match();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), 0);
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GraphRpcTest, AllocationsAreWatched) {
  CreateGraph();
  Match(1, 1);
  grpc::ClientContext context;
  context.AddMetadata(kGraphKey, key_);
  const auto stream = matcher_->WatchAllocations(&context, {});
  Event event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), Event::KIND_HELD);
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), Event::KIND_SYNCED);
  Match(1, 2);
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), Event::KIND_ALLOCATED);
  EXPECT_EQ(event.job(), 2);
  v1::DeleteGraphResponse dropped;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::DeleteGraph, v1::DeleteGraphRequest(), &dropped).ok());
  EXPECT_FALSE(stream->Read(&event));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(end), "GRAPH_UNKNOWN");
}

TEST_F(GraphRpcTest, AWatchThatIsCancelledLeavesNothing) {
  CreateGraph();
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    context.AddMetadata(kGraphKey, key_);
    const auto stream = matcher_->WatchAllocations(&context, {});
    Event event;
    ASSERT_TRUE(stream->Read(&event));
    context.TryCancel();
    Match(1, 1, v1::OPERATION_WITHOUT_ALLOCATING);
    Match(1, 1);
    while (stream->Read(&event)) {
    }
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
    v1::ReleaseRequest release;
    release.set_job(i + 1);
    v1::ReleaseResponse released;
    Call(&v1::Matcher::Stub::Release, release, &released);
  }
}

TEST_F(GraphRpcTest, AWatchEndsWhenTheServiceStops) {
  CreateGraph();
  grpc::ClientContext context;
  context.AddMetadata(kGraphKey, key_);
  const auto stream = matcher_->WatchAllocations(&context, {});
  Event event;
  ASSERT_TRUE(stream->Read(&event));
  const auto before = std::chrono::steady_clock::now();
  std::jthread stop([this] { server_->Stop(); });
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stop.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
}

TEST_F(GraphRpcTest, ManyClientsShareAGraph) {
  CreateGraph(100);
  constexpr int kThreads = 4;
  std::atomic<int> allocated = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 150; ++i) {
          if (Match(1, 1).outcome() == v1::OUTCOME_ALLOCATED) ++allocated;
        }
      });
    }
  }
  // 100 nodes of 4 cores.
  EXPECT_EQ(allocated, 400);
}

// A place is given back a moment after the call's answer: hence the loops.
TEST_F(GraphRpcTest, AClientHasSoManyCallsUnderWay) {
  config_.calls.client_calls = 1;
  Start(nullptr);
  CreateGraph();
  const auto find = [this] {
    v1::FindRequest request;
    request.set_criteria("status=up");
    v1::FindResponse response;
    return Call(&v1::Matcher::Stub::Find, request, &response);
  };
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientReader<Event>> stream;
  Event event;
  do {
    context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata(kGraphKey, key_);
    stream = matcher_->WatchAllocations(context.get(), {});
  } while (!stream->Read(&event));
  const grpc::Status refused = find();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "CALL_LIMIT");
  context->TryCancel();
  while (stream->Read(&event)) {
  }
  stream->Finish();
  while (!find().ok()) {
  }
}

// ---- which graph

TEST_F(GraphRpcTest, WithoutAGraphThereIsAClearError) {
  v1::MatchRequest request;
  v1::MatchResponse response;
  grpc::Status status = Call(&v1::Matcher::Stub::Match, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "NO_CLUSTER_GRAPH");
  EXPECT_THAT(status.error_message(), HasSubstr("CreateGraph"));
  key_ = "unknown";
  status = Call(&v1::Matcher::Stub::Match, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "GRAPH_UNKNOWN");
  grpc::ClientContext context;
  EXPECT_EQ(matcher_->WatchAllocations(&context, {})->Finish().error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(GraphRpcTest, LimitsHoldAndIdleGraphsGo) {
  config_.private_graphs.graphs = 1;
  config_.private_graphs.idle = 300ms;
  Start(nullptr);
  CreateGraph();
  v1::CreateGraphRequest request;
  request.set_graph(TestGraph());
  v1::CreateGraphResponse response;
  const grpc::Status status = Call(&v1::Matcher::Stub::CreateGraph, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "GRAPH_LIMIT");
  EXPECT_THAT(metrics_->Text(), HasSubstr("fluxqueue_private_graphs 1"));
  const auto patience = std::chrono::steady_clock::now() + 10s;
  while (metrics_->Text().find("fluxqueue_private_graphs 0") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    std::this_thread::sleep_for(10ms);
  }
  v1::GetJobResponse job;
  EXPECT_EQ(ReasonOf(Call(&v1::Matcher::Stub::GetJob, v1::GetJobRequest(), &job)), "GRAPH_UNKNOWN");
}

// Answers with the pool that it was asked about.
class FakeCluster final : public ClusterGraph {
 public:
  void Match(CallInfo call,
             const v1::MatchRequest* request,
             v1::MatchResponse* response,
             Done done) override {
    EXPECT_FALSE(call.cancelled());
    caller_ = call.caller;
    response->set_outcome(v1::OUTCOME_ALLOCATED);
    response->set_job(12);
    response->set_job_id(request->pool());
    // From another thread, as the real one does.
    std::thread([done = std::move(done)] { done(absl::OkStatus()); }).detach();
  }
  void Release(CallInfo, const v1::ReleaseRequest*, v1::ReleaseResponse*, Done done) override {
    done(MakeStatus(absl::StatusCode::kNotFound, "not there"));
  }
  void GetJob(CallInfo, const v1::GetJobRequest* get, v1::GetJobResponse* job, Done done) override {
    job->set_job_id(get->pool());
    done(absl::OkStatus());
  }
  void Explain(CallInfo, const v1::ExplainRequest*, v1::ExplainResponse*, Done done) override {
    done(absl::OkStatus());
  }
  void Find(CallInfo, const v1::FindRequest*, v1::FindResponse*, Done done) override {
    done(absl::OkStatus());
  }
  void WhatIf(CallInfo, const v1::WhatIfRequest*, v1::WhatIfResponse*, Done done) override {
    done(absl::OkStatus());
  }
  std::unique_ptr<GraphReader> GetGraph(CallInfo /*call*/,
                                        const v1::GetGraphRequest& request) override {
    class Reader final : public GraphReader {
     public:
      explicit Reader(std::string pool) : pool_(std::move(pool)) {}
      void Next(v1::GetGraphResponse* piece, DonePiece done) override {
        piece->set_jgf(pool_);
        done(!std::exchange(pool_, "").empty());
      }

     private:
      std::string pool_;
    };
    return std::make_unique<Reader>(request.pool());
  }
  void Watch(CallInfo /*call*/, std::shared_ptr<AllocationWatch> watch) override {
    watch->End(absl::OkStatus());
  }
  void GetGroup(CallInfo,
                const std::string& pool,
                const std::string& name,
                bool,
                ::service::GroupResponse* response,
                Done done) override {
    response->set_name(pool + "/" + name);
    done(absl::OkStatus());
  }
  SlotUnits UnitsOf(const std::string&) const override { return {}; }
  void Drain() override { drained_ = true; }
  bool drained() const { return drained_; }
  // Of the last Match.
  rpc::Caller caller() const { return caller_; }

 private:
  rpc::Caller caller_;
  bool drained_ = false;
};

TEST_F(GraphRpcTest, WithoutAPrivateGraphThePoolsAreMeant) {
  FakeCluster cluster;
  Start(&cluster);
  v1::MatchRequest request;
  request.set_pool("batch");
  v1::MatchResponse response;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::Match, request, &response).ok());
  EXPECT_EQ(response.job_id(), "batch");

  const auto plugin = ::service::ExternalPluginService::NewStub(channel_);
  grpc::ClientContext context;
  context.AddMetadata(kPoolKey, "batch");
  ::service::ResourceResponse graph;
  ASSERT_TRUE(plugin->GetResources(&context, {}, &graph).ok());
  EXPECT_EQ(graph.graph(), "batch");

  const auto fluxion = ::fluxion::FluxionService::NewStub(channel_);
  grpc::ClientContext matching;
  ::fluxion::MatchResponse matched;
  ASSERT_TRUE(fluxion->Match(&matching, {}, &matched).ok());
  EXPECT_EQ(matched.jobid(), 12);
  // A private graph comes first.
  CreateGraph();
  EXPECT_EQ(Match(1, 1).job(), 1);
  server_->Stop();
  EXPECT_TRUE(cluster.drained());
}

TEST_F(GraphRpcTest, ThePoolsAreToldWhoCalls) {
  FakeCluster cluster;
  Start(&cluster);
  const rpc::Caller ann{.user = "ann", .groups = {"staff"}};
  grpc::ClientContext context;
  rpc::Forward(ann, &context);
  v1::MatchResponse response;
  ASSERT_TRUE(matcher_->Match(&context, v1::MatchRequest(), &response).ok());
  EXPECT_EQ(cluster.caller(), ann);

  grpc::ClientContext streaming;
  rpc::Forward({.user = "bert"}, &streaming);
  const auto stream = matcher_->MatchStream(&streaming);
  v1::MatchStreamRequest request;
  request.mutable_match();
  ASSERT_TRUE(stream->Write(request));
  v1::MatchStreamResponse matched;
  ASSERT_TRUE(stream->Read(&matched));
  EXPECT_EQ(cluster.caller().user, "bert");
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  server_->Stop();
}

// ---- the ancestors

TEST_F(GraphRpcTest, FluxionServiceKnowsAClientByItsConnection) {
  const auto channel = Connect();
  const auto fluxion = ::fluxion::FluxionService::NewStub(channel);
  ::fluxion::InitRequest init;
  init.set_policy("low");
  init.set_jgf(TestGraph());
  ::fluxion::InitResponse made;
  grpc::ClientContext init_context;
  ASSERT_TRUE(fluxion->Init(&init_context, init, &made).ok());
  EXPECT_EQ(made.status(), ::fluxion::InitResponse::INIT_SUCCESS);
  const auto& metadata = init_context.GetServerInitialMetadata();
  ASSERT_EQ(metadata.count(kGraphKey), 1U);

  ::fluxion::MatchRequest request;
  request.set_jobspec(TestJobspec(4, 4));
  request.set_request("allocate");
  ::fluxion::MatchResponse response;
  grpc::ClientContext match_context;
  ASSERT_TRUE(fluxion->Match(&match_context, request, &response).ok());
  EXPECT_EQ(response.status(), ::fluxion::MatchResponse::MATCH_SUCCESS);
  EXPECT_EQ(response.jobid(), 1);
  EXPECT_TRUE(json::parse(response.allocation()).contains("graph"));
  EXPECT_GT(response.overhead(), 0.0F);

  grpc::ClientContext denied_context;
  ASSERT_TRUE(fluxion->Match(&denied_context, request, &response).ok());
  EXPECT_EQ(response.status(), ::fluxion::MatchResponse::MATCH_DENIED);
  EXPECT_EQ(response.allocation(), "");
  EXPECT_THAT(Trailing(denied_context), HasSubstr("core"));

  // By its key it can be looked at with the other API.
  const auto key = metadata.find(kGraphKey)->second;
  key_ = std::string(key.data(), key.size());
  v1::GetJobRequest get;
  get.set_job(1);
  v1::GetJobResponse job;
  ASSERT_TRUE(Call(&v1::Matcher::Stub::GetJob, get, &job).ok());

  ::fluxion::CancelRequest cancel;
  cancel.set_jobid(1);
  ::fluxion::CancelResponse cancelled;
  grpc::ClientContext cancel_context;
  ASSERT_TRUE(fluxion->Cancel(&cancel_context, cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.status(), ::fluxion::CancelResponse::CANCEL_SUCCESS);
  grpc::ClientContext again_context;
  ASSERT_TRUE(fluxion->Cancel(&again_context, cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.status(), ::fluxion::CancelResponse::CANCEL_ERROR);
  EXPECT_EQ(cancelled.error(), ENOENT);

  // Another connection has made none.
  const auto stranger = ::fluxion::FluxionService::NewStub(Connect());
  grpc::ClientContext strange_context;
  ASSERT_TRUE(stranger->Match(&strange_context, request, &response).ok());
  EXPECT_EQ(response.status(), ::fluxion::MatchResponse::MATCH_ERROR);
  EXPECT_THAT(Trailing(strange_context), HasSubstr("Init"));
}

TEST_F(GraphRpcTest, InitSaysWhatIsWrong) {
  const auto fluxion = ::fluxion::FluxionService::NewStub(channel_);
  ::fluxion::InitRequest init;
  init.set_jgf("no graph");
  ::fluxion::InitResponse made;
  grpc::ClientContext context;
  ASSERT_TRUE(fluxion->Init(&context, init, &made).ok());
  EXPECT_EQ(made.status(), ::fluxion::InitResponse::INIT_ERROR);
  EXPECT_NE(Trailing(context), "");
  config_.private_graphs.graph_bytes = 1024;
  Start(nullptr);
  init.set_jgf(TestGraph(100));
  grpc::ClientContext large_context;
  ASSERT_TRUE(::fluxion::FluxionService::NewStub(channel_)->Init(&large_context, init, &made).ok());
  EXPECT_EQ(made.status(), ::fluxion::InitResponse::INIT_DENIED);
  EXPECT_THAT(Trailing(large_context), HasSubstr("1024"));
}

TEST_F(GraphRpcTest, FluxcliAndExternalPluginSpeakOfTheSameGraph) {
  CreateGraph();
  const auto fluxcli = ::fluxcli::FluxcliService::NewStub(channel_);
  ::fluxcli::MatchRequest request;
  request.mutable_ps()->set_id("pod");
  request.mutable_ps()->set_cpu(4);
  request.set_count(3);
  ::fluxcli::MatchResponse response;
  grpc::ClientContext context;
  context.AddMetadata(kGraphKey, key_);
  ASSERT_TRUE(fluxcli->Match(&context, request, &response).ok());
  EXPECT_EQ(response.podid(), "pod");
  EXPECT_EQ(response.nodelist_size(), 3);
  EXPECT_EQ(response.nodelist(0).tasks(), 1);
  grpc::ClientContext full_context;
  full_context.AddMetadata(kGraphKey, key_);
  ASSERT_TRUE(fluxcli->Match(&full_context, request, &response).ok());
  EXPECT_EQ(response.nodelist_size(), 0);
  EXPECT_NE(Trailing(full_context), "");

  const auto plugin = ::service::ExternalPluginService::NewStub(channel_);
  ::service::GroupRequest group;
  ::service::GroupResponse found;
  grpc::ClientContext list_context;
  list_context.AddMetadata(kGraphKey, key_);
  ASSERT_TRUE(plugin->ListGroups(&list_context, group, &found).ok());
  EXPECT_EQ(found.name(), "1");
  EXPECT_EQ(found.size(), 3);
  group.set_group("2");
  grpc::ClientContext get_context;
  get_context.AddMetadata(kGraphKey, key_);
  EXPECT_EQ(plugin->GetGroup(&get_context, group, &found).error_code(),
            grpc::StatusCode::NOT_FOUND);
  ::service::ResourceResponse graph;
  grpc::ClientContext graph_context;
  graph_context.AddMetadata(kGraphKey, key_);
  ASSERT_TRUE(plugin->GetResources(&graph_context, {}, &graph).ok());
  EXPECT_EQ(graph.graph(), TestGraph());

  ::fluxcli::CancelRequest cancel;
  cancel.set_jobid(1);
  ::fluxcli::CancelResponse cancelled;
  grpc::ClientContext cancel_context;
  cancel_context.AddMetadata(kGraphKey, key_);
  ASSERT_TRUE(fluxcli->Cancel(&cancel_context, cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.error(), 0);
}

TEST_F(GraphRpcTest, TheAncestorsServicesAreAskedFor) {
  config_.ancestors = false;
  Start(nullptr);
  ::fluxcli::MatchResponse matched;
  grpc::ClientContext context;
  EXPECT_EQ(::fluxcli::FluxcliService::NewStub(channel_)
                ->Match(&context, ::fluxcli::MatchRequest(), &matched)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  CreateGraph();
}

TEST(RpcConfigTest, IsRead) {
  RpcConfig config;
  const absl::Status read = config::Read("c",
                                         "grpc: {port: 0}\nworkers: 2\nancestors: true\n"
                                         "private_graphs: {limit: 5, idle: 1m}\n",
                                         Describe(&config));
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_TRUE(config.grpc.enabled());
  EXPECT_TRUE(config.ancestors);
  EXPECT_EQ(config.private_graphs.graphs, 5);
  EXPECT_EQ(config.private_graphs.idle, 1min);
}

}  // namespace
}  // namespace fluxqueue::graph_service
