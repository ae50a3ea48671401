// Who is let in, and what he may do, where callers are asked for.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"

#include "libs/access/fake_authority.h"
#include "libs/base/status_macros.h"
#include "libs/rpc/channel.h"
#include "libs/rpc/testing_tls.h"
#include "services/graph/domain/test_graphs.h"
#include "services/graph/rpc/graph_resolver.h"
#include "services/graph/rpc/graph_rpc.h"

namespace fluxqueue::graph_service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr char kGraph[] = "fluxqueue-graph.system.svc";
constexpr char kClient[] = "fluence.hpc.svc";

class GraphAccessTest : public ::testing::Test {
 protected:
  GraphAccessTest() {
    tls_.Authority("ca");
    for (const char* name : {kGraph, kClient}) {
      tls_.Sign("ca", name, fmt::format("subjectAltName=DNS:{}", name));
    }
    authority_.tokens["of-ann"] = {.name = "ann", .groups = {}};
    authority_.tokens["of-a-liar"] = {.name = std::string(rpc::kClientUser) + kClient,
                                      .groups = {}};
    RpcConfig config;
    config.grpc.port = 0;
    config.grpc.tls = {tls_.Path(std::string(kGraph) + ".crt"),
                       tls_.Path(std::string(kGraph) + ".key"),
                       tls_.Path("ca.crt")};
    config.grpc.callers = {.queue = "fluxqueue-queue.system.svc", .clients = {kClient}};
    config.private_graphs.client_graphs = 1;
    config.workers = 1;
    server_ = std::make_unique<GraphRpc>(
        config, nullptr, judge_, [] { return absl::OkStatus(); }, metrics_, tracer_, clock_);
    CHECK(server_->Start().ok(), "the server");
  }

  // With the client's certificate, if there is no token.
  std::unique_ptr<v1::Matcher::Stub> Dial(const std::string& token) {
    const std::string name = kClient;
    rpc::ChannelFiles files{.authority = tls_.Path("ca.crt"), .name = kGraph};
    if (token.empty()) {
      files.certificate = tls_.Path(name + ".crt");
      files.key = tls_.Path(name + ".key");
    }
    auto channel = rpc::Dialer(files).Open(fmt::format("127.0.0.1:{}", server_->port()));
    CHECK(channel.ok(), "{}", Message(channel.status()));
    return v1::Matcher::NewStub(*channel);
  }
  static void Show(const std::string& token, grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + 20s);
    if (!token.empty()) context->AddMetadata(rpc::kAuthorization, "Bearer " + token);
  }
  grpc::Status Create(const std::string& token, std::string* key = nullptr) {
    grpc::ClientContext context;
    Show(token, &context);
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph());
    v1::CreateGraphResponse response;
    grpc::Status status = Dial(token)->CreateGraph(&context, request, &response);
    if (key != nullptr) *key = response.key();
    return status;
  }
  grpc::Status Delete(const std::string& token, const std::string& key) {
    grpc::ClientContext context;
    Show(token, &context);
    context.AddMetadata(kGraphKey, key);
    v1::DeleteGraphResponse response;
    return Dial(token)->DeleteGraph(&context, v1::DeleteGraphRequest(), &response);
  }

  rpc::TlsFolder tls_;
  access::FakeAuthority authority_;
  const GraphJudge judge_{&authority_};
  metrics::Registry metrics_;
  tracing::Tracer tracer_{{}, metrics_};
  RealClock clock_;
  std::unique_ptr<GraphRpc> server_;
};

TEST_F(GraphAccessTest, AGraphIsMadeByWhoMayMakeOne) {
  grpc::Status status = Create("of-ann");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("create graphs"));
  authority_.rights.insert({"ann", "create graphs"});
  status = Create("of-ann");
  EXPECT_TRUE(status.ok()) << status.error_message();
  // Her limit, and nobody else's.
  status = Create("of-ann");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("ann has too many private graphs"));
  const std::string client = std::string(rpc::kClientUser) + kClient;
  EXPECT_EQ(Create("").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  authority_.rights.insert({client, "create graphs"});
  status = Create("");
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(GraphAccessTest, ATokenHasToBeSomebodys) {
  EXPECT_EQ(Create("of-nobody").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  authority_.rights.insert({std::string(rpc::kClientUser) + kClient, "create graphs"});
  EXPECT_EQ(Create("of-a-liar").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  authority_.there = Unavailable("the API server is away");
  EXPECT_EQ(Create("of-ann").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GraphAccessTest, TokensThatTakeLongKeepNobodyElseWaiting) {
  std::promise<void> go;
  std::atomic<int> asked = 0;
  authority_.on_token = [&asked, gone = go.get_future().share()] {
    ++asked;
    gone.wait();
  };
  std::vector<std::jthread> strangers;
  for (int i = 0; i < 6; ++i) strangers.emplace_back([this] { Create("of-nobody"); });
  const auto patience = std::chrono::steady_clock::now() + 10s;
  while (asked < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  EXPECT_GE(asked, 2);
  EXPECT_EQ(Create("").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  go.set_value();
}

// Whoever has it may use the graph, but has to be somebody.
TEST_F(GraphAccessTest, AKeyAloneDropsNothing) {
  authority_.rights.insert({"ann", "create graphs"});
  std::string key;
  ASSERT_TRUE(Create("of-ann", &key).ok());
  EXPECT_EQ(Delete("of-nobody", key).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const grpc::Status dropped = Delete("of-ann", key);
  EXPECT_TRUE(dropped.ok()) << dropped.error_message();
}

TEST_F(GraphAccessTest, APoolIsLookedAtByWhoMay) {
  const rpc::Caller ann{.user = "ann", .groups = {}};
  const absl::Status refused = judge_.MayLookAt(ann, "main");
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("get pools/graph"));
  authority_.rights.insert({"ann", "get pools/graph"});
  EXPECT_TRUE(judge_.MayLookAt(ann, "main").ok());
  EXPECT_TRUE(GraphJudge(nullptr).MayLookAt({}, "main").ok());
}

}  // namespace
}  // namespace fluxqueue::graph_service
