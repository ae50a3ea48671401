#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "echo.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "health.grpc.pb.h"

#include "libs/base/status_macros.h"
#include "libs/config/section.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/grpc_status.h"
#include "libs/rpc/server.h"
#include "libs/rpc/testing_tls.h"
#include "libs/rpc/worker_pool.h"
#include "libs/tracing/testing_collector.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::rpc {
namespace {

using namespace std::chrono_literals;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using test::Echo;
using test::SayRequest;
using test::SayResponse;
using json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers on a thread of its own, as those do that must wait.
class EchoService final : public Echo::CallbackService {
 public:
  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context,
                                const SayRequest* request,
                                SayResponse* response) override {
    auto* reactor = context->DefaultReactor();
    pool_.Post([=, this] {
      ++begun_;
      const auto end = std::chrono::steady_clock::now() + Millis(request->wait_ms());
      while (std::chrono::steady_clock::now() < end && !context->IsCancelled()) {
        std::this_thread::sleep_for(1ms);
      }
      if (context->IsCancelled()) ++cancelled_;
      response->set_text(request->text());
      const auto traced = context->client_metadata().find(tracing::kTraceparent);
      if (traced != context->client_metadata().end()) {
        response->set_traceparent({traced->second.data(), traced->second.size()});
      }
      const auto code = static_cast<absl::StatusCode>(request->code());
      reactor->Finish(ToGrpcStatus(MakeStatus(code, "as asked: {}", request->text())));
    });
    return reactor;
  }

  grpc::ServerWriteReactor<SayResponse>* Repeat(grpc::CallbackServerContext*,
                                                const SayRequest* request) override {
    class Writer final : public grpc::ServerWriteReactor<SayResponse> {
     public:
      Writer(const std::atomic<bool>& draining, const std::string& text) : draining_(draining) {
        response_.set_text(text);
        StartWrite(&response_);
      }
      void OnWriteDone(bool ok) override {
        if (!ok || draining_) {
          Finish({grpc::StatusCode::UNAVAILABLE, "stopping"});
        } else {
          StartWrite(&response_);
        }
      }
      void OnDone() override { delete this; }

     private:
      const std::atomic<bool>& draining_;
      SayResponse response_;
    };
    return new Writer(draining_, request->text());
  }

  int begun() const { return begun_; }
  int cancelled() const { return cancelled_; }
  void Drain() { draining_ = true; }

 private:
  std::atomic<int> begun_ = 0;
  std::atomic<int> cancelled_ = 0;
  std::atomic<bool> draining_ = false;
  WorkerPool pool_{2};
};

// Whether it is so within ten seconds.
bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class RpcTest : public testing::Test {
 protected:
  RpcTest() { config_.port = 0; }

  absl::Status Start() {
    tracer_.emplace(tracing_, metrics_);
    server_ = std::make_unique<Server>(
        config_,
        std::vector<ServedService>{Serve<Echo>(echo_, [this] { echo_.Drain(); })},
        [this] { return ready_ ? absl::OkStatus() : Unavailable("not yet"); },
        metrics_,
        *tracer_);
    return server_->Start();
  }

  std::string Address() const { return fmt::format("127.0.0.1:{}", server_->port()); }

  std::shared_ptr<grpc::Channel> Connect() const {
    return grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials());
  }

  static grpc::Status Say(const std::shared_ptr<grpc::Channel>& channel,
                          const SayRequest& request,
                          SayResponse* response,
                          Millis deadline = 10s,
                          const std::string& traceparent = "") {
    grpc::ClientContext context;
    if (!traceparent.empty()) context.AddMetadata(tracing::kTraceparent, traceparent);
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    return Echo::NewStub(channel)->Say(&context, request, response);
  }

  static SayRequest Text(const std::string& text, int wait_ms = 0, int code = 0) {
    SayRequest request;
    request.set_text(text);
    request.set_wait_ms(wait_ms);
    request.set_code(code);
    return request;
  }

  // SERVICE_UNKNOWN when the server does not know it.
  static HealthCheckResponse::ServingStatus HealthOf(const std::shared_ptr<grpc::Channel>& channel,
                                                     const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    grpc::ClientContext context;
    const grpc::Status status = Health::NewStub(channel)->Check(&context, request, &response);
    if (status.ok()) return response.status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }

  metrics::Registry metrics_;
  tracing::TracerOptions tracing_;
  std::optional<tracing::Tracer> tracer_;
  EchoService echo_;
  std::atomic<bool> ready_ = true;
  ServerConfig config_;
  std::unique_ptr<Server> server_;
};

TEST_F(RpcTest, CallsAreAnsweredAndCounted) {
  ASSERT_TRUE(Start().ok());
  const auto channel = Connect();
  SayResponse response;
  ASSERT_TRUE(Say(channel, Text("hello"), &response).ok());
  EXPECT_EQ(response.text(), "hello");
  EXPECT_EQ(Say(channel, Text("hello", 0, 5), &response).error_code(), grpc::StatusCode::NOT_FOUND);
  // Each call is counted after its status has been sent.
  for (const std::string_view wanted :
       {R"(fluxqueue_grpc_calls_total{code="NOT_FOUND",method="fluxqueue.rpc.test.Echo/Say"} 1)",
        R"(fluxqueue_grpc_calls_total{code="OK",method="fluxqueue.rpc.test.Echo/Say"} 1)",
        R"(fluxqueue_grpc_call_seconds_count{method="fluxqueue.rpc.test.Echo/Say"} 2)"}) {
    EXPECT_TRUE(Eventually([&] { return metrics_.Text().find(wanted) != std::string::npos; }))
        << wanted << " in " << metrics_.Text();
  }
}

TEST_F(RpcTest, ErrorsCarryTheirDetails) {
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  const grpc::Status status = Say(Connect(), Text("no", 0, 3), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), "as asked: no");
  ASSERT_EQ(details.details_size(), 2);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INVALID_ARGUMENT");
  EXPECT_EQ(info.domain(), "fluxqueue.io");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).description(), "as asked: no");
}

TEST(ErrorDetailsTest, ReasonAndFieldGoWithTheStatus) {
  const absl::Status status = InField(
      WithReason(InvalidArgument("too many"), "TOO_MANY", {{"limit", "64"}}), "jobspecs[2]");
  const google::rpc::Status details = DetailsOf(status);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "TOO_MANY");
  EXPECT_EQ(info.metadata().at("limit"), "64");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "jobspecs[2]");
  EXPECT_TRUE(WithReason(absl::OkStatus(), "X").ok());
  EXPECT_TRUE(InField(absl::OkStatus(), "x").ok());
}

TEST(ErrorDetailsTest, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(DetailsOf(InvalidArgument("{}", std::string(100'000, 'x'))).message().size(), 1200U);
  EXPECT_EQ(MetadataText("a\nb ä"), "a?b ??");
}

// A long message must not make the status itself undeliverable.
TEST_F(RpcTest, LongErrorsArrive) {
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  const grpc::Status status = Say(Connect(), Text(std::string(50'000, '\n'), 0, 3), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("as asked"));
}

TEST_F(RpcTest, HealthFollowsReadiness) {
  ready_ = false;
  ASSERT_TRUE(Start().ok());
  const auto channel = Connect();
  EXPECT_EQ(HealthOf(channel, ""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(HealthOf(channel, Echo::service_full_name()), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(HealthOf(channel, "no.such.Service"), HealthCheckResponse::SERVICE_UNKNOWN);
  ready_ = true;
  EXPECT_TRUE(Eventually([&] { return HealthOf(channel, "") == HealthCheckResponse::SERVING; }));
  // One after the other.
  EXPECT_TRUE(Eventually([&] {
    return HealthOf(channel, Echo::service_full_name()) == HealthCheckResponse::SERVING;
  }));
}

TEST_F(RpcTest, RequestsAboveTheLimitAreRefused) {
  config_.max_request = 64 << 10;
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  EXPECT_TRUE(Say(Connect(), Text(std::string(60 << 10, 'x')), &response).ok());
  EXPECT_EQ(Say(Connect(), Text(std::string(65 << 10, 'x')), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RpcTest, AnswersAboveTheLimitAreNotSent) {
  config_.max_message = 64 << 10;
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  EXPECT_TRUE(Say(Connect(), Text(std::string(60 << 10, 'x')), &response).ok());
  EXPECT_EQ(Say(Connect(), Text(std::string(65 << 10, 'x')), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A caller that holds more than all may have is cut, and the server goes on.
TEST_F(RpcTest, MemoryIsLimited) {
  config_.max_memory = 1 << 20;
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  const grpc::Status status = Say(Connect(), Text(std::string(32 << 20, 'x'), 0, 3), &response);
  EXPECT_NE(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), Not(HasSubstr("as asked")));
  EXPECT_TRUE(Eventually([&] { return Say(Connect(), Text("hello"), &response).ok(); }));
}

TEST_F(RpcTest, LargeRequestsAreReadByDefault) {
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  const grpc::Status status = Say(Connect(), Text(std::string(32 << 20, 'x'), 0, 3), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
}

TEST(WorkerPoolTest, AFullPoolSaysSo) {
  WorkerPool pool(1, 2);
  std::promise<void> begun;
  std::promise<void> go;
  std::atomic<int> done = 0;
  ASSERT_TRUE(pool.TryPost([&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(pool.TryPost([&] { ++done; }));
  EXPECT_TRUE(pool.TryPost([&] { ++done; }));
  EXPECT_FALSE(pool.TryPost([&] { ++done; }));
  pool.Post([&] { ++done; });
  go.set_value();
  EXPECT_TRUE(Eventually([&] { return done == 3; }));
  EXPECT_TRUE(pool.TryPost([&] { ++done; }));
}

TEST_F(RpcTest, TheHandlerSeesThatTheDeadlineIsOver) {
  ASSERT_TRUE(Start().ok());
  SayResponse response;
  EXPECT_EQ(Say(Connect(), Text("slow", 60'000), &response, 100ms).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return echo_.cancelled() == 1; }));
}

TEST_F(RpcTest, StopLetsCallsEndAndEndsStreams) {
  ASSERT_TRUE(Start().ok());
  const auto channel = Connect();
  SayResponse response;
  grpc::Status said;
  std::jthread caller([&] { said = Say(channel, Text("under way", 300), &response); });
  grpc::ClientContext context;
  const auto stub = Echo::NewStub(channel);
  const auto stream = stub->Repeat(&context, Text("again"));
  SayResponse again;
  ASSERT_TRUE(stream->Read(&again));
  ASSERT_TRUE(Eventually([&] { return echo_.begun() == 1; }));
  std::jthread reader([&] {
    while (stream->Read(&again)) {
    }
  });
  const auto before = std::chrono::steady_clock::now();
  server_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
  caller.join();
  EXPECT_TRUE(said.ok()) << said.error_message();
  reader.join();
  EXPECT_EQ(stream->Finish().error_message(), "stopping");
  EXPECT_EQ(Say(channel, Text("late"), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->Stop();
}

TEST_F(RpcTest, WhatDoesNotEndInTimeIsCancelled) {
  config_.drain = 200ms;
  ASSERT_TRUE(Start().ok());
  const auto channel = Connect();
  SayResponse response;
  grpc::Status said;
  std::jthread caller([&] { said = Say(channel, Text("endless", 60'000), &response, 60s); });
  ASSERT_TRUE(Eventually([&] { return echo_.begun() == 1; }));
  const auto before = std::chrono::steady_clock::now();
  server_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
  caller.join();
  EXPECT_FALSE(said.ok());
  EXPECT_EQ(echo_.cancelled(), 1);
}

TEST_F(RpcTest, WithoutAPortNothingIsServed) {
  config_.port = ServerConfig::kNoPort;
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->port(), 0);
  server_->Stop();
}

TEST_F(RpcTest, APortInUseIsAnError) {
  ASSERT_TRUE(Start().ok());
  ServerConfig config = config_;
  config.port = server_->port();
  metrics::Registry metrics;
  Server other(
      config, {}, [] { return absl::OkStatus(); }, metrics, *tracer_);
  const absl::Status status = other.Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("grpc.port"));
}

// ---- traces

TEST_F(RpcTest, ACallWithATraceparentIsASpanBelowIt) {
  tracing::Collector collector;
  tracing_ = {.endpoint = collector.endpoint(), .interval = 1h};
  ASSERT_TRUE(Start().ok());
  const auto channel = Connect();
  const tracing::Context caller{std::string(32, 'a'), std::string(16, 'b')};
  SayResponse response;
  EXPECT_TRUE(Say(channel, Text("none"), &response).ok());
  EXPECT_EQ(response.traceparent(), "");
  EXPECT_TRUE(Say(channel, Text("malformed"), &response, 10s, "00-aa-bb-01").ok());
  EXPECT_EQ(response.traceparent(), "00-aa-bb-01");
  EXPECT_EQ(
      Say(channel, Text("traced", 5, 5), &response, 10s, tracing::Format(caller)).error_code(),
      grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Say(channel, Text("again"), &response, 10s, tracing::Format(caller)).ok());
  const auto own = tracing::ParseTraceparent(response.traceparent());
  ASSERT_TRUE(own.has_value()) << response.traceparent();
  EXPECT_EQ(own->trace_id, caller.trace_id);

  server_->Stop();
  tracer_.reset();
  const std::vector<json> spans = collector.Spans();
  ASSERT_EQ(spans.size(), 2U);
  for (const json& span : spans) {
    EXPECT_EQ(span["name"], "rpc Say");
    EXPECT_EQ(span["kind"], 2);
    EXPECT_EQ(span["traceId"], caller.trace_id);
    EXPECT_EQ(span["parentSpanId"], caller.span_id);
  }
  EXPECT_NE(spans[0]["spanId"], own->span_id);
  EXPECT_EQ(spans[1]["spanId"], own->span_id);
  const auto text = [](const char* key, const char* value) {
    return json{{"key", key}, {"value", {{"stringValue", value}}}};
  };
  EXPECT_EQ(spans[0]["attributes"],
            json::array({text("rpc.system", "grpc"),
                         text("rpc.method", "fluxqueue.rpc.test.Echo/Say"),
                         text("rpc.response.status_code", "NOT_FOUND")}));
  EXPECT_GE(std::stoll(spans[0]["endTimeUnixNano"].get<std::string>()) -
                std::stoll(spans[0]["startTimeUnixNano"].get<std::string>()),
            5'000'000);
}

// ---- TLS

class TlsTest : public RpcTest {
 protected:
  TlsTest() {
    tls_.Authority("ca");
    tls_.Sign("ca", "server", "subjectAltName=IP:127.0.0.1");
    tls_.Sign("ca", "client", "extendedKeyUsage=clientAuth");
    config_.tls = {tls_.Path("server.crt"), tls_.Path("server.key"), ""};
  }
  void TearDown() override { server_.reset(); }

  // `client`: whose certificate is shown; none when empty.
  grpc::Status Call(const std::string& authority, const std::string& client) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = tls_.Read(authority + ".crt");
    if (!client.empty()) {
      options.pem_cert_chain = tls_.Read(client + ".crt");
      options.pem_private_key = tls_.Read(client + ".key");
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    SayResponse response;
    return Say(grpc::CreateCustomChannel(Address(), grpc::SslCredentials(options), arguments),
               Text("hello"),
               &response,
               5s);
  }

  TlsFolder tls_;
};

TEST_F(TlsTest, ClientsMustTrustTheServer) {
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(Call("ca", "").ok());
  tls_.Authority("other");
  EXPECT_EQ(Call("other", "").error_code(), grpc::StatusCode::UNAVAILABLE);
  SayResponse response;
  EXPECT_FALSE(Say(Connect(), Text("plain"), &response, 2s).ok());
}

TEST_F(TlsTest, TheServerMustTrustClientsWhenToldSo) {
  config_.tls.client_ca = tls_.Path("ca.crt");
  ASSERT_TRUE(Start().ok());
  const grpc::Status known = Call("ca", "client");
  EXPECT_TRUE(known.ok()) << known.error_message();
  EXPECT_FALSE(Call("ca", "").ok());
  tls_.Authority("other");
  tls_.Sign("other", "stranger", "extendedKeyUsage=clientAuth");
  EXPECT_FALSE(Call("ca", "stranger").ok());
}

TEST_F(TlsTest, NewCertificatesAreTaken) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Call("ca", "").ok());
  tls_.Authority("next");
  tls_.Sign("next", "server", "subjectAltName=IP:127.0.0.1");
  EXPECT_TRUE(Eventually([&] { return Call("next", "").ok(); }));
}

TEST_F(TlsTest, UnusableFilesAreNamedAtStart) {
  config_.tls.key = tls_.Path("client.key");
  absl::Status status = Start();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("client.key"));
  config_.tls = {tls_.Path("nowhere.crt"), tls_.Path("server.key"), ""};
  EXPECT_THAT(Message(Start()), HasSubstr("nowhere.crt"));
  config_.tls = {tls_.Path("server.crt"), tls_.Path("server.key"), tls_.Path("server.key")};
  EXPECT_THAT(Message(Start()), HasSubstr("authority of clients"));
}

// ---- configuration

TEST(ServerConfigTest, IsReadAndValidated) {
  ServerConfig config;
  EXPECT_FALSE(config.enabled());
  ASSERT_TRUE(config::Read("c.yaml",
                           "port: 9200\ntls: {certificate: a, key: b, client_ca: c}\n"
                           "max_message: 1MiB\nmax_calls: 7\nkeepalive: 30s\ndrain: 1s\n",
                           Describe(&config))
                  .ok());
  EXPECT_TRUE(config.enabled());
  EXPECT_EQ(config.port, 9200);
  EXPECT_EQ(config.tls.client_ca, "c");
  EXPECT_EQ(config.max_message, 1 << 20);
  EXPECT_EQ(config.max_calls, 7);
}

TEST(ServerConfigTest, HalfATlsIsAProblem) {
  ServerConfig config;
  EXPECT_THAT(Message(config::Read("c", "tls: {key: b}", Describe(&config))),
              HasSubstr("go together"));
  config = {};
  EXPECT_THAT(Message(config::Read("c", "tls: {client_ca: b}", Describe(&config))),
              HasSubstr("client_ca needs"));
  config = {};
  EXPECT_THAT(Message(config::Read("c", "prot: 1", Describe(&config))), HasSubstr("unknown key"));
}

}  // namespace
}  // namespace fluxqueue::rpc
