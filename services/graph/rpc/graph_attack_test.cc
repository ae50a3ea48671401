// What a client does to keep others from being served, to fill the memory, to reach what is
// another's, or to end the process.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "fluxcli/fluxcli.grpc.pb.h"
#include "fluxion/fluxion.grpc.pb.h"
#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "libs/base/status_macros.h"
#include "services/graph/domain/test_graphs.h"
#include "services/graph/rpc/graph_resolver.h"
#include "services/graph/rpc/graph_rpc.h"

namespace fluxqueue::graph_service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details().empty() ||
      !details.details(0).UnpackTo(&info)) {
    return "none";
  }
  return info.reason();
}

// Of 21,001 vertices: megabytes as JGF.
constexpr char kLargeGraph[] = R"({"version": 1, "execution": {"R_lite": [
    {"rank": "0-999", "children": {"core": "0-19"}}], "nodelist": ["n[0-999]"],
    "starttime": 0, "expiration": 0}})";

// A call of this client: where callers are not asked for, he is believed.
class Call {
 public:
  explicit Call(const std::string& client, const std::string& key = "") {
    rpc::Forward({.user = client}, &context_);
    if (!key.empty()) context_.AddMetadata(kGraphKey, key);
    context_.set_deadline(std::chrono::system_clock::now() + 60s);
  }
  grpc::ClientContext* context() { return &context_; }

 private:
  grpc::ClientContext context_;
};

class GraphAttackTest : public testing::Test {
 protected:
  GraphAttackTest() {
    config_.grpc.port = 0;
    config_.ancestors = true;
    config_.workers = 1;
  }
  ~GraphAttackTest() override { server_.reset(); }

  void Start() {
    server_ = std::make_unique<GraphRpc>(
        config_, nullptr, judge_, [] { return absl::OkStatus(); }, metrics_, tracer_, clock_);
    CHECK(server_->Start().ok(), "the server");
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // The window that a client opens before it reads stays at 64 KiB.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    channel_ = grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server_->port()),
                                         grpc::InsecureChannelCredentials(),
                                         arguments);
    matcher_ = v1::Matcher::NewStub(channel_);
  }

  std::string CreateGraph(const std::string& client, const std::string& graph = TestGraph()) {
    v1::CreateGraphRequest request;
    request.set_graph(graph);
    v1::CreateGraphResponse response;
    Call call(client);
    const grpc::Status status = matcher_->CreateGraph(call.context(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.key();
  }
  grpc::Status Find(const std::string& client, const std::string& key) {
    v1::FindRequest request;
    request.set_criteria("status=up");
    v1::FindResponse response;
    Call call(client, key);
    return matcher_->Find(call.context(), request, &response);
  }

  RpcConfig config_;
  const GraphJudge judge_{nullptr};
  RealClock clock_;
  metrics::Registry metrics_;
  tracing::Tracer tracer_{{}, metrics_};
  std::unique_ptr<GraphRpc> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Matcher::Stub> matcher_;
};

TEST_F(GraphAttackTest, WhoHasHisWholeAllowanceInLineDelaysOthersByACallOrTwo) {
  Start();
  // On many graphs: each has one call in the line, and the others wait for it.
  std::vector<std::string> keys;
  for (int i = 0; i < config_.private_graphs.client_graphs; ++i) {
    keys.push_back(CreateGraph("ann", TestGraph(400)));
  }
  const std::string key = CreateGraph("bob");
  v1::WhatIfRequest request;
  for (int i = 0; i < 200; ++i) request.add_jobspecs(TestJobspec(300, 4));
  // One more than may be under way, again for each that was answered meanwhile: once one is
  // refused, all others are in the line.
  const int calls = config_.calls.client_calls + 1;
  const int most = 4 * calls;
  std::vector<std::unique_ptr<Call>> under_way;
  std::vector<v1::WhatIfResponse> responses(static_cast<size_t>(most));
  std::atomic<int> ended = 0;
  std::atomic<bool> refused = false;
  int sent = 0;
  while (!refused && sent < most) {
    if (sent - ended >= calls) {
      std::this_thread::yield();
      continue;
    }
    under_way.push_back(
        std::make_unique<Call>("ann", keys[static_cast<size_t>(sent) % keys.size()]));
    grpc::ClientContext* context = under_way.back()->context();
    matcher_->async()->WhatIf(
        context, &request, &responses[static_cast<size_t>(sent)], [&](const grpc::Status& status) {
          if (ReasonOf(status) == "CALL_LIMIT") refused = true;
          ++ended;
        });
    ++sent;
  }
  const int before = ended;
  const grpc::Status found = Find("bob", key);
  const int meanwhile = ended - before;
  EXPECT_TRUE(found.ok()) << found.error_message();
  EXPECT_TRUE(refused);
  EXPECT_LE(meanwhile, 4);
  for (const auto& call : under_way) call->context()->TryCancel();
  while (ended < sent) std::this_thread::yield();
}

TEST_F(GraphAttackTest, AnswersThatNobodyReadsCount) {
  config_.calls.client_calls = 2;
  Start();
  const std::string key = CreateGraph("bob", kLargeGraph);
  v1::FindRequest request;
  request.set_criteria("status=up");
  request.set_format(v1::FORMAT_JGF);
  grpc::CompletionQueue queue;
  Call first("ann", key);
  Call second("ann", key);
  const auto one = matcher_->AsyncFind(first.context(), request, &queue);
  const auto other = matcher_->AsyncFind(second.context(), request, &queue);
  void* tag = nullptr;
  bool ok = false;
  for (const auto* call : {&one, &other}) {
    (*call)->ReadInitialMetadata(nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  }
  // Both were answered; and the graph's calls come one after the other, so they are over, too.
  EXPECT_TRUE(Find("bob", key).ok());
  EXPECT_EQ(ReasonOf(Find("ann", key)), "CALL_LIMIT");
  v1::FindResponse response;
  grpc::Status status;
  for (const auto* call : {&one, &other}) {
    (*call)->Finish(&response, &status, nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  // A place is given back a moment after the answer was read.
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (!Find("ann", key).ok()) ASSERT_LT(std::chrono::steady_clock::now(), patience);
}

TEST_F(GraphAttackTest, RequestsAndAnswersHaveABudget) {
  config_.calls.client_bytes = 1 << 20;
  Start();
  const std::string key = CreateGraph("ann", kLargeGraph);
  v1::FindRequest find;
  find.set_criteria("status=up");
  find.set_format(v1::FORMAT_JGF);
  v1::FindResponse found;
  Call find_call("ann", key);
  grpc::Status status = matcher_->Find(find_call.context(), find, &found);
  EXPECT_EQ(ReasonOf(status), "CALL_BYTES") << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("1048576 are allowed"));
  v1::MatchRequest match;
  match.set_jobspec(std::string(2 << 20, 'x'));
  v1::MatchResponse matched;
  Call match_call("ann", key);
  EXPECT_EQ(ReasonOf(matcher_->Match(match_call.context(), match, &matched)), "CALL_BYTES");
  // A stream goes on.
  Call stream_call("ann", key);
  const auto stream = matcher_->MatchStream(stream_call.context());
  v1::MatchStreamRequest request;
  v1::MatchStreamResponse response;
  *request.mutable_match() = match;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  request.mutable_match()->set_jobspec(TestJobspec(1, 1));
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), 0) << response.message();
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A stream that waits for its client's next request holds nothing.
TEST_F(GraphAttackTest, AStreamCountsWhatIsUnderWay) {
  config_.calls.client_bytes = 1 << 20;
  Start();
  const std::string key = CreateGraph("ann");
  Call stream_call("ann", key);
  const auto stream = matcher_->MatchStream(stream_call.context());
  v1::MatchStreamRequest request;
  v1::MatchStreamResponse response;
  request.mutable_match()->set_jobspec(std::string(700 << 10, 'x'));
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  const auto match = [&] {
    v1::MatchResponse matched;
    Call call("ann", key);
    return matcher_->Match(call.context(), request.match(), &matched).error_code();
  };
  // A moment after the answer was read.
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (match() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A stream has its request until it ends.
TEST_F(GraphAttackTest, StreamsBeginWithSmallRequests) {
  Start();
  const std::string key = CreateGraph("ann");
  v1::WatchAllocationsRequest watch;
  watch.set_pool(std::string(1 << 20, 'x'));
  Call watch_call("ann", key);
  EXPECT_EQ(matcher_->WatchAllocations(watch_call.context(), watch)->Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::GetGraphRequest get;
  get.set_pool(watch.pool());
  Call get_call("ann", key);
  EXPECT_EQ(matcher_->GetGraph(get_call.context(), get)->Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GraphAttackTest, AnotherUserOfTheConnectionDoesNotReachTheGraph) {
  Start();
  const auto fluxion = ::fluxion::FluxionService::NewStub(channel_);
  ::fluxion::InitRequest init;
  init.set_jgf(TestGraph());
  ::fluxion::InitResponse made;
  Call init_call("ann");
  ASSERT_TRUE(fluxion->Init(init_call.context(), init, &made).ok());
  ASSERT_EQ(made.status(), ::fluxion::InitResponse::INIT_SUCCESS);
  ::fluxion::MatchRequest match;
  match.set_jobspec(TestJobspec(1, 1));
  ::fluxion::MatchResponse matched;
  for (const auto& [client, wanted] : {std::pair("ann", ::fluxion::MatchResponse::MATCH_SUCCESS),
                                       std::pair("bob", ::fluxion::MatchResponse::MATCH_ERROR)}) {
    Call call(client);
    ASSERT_TRUE(fluxion->Match(call.context(), match, &matched).ok());
    EXPECT_EQ(matched.status(), wanted) << client;
  }
  ::fluxion::CancelRequest cancel;
  cancel.set_jobid(1);
  ::fluxion::CancelResponse cancelled;
  Call cancel_call("bob");
  ASSERT_TRUE(fluxion->Cancel(cancel_call.context(), cancel, &cancelled).ok());
  EXPECT_NE(cancelled.status(), ::fluxion::CancelResponse::CANCEL_SUCCESS);
}

TEST_F(GraphAttackTest, RequestsThatAreNoTextAreRefused) {
  Start();
  grpc::GenericStub stub(channel_);
  // Field 1, two bytes: no UTF-8; a NUL; a message that ends too early.
  for (const std::string& bytes : {std::string("\x0a\x02\xff\xfe"),
                                   std::string("\x0a\x02\x00\x00", 4),
                                   std::string("\x0a\x7f")}) {
    for (const char* method : {"/fluxion.FluxionService/Init",
                               "/fluxion.FluxionService/Match",
                               "/fluxcli.FluxcliService/Match",
                               "/fluxqueue.matcher.v1.Matcher/CreateGraph",
                               "/fluxqueue.matcher.v1.Matcher/Match",
                               "/fluxqueue.matcher.v1.Matcher/WhatIf"}) {
      Call call("ann");
      grpc::CompletionQueue queue;
      const grpc::Slice slice(bytes);
      const grpc::ByteBuffer request(&slice, 1);
      const auto under_way = stub.PrepareUnaryCall(call.context(), method, request, &queue);
      under_way->StartCall();
      grpc::ByteBuffer response;
      grpc::Status status;
      under_way->Finish(&response, &status, nullptr);
      void* tag = nullptr;
      bool ok = false;
      ASSERT_TRUE(queue.Next(&tag, &ok));
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << method << " " << status.error_message();
    }
  }
  CreateGraph("ann");
}

TEST_F(GraphAttackTest, NumbersThatAreTooLargeAreRefused) {
  Start();
  const std::string key = CreateGraph("ann");
  v1::MatchRequest match;
  match.set_job(INT64_MAX);
  for (const char* count : {"9223372036854775807",
                            "9223372036854775808",
                            "18446744073709551616",
                            "-9223372036854775808",
                            "1e400",
                            R"({"min": 1, "max": 1152921504606846976, "operator": "^",
                                "operand": 1152921504606846976})"}) {
    match.set_jobspec(fmt::format(
        R"({{"version": 1, "resources": [{{"type": "slot", "count": {}, "label": "a",
            "with": [{{"type": "core", "count": {}}}]}}], "tasks": []}})",
        count,
        count));
    v1::MatchResponse matched;
    Call call("ann", key);
    const grpc::Status status = matcher_->Match(call.context(), match, &matched);
    EXPECT_TRUE(!status.ok() || matched.outcome() != v1::OUTCOME_UNSPECIFIED) << count;
  }
  for (const int64_t job : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    v1::ReleaseRequest release;
    release.set_job(job);
    v1::ReleaseResponse released;
    Call call("ann", key);
    EXPECT_FALSE(matcher_->Release(call.context(), release, &released).ok()) << job;
  }
  EXPECT_TRUE(Find("ann", key).ok());
}

TEST_F(GraphAttackTest, DeepTextsAreRefused) {
  Start();
  const std::string key = CreateGraph("ann");
  const std::string deep(100'000, '[');
  v1::MatchRequest match;
  v1::MatchResponse matched;
  v1::CreateGraphRequest create;
  v1::CreateGraphResponse created;
  for (const std::string& text :
       {deep, R"({"version": 1, "resources": )" + deep, R"({"graph": {"nodes": )" + deep}) {
    match.set_jobspec(text);
    Call match_call("ann", key);
    EXPECT_EQ(matcher_->Match(match_call.context(), match, &matched).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    create.set_graph(text);
    Call create_call("ann");
    EXPECT_EQ(matcher_->CreateGraph(create_call.context(), create, &created).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace fluxqueue::graph_service
