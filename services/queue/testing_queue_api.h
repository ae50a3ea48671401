// For tests: two replicas of the queue, as the app wires them, and a matcher, over a small pool in
// a real Kafka and a real Postgres. There is no cluster; nodes are said here.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/wire.h"
#include "libs/kafka/producer.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/metrics/metrics.h"
#include "libs/postgres/migrations.h"
#include "libs/queue_core/testing_story.h"
#include "libs/rpc/channel.h"
#include "libs/rpc/server.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"
#include "libs/tracing/testing_collector.h"
#include "services/matcher/adapters/pool_handler.h"
#include "services/queue/adapters/pool_handler.h"
#include "services/queue/adapters/prune_store.h"
#include "services/queue/adapters/rpc/queue_service.h"
#include "services/queue/config.h"

#include "binder_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue::queue {

inline constexpr char kPool[] = "main";
inline constexpr int kPartition = 3;
inline constexpr std::chrono::seconds kDeadline{30};

inline int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  ::close(socket);
  return ntohs(address.sin_port);
}

struct NobodyLooks final : JobObserver {
  void Changed(std::vector<JobSeen>) override {}
  void PoolsGained(const std::set<std::string>& /*pools*/) override {}
  void PoolsLost(const std::set<std::string>& /*pools*/) override {}
  std::vector<std::string> Waiting() override { return {}; }
  void Moved(const std::vector<std::pair<std::string, int64_t>>&) override {}
};

// By default plain text, from anybody.
struct Access {
  rpc::ServerConfig::Tls tls{};
  rpc::ServerConfig::Callers callers{};
  access::Authority* authority = nullptr;
  rpc::ChannelFiles client{};  // with which the tests call

  rpc::ChannelFiles Replicas() const {
    return {tls.certificate, tls.key, tls.client_ca, callers.queue};
  }
};

// One replica of the queue.
class Replica {
 public:
  Replica(const delivery::LoopOptions& options,
          const Clock& clock,
          const std::string& collector,
          const Access& access)
      : port_(FreePort()),
        tracer_({.endpoint = collector, .interval = Millis(10)}, registry_),
        metrics_(registry_),
        desk_([this] { loop_->Wake(); }),
        handler_(observer_, feed_, desk_, metrics_, clock, tracer_) {
    delivery::LoopOptions own = options;
    own.address = fmt::format("127.0.0.1:{}", port_);
    loop_ = std::make_unique<delivery::PartitionLoop>(
        delivery::PartitionLoop::Options{own, own.topics.pool, {&migrations::queue()}},
        handler_,
        clock);
    service_ = std::make_unique<QueueService>(
        own.postgres,
        peers::PeerOptions{.own_address = own.address, .files = access.Replicas()},
        access.callers,
        access.authority,
        desk_,
        feed_);
    rpc::ServerConfig config = QueueConfig().grpc;
    config.port = port_;
    config.tls = access.tls;
    config.callers = access.callers;
    config.drain = Millis(200);
    server_ = std::make_unique<rpc::Server>(
        config,
        std::vector<rpc::ServedService>{rpc::Serve<v1::Queue>(
            *service_, [this] { service_->Drain(); }, /*tokens=*/true)},
        [this] { return loop_->Ready(); },
        registry_,
        tracer_);
    const absl::Status started = server_->Start();
    CHECK(started.ok(), "{}", Message(started));
    stub_ = NewStub(access.client);
    thread_ = std::jthread([this](std::stop_token stop) { (void)loop_->Run(stop); });
  }
  ~Replica() {
    server_->Stop();
    thread_ = {};
  }

  v1::Queue::Stub& stub() { return *stub_; }
  std::unique_ptr<v1::Queue::Stub> NewStub(const rpc::ChannelFiles& files) const {
    auto channel = rpc::Dialer(files).Open(fmt::format("127.0.0.1:{}", port_));
    CHECK(channel.ok(), "{}", Message(channel.status()));
    return v1::Queue::NewStub(*channel);
  }
  bool Holds() { return feed_.Holds(kPool); }
  uint64_t dead_letters() const { return loop_->stats().dead_letters; }

 private:
  const int port_;
  metrics::Registry registry_;
  tracing::Tracer tracer_;
  QueueMetrics metrics_;
  NobodyLooks observer_;
  FactFeed feed_;
  CommandDesk desk_;
  PoolHandler handler_;
  std::unique_ptr<delivery::PartitionLoop> loop_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::Queue::Stub> stub_;
  std::jthread thread_;
};

// Two nodes of 4 cores.
class Stack {
 public:
  explicit Stack(Access access = {})
      : access_(std::move(access)),
        db_({.dsn = postgres_.dsn(), .application = "test", .schema = "public"}) {
    postgres_.MakeRoles();
    postgres::Connection binder(
        {.dsn = postgres_.dsn_of("binder"), .application = "test", .schema = "binder"});
    CHECK(postgres::Migrate(binder, "binder", {&migrations::binder()}).ok(), "binder");
    Prepare("queue", migrations::queue());
    Prepare("matcher", migrations::matcher());
    auto producer = kafka::Producer::Create(kafka_.bootstrap(), "test", [](uint64_t) {});
    CHECK(producer.ok(), "{}", Message(producer.status()));
    producer_ = *std::move(producer);
    Say("admission/watch", queue_core::PoolConfig(5));
    events::v1::Envelope queue = queue_core::QueueMade("default");
    queue.mutable_queue_configured()->set_max_duration_ms(3'600'000);
    queue.mutable_queue_configured()->set_default_duration_ms(600'000);
    Say("admission/watch", queue);
    for (const char* node : {"n1", "n2"}) {
      Say("cleanup/watch", matcher_core::Upserted(matcher_core::MakeNode(node, 4000)));
    }
    Say("cleanup/watch", matcher_core::Synced());
    matcher_loop_ = std::make_unique<delivery::PartitionLoop>(
        delivery::PartitionLoop::Options{Options("matcher", "matcher-1"), "fluxqueue.pool"},
        matcher_handler_,
        clock_);
    StartMatcher();
    first_ = MakeReplica("queue-1");
    WaitFor([&] { return first_->Holds(); }, "the first replica to hold the pool");
  }

  std::unique_ptr<Replica> MakeReplica(const std::string& instance) {
    return std::make_unique<Replica>(
        Options("queue", instance), clock_, collector_.endpoint(), access_);
  }
  const Access& access() const { return access_; }
  std::string dsn_of(const std::string& service) const { return postgres_.dsn_of(service); }
  Replica& first() { return *first_; }

  // Of the replicas.
  tracing::Collector& collector() { return collector_; }
  void Kill() { first_.reset(); }
  void StopMatcher() { matcher_ = {}; }
  void StartMatcher() {
    matcher_ = std::jthread([this](std::stop_token stop) { (void)matcher_loop_->Run(stop); });
  }

  void Say(const std::string& stream, events::v1::Envelope message) {
    message.set_pool(kPool);
    message.set_stream(stream);
    message.set_sequence(++sequences_[stream]);
    const delivery::WireRecord record = delivery::MakeRecord(message, kPartition);
    absl::Status status = producer_->Produce(
        "fluxqueue.pool", kPartition, record.key, record.value, record.headers, 1);
    if (status.ok()) status = producer_->Flush(Millis(10'000));
    CHECK(status.ok(), "{}", Message(status));
  }

  static void WaitFor(const std::function<bool()>& condition, const std::string& what) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "waited for " << what;
      std::this_thread::sleep_for(Millis(10));
    }
  }

  int64_t Number(const std::string& sql) {
    int64_t value = -1;
    const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
      value = tx.exec(sql)[0][0].as<int64_t>();
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}: {}", sql, Message(status));
    return value;
  }

  // How many jobs were forgotten.
  size_t PruneEndedJobs(Millis age, uint64_t kept) {
    postgres::Connection db({.dsn = postgres_.dsn(), .application = "test", .schema = "queue"});
    size_t pruned = 0;
    const absl::Status status = db.Transact([&](pqxx::transaction_base& tx) {
      pruned = PruneEnded(tx, kPool, age, kept);
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", Message(status));
    return pruned;
  }

 private:
  delivery::LoopOptions Options(const std::string& service, const std::string& instance) {
    return {
        .service = service,
        .instance = instance,
        .brokers = kafka_.bootstrap(),
        .topics = {},
        .postgres = {.dsn = postgres_.dsn_of(service), .application = service, .schema = service},
        .session_timeout = Millis{1500}};
  }
  void Prepare(const std::string& service, const postgres::MigrationSet& set) {
    const absl::Status status =
        delivery::Prepare(Options(service, "test"), {&set}, [](const absl::Status&) {}, {});
    CHECK(status.ok(), "{}", Message(status));
  }

  const Access access_;
  testing::MiniKafka kafka_;
  testing::MiniPostgres postgres_;
  postgres::Connection db_;
  RealClock clock_;
  std::unique_ptr<kafka::Producer> producer_;
  std::map<std::string, uint64_t> sequences_;
  metrics::Registry registry_;
  matcher::MatcherMetrics matcher_metrics_{registry_};
  tracing::Tracer tracer_{{}, registry_};
  matcher::PoolHandler matcher_handler_{{}, matcher_metrics_, clock_, tracer_};
  std::unique_ptr<delivery::PartitionLoop> matcher_loop_;
  std::jthread matcher_;
  tracing::Collector collector_;
  std::unique_ptr<Replica> first_;
};

class QueueApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { stack_ = std::make_unique<Stack>(); }
  static void TearDownTestSuite() { stack_.reset(); }

  // Every claim of the test is gone when it ends.
  void TearDown() override {
    for (const std::string& id : claims_) Cancel(id);
    Stack::WaitFor([] { return Live() == 0; }, "no live job");
  }
  static int64_t Live() { return stack_->Number("SELECT count(*) FROM queue.jobs WHERE live"); }

  template <typename Request, typename Response>
  static grpc::Status Call(grpc::Status (v1::Queue::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&,
                                                                   Response*),
                           const Request& request,
                           Response* response,
                           v1::Queue::Stub& stub = stack_->first().stub()) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    return (stub.*method)(&context, request, response);
  }

  static v1::SubmitClaimRequest ClaimRequest(const std::string& client_id,
                                             uint32_t slots,
                                             int64_t cpu) {
    v1::SubmitClaimRequest request;
    request.set_client_id(client_id);
    request.set_pool(kPool);
    request.set_jobspec(matcher_core::JobspecText(slots, cpu));
    request.set_owner("ann");
    request.mutable_wait()->set_seconds(20);
    return request;
  }
  v1::SubmitClaimResponse Claim(const v1::SubmitClaimRequest& request,
                                v1::Queue::Stub& stub = stack_->first().stub()) {
    v1::SubmitClaimResponse response;
    const grpc::Status status = Call(&v1::Queue::Stub::SubmitClaim, request, &response, stub);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (status.ok()) claims_.push_back(response.job().id());
    return response;
  }
  v1::SubmitClaimResponse Claim(const std::string& client_id, uint32_t slots, int64_t cpu) {
    return Claim(ClaimRequest(client_id, slots, cpu));
  }
  static grpc::Status Cancel(const std::string& job_id, const std::string& client_id = "") {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    request.set_client_id(client_id);
    v1::CancelJobResponse response;
    return Call(&v1::Queue::Stub::CancelJob, request, &response);
  }
  static v1::GetJobResponse Get(const std::string& job_id) {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    v1::GetJobResponse response;
    const grpc::Status status = Call(&v1::Queue::Stub::GetJob, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static void ExpectState(const std::string& job_id, v1::State state) {
    v1::State is = v1::STATE_UNSPECIFIED;
    Stack::WaitFor([&] { return (is = Get(job_id).job().state()) == state; },
                   fmt::format("job {} in state {}", job_id, v1::State_Name(state)));
    EXPECT_EQ(is, state);
  }
  static std::string FieldOf(const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::BadRequest bad;
    if (!details.ParseFromString(status.error_details())) return "";
    for (const auto& detail : details.details()) {
      if (detail.UnpackTo(&bad) && bad.field_violations_size() > 0) {
        return bad.field_violations(0).field();
      }
    }
    return "";
  }

  static inline std::unique_ptr<Stack> stack_;
  std::vector<std::string> claims_;
};

}  // namespace fluxqueue::queue
