// Who a call is found to be of, over real TLS on loopback.
#include "libs/rpc/caller.h"

#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "echo.grpc.pb.h"
#include "health.grpc.pb.h"

#include "libs/base/status_macros.h"
#include "libs/config/section.h"
#include "libs/rpc/channel.h"
#include "libs/rpc/grpc_status.h"
#include "libs/rpc/server.h"
#include "libs/rpc/testing_tls.h"

namespace fluxqueue::rpc {
namespace {

using namespace std::chrono_literals;
using grpc::health::v1::Health;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr char kQueue[] = "fluxqueue-queue.system.svc";
constexpr char kGraph[] = "fluxqueue-graph.system.svc";
constexpr char kClient[] = "fluence.hpc.svc";

// Says whom it found: "ann (physics,staff)".
class WhoService final : public test::Echo::CallbackService {
 public:
  explicit WhoService(ServerConfig::Callers callers) : callers_(std::move(callers)) {}

  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context,
                                const test::SayRequest*,
                                test::SayResponse* response) override {
    auto* reactor = context->DefaultReactor();
    const Shown shown = ShownBy(*context, callers_);
    std::string besides = shown.caller.uid.empty() ? "" : " uid " + shown.caller.uid;
    for (const auto& [key, values] : shown.caller.extra) {
      besides += fmt::format(" {}={}", key, fmt::join(values, ","));
    }
    response->set_text(fmt::format("{} ({}){}{}{}",
                                   shown.caller.user,
                                   fmt::join(shown.caller.groups, ","),
                                   besides,
                                   shown.by_queue ? " by the queue" : "",
                                   shown.token.empty() ? "" : " token " + shown.token));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const ServerConfig::Callers callers_;
};

class CallerTest : public ::testing::Test {
 protected:
  CallerTest() {
    tls_.Authority("ca");
    tls_.Sign("ca", "queue", fmt::format("subjectAltName=DNS:{}", kQueue));
    config_.port = 0;
    config_.tls = {tls_.Path("queue.crt"), tls_.Path("queue.key"), tls_.Path("ca.crt")};
    config_.callers = {.queue = kQueue, .graph = kGraph, .clients = {kClient}};
  }
  ~CallerTest() override { server_.reset(); }

  void Start() {
    service_.emplace(config_.callers);
    server_ = std::make_unique<Server>(
        config_,
        std::vector<ServedService>{Serve<test::Echo>(*service_, {}, tokens_)},
        [] { return absl::OkStatus(); },
        metrics_,
        tracer_);
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  // A certificate of this name, signed by `authority`.
  ChannelFiles Showing(const std::string& name, const std::string& authority = "ca") const {
    tls_.Sign(authority, name, fmt::format("subjectAltName=DNS:{}", name));
    ChannelFiles files = Nothing();
    files.certificate = tls_.Path(name + ".crt");
    files.key = tls_.Path(name + ".key");
    return files;
  }
  ChannelFiles Nothing() const { return {.authority = tls_.Path("ca.crt"), .name = kQueue}; }

  std::shared_ptr<grpc::Channel> Open(const ChannelFiles& files) const {
    auto channel = Dialer(files).Open(fmt::format("127.0.0.1:{}", server_->port()));
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *channel;
  }

  // Who it is found to be of; else the code and why.
  std::string Who(const ChannelFiles& files, const Metadata& metadata = {}) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 5s);
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    return Who(files, &context);
  }
  std::string Who(const ChannelFiles& files, grpc::ClientContext* context) const {
    test::SayResponse response;
    const grpc::Status status =
        test::Echo::NewStub(Open(files))->Say(context, test::SayRequest(), &response);
    if (status.ok()) return response.text();
    return fmt::format("{}: {}", static_cast<int>(status.error_code()), status.error_message());
  }

  TlsFolder tls_;
  metrics::Registry metrics_;
  tracing::Tracer tracer_{{}, metrics_};
  ServerConfig config_;
  bool tokens_ = false;
  std::optional<WhoService> service_;
  std::unique_ptr<Server> server_;
};

TEST_F(CallerTest, AReplicaSaysForWhomItAsks) {
  Start();
  grpc::ClientContext context;
  Forward({.user = "ann@uni.example", .groups = {"physics", "chercheurs é, 100%"}}, &context);
  EXPECT_EQ(Who(Showing(kGraph), &context), "ann@uni.example (physics,chercheurs é, 100%)");
}

TEST_F(CallerTest, AReplicaSaysAllThatIsKnownOfHim) {
  Start();
  grpc::ClientContext context;
  Forward({.user = "ann",
           .uid = "7=8",
           .extra = {{"acme.com/a=b", {"x,y", "é"}}, {"scopes", {"view", ""}}}},
          &context);
  EXPECT_EQ(Who(Showing(kGraph), &context), "ann () uid 7=8 acme.com/a=b=x,y,é scopes=view,");
}

TEST_F(CallerTest, OnlyTheQueueHandsOnWhatTheQueueHasJudged) {
  Start();
  const Metadata ann = {{kForwardedFor, "ann"}};
  EXPECT_EQ(Who(Showing(kQueue), ann), "ann () by the queue");
  EXPECT_EQ(Who(Showing(kGraph), ann), "ann ()");
}

TEST_F(CallerTest, ATokenIsTheCallers) {
  tokens_ = true;
  Start();
  const Metadata token = {{kAuthorization, "Bearer a.b-c"}};
  EXPECT_EQ(Who(Nothing(), token), " () token a.b-c");
  EXPECT_EQ(Who(Showing(kClient), token), " () token a.b-c");
  EXPECT_THAT(Who(Showing(kQueue), token), HasSubstr("7: fluxqueue-queue.system.svc is a replica"));
  EXPECT_THAT(Who(Showing(kGraph), {{kForwardedFor, "ann"}, {kAuthorization, "Bearer a"}}),
              HasSubstr("7: fluxqueue-graph.system.svc is a replica"));
  EXPECT_THAT(Who(Nothing(), {{kForwardedFor, "ann"}, {kAuthorization, "Bearer a"}}),
              HasSubstr("7: only replicas say for whom they ask"));
  EXPECT_THAT(Who(Nothing()), HasSubstr("or a token of Kubernetes for the audience fluxqueue"));
}

TEST_F(CallerTest, WhatIsNoTokenIsRefused) {
  tokens_ = true;
  Start();
  const std::string bearer = "Bearer ";
  for (const std::string& value : {std::string("Basic YTpi"),
                                   bearer,
                                   bearer + "a b",
                                   bearer + "a\"b",
                                   bearer + std::string(kMostTokenBytes + 1, 'a')}) {
    const std::string told = Who(Nothing(), {{kAuthorization, value}});
    EXPECT_THAT(told, HasSubstr("3: authorization: "));
    EXPECT_THAT(told, Not(HasSubstr("YTpi")));
  }
  EXPECT_THAT(Who(Nothing(), {{kAuthorization, "Bearer a"}, {kAuthorization, "Bearer b"}}),
              HasSubstr("3: authorization: allowed is 'Bearer TOKEN', once"));
}

TEST_F(CallerTest, AServiceThatTakesNoTokensSaysSo) {
  Start();
  EXPECT_THAT(Who(Nothing(), {{kAuthorization, "Bearer a"}}),
              HasSubstr("16: this service takes no tokens of Kubernetes"));
  EXPECT_THAT(Who(Showing(kClient), {{kAuthorization, "Bearer a"}}),
              HasSubstr("16: this service takes no tokens"));
}

TEST_F(CallerTest, AReplicaAsksForNobodyOnItsOwn) {
  Start();
  EXPECT_THAT(Who(Showing(kGraph)), HasSubstr("7: fluxqueue-graph.system.svc is a replica"));
}

TEST_F(CallerTest, OthersDoNotSayForWhomTheyAsk) {
  Start();
  const Metadata forged = {{kForwardedFor, "ann"}};
  EXPECT_THAT(Who(Nothing(), forged), HasSubstr("7: only replicas say for whom they ask"));
  EXPECT_THAT(Who(Showing(kClient), forged), HasSubstr("7: only replicas"));
  for (const char* key : {kForwardedGroup, kForwardedUid, kForwardedExtra}) {
    EXPECT_THAT(Who(Nothing(), {{key, "admins"}}), HasSubstr("7: only replicas")) << key;
  }
}

TEST_F(CallerTest, ACertificateOfAnotherAuthorityIsNotBelieved) {
  Start();
  tls_.Authority("other");
  EXPECT_THAT(Who(Showing(kGraph, "other"), {{kForwardedFor, "ann"}}), HasSubstr("14: "));
}

TEST_F(CallerTest, ACertificateOfAnotherNameIsNobodys) {
  Start();
  EXPECT_THAT(Who(Showing("elsewhere.svc")), HasSubstr("16: the call does not say who makes it"));
}

TEST_F(CallerTest, WhoShowsNothingIsToldWhatToDo) {
  Start();
  EXPECT_THAT(Who(Nothing()), HasSubstr("16: the call does not say who makes it: show"));
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("fluxqueue_grpc_refusals_total{code=\"UNAUTHENTICATED\"}"));
}

TEST_F(CallerTest, AListedClientIsNamedByItsCertificate) {
  Start();
  EXPECT_EQ(Who(Showing(kClient)), "fluxqueue:client:fluence.hpc.svc ()");
}

TEST_F(CallerTest, WhereCallersAreNotAskedForWhatIsSaidIsBelieved) {
  config_.callers = {};
  config_.tls.client_ca = "";
  Start();
  EXPECT_EQ(Who(Nothing(), {{kForwardedFor, "ann%20b"}, {kForwardedGroup, "g"}}), "ann b (g)");
  EXPECT_EQ(Who(Nothing()), "ipv4:127.0.0.1 ()");
  EXPECT_EQ(Who(Nothing(), {{kForwardedFor, "a%0"}}), "ipv4:127.0.0.1 ()");
}

TEST_F(CallerTest, WhatAReplicaSaysIsBounded) {
  Start();
  const ChannelFiles replica = Showing(kGraph);
  EXPECT_THAT(Who(replica, {{kForwardedFor, std::string(kMostUserBytes + 1, 'a')}}),
              HasSubstr("allowed: 512"));
  EXPECT_THAT(Who(replica, {{kForwardedFor, "a%0Ab"}}), HasSubstr("control character"));
  EXPECT_THAT(Who(replica, {{kForwardedFor, "a%0"}}), HasSubstr("per cent encoding"));
  Metadata many = {{kForwardedFor, "ann"}};
  many.resize(kMostGroups + 2, {kForwardedGroup, "g"});
  EXPECT_THAT(Who(replica, many), HasSubstr("is in 1001 groups"));
  many.resize(kMostGroups + 1);
  EXPECT_THAT(Who(replica, many), HasSubstr("ann (g,g,"));
  const auto besides = [&](const char* key, const std::string& value, size_t times = 1) {
    Metadata said = {{kForwardedFor, "ann"}};
    said.resize(1 + times, {key, value});
    return Who(replica, said);
  };
  EXPECT_THAT(besides(kForwardedUid, "u", 2), HasSubstr("fluxqueue-forwarded-uid: allowed once"));
  EXPECT_THAT(besides(kForwardedUid, std::string(600, 'u')), HasSubstr("the uid of user ann"));
  EXPECT_THAT(besides(kForwardedExtra, "scopes"), HasSubstr("allowed is KEY=VALUE"));
  EXPECT_THAT(besides(kForwardedExtra, "k=%0A"), HasSubstr("or a control character"));
  EXPECT_THAT(besides(kForwardedExtra, "k=v", kMostExtras + 1), HasSubstr("has 101 values"));
  EXPECT_THAT(besides(kForwardedExtra, "k=" + std::string(kMostExtraBytes, 'v')),
              HasSubstr("of 16385 bytes"));
  EXPECT_THAT(besides(kForwardedExtra, "k=v", kMostExtras), HasSubstr("ann () k=v,v,"));
}

TEST_F(CallerTest, TheServerHasToHaveTheNameToo) {
  Start();
  ChannelFiles files = Showing(kGraph);
  files.name = kGraph;
  EXPECT_THAT(Who(files, {{kForwardedFor, "ann"}}), HasSubstr("14: "));
}

TEST_F(CallerTest, HealthIsToldToAll) {
  Start();
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse response;
  EXPECT_TRUE(Health::NewStub(Open(Nothing()))->Check(&context, {}, &response).ok());
}

TEST_F(CallerTest, RenewedFilesAreReadOnBothSides) {
  Start();
  const ChannelFiles files = Showing(kClient);
  const std::string who = Who(files);
  tls_.Authority("ca");
  tls_.Sign("ca", "queue", fmt::format("subjectAltName=DNS:{}", kQueue));
  tls_.Sign("ca", kClient, fmt::format("subjectAltName=DNS:{}", kClient));
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (Who(files) != who) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(CallersTest, HaveToBeWhole) {
  const auto read = [](const std::string& yaml) {
    ServerConfig config;
    return Message(config::Read("c", yaml, Describe(&config)));
  };
  const std::string tls = "tls: {certificate: a, key: b, client_ca: c}\n";
  EXPECT_THAT(read(tls + "callers: {queue: a, graph: b}"), IsEmpty());
  EXPECT_THAT(read(tls + "callers: {queue: a}"), IsEmpty());
  EXPECT_THAT(read(tls + "callers: {clients: [a]}"), HasSubstr("queue has to be there"));
  EXPECT_THAT(read("callers: {queue: a, graph: b}"), HasSubstr("callers needs tls.client_ca"));
}

}  // namespace
}  // namespace fluxqueue::rpc
