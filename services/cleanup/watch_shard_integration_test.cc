// What cleanup says of a real API server's pods and of what Postgres has of them. The test plays
// the delivery loop, and those whose tables it reads.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"
#include "libs/metrics/metrics.h"
#include "libs/postgres/connection.h"
#include "libs/testing/mini_cluster.h"
#include "libs/testing/mini_postgres.h"
#include "libs/tracing/tracer.h"
#include "services/cleanup/adapters/watch_shard.h"

namespace fluxqueue::cleanup {
namespace {

using kubernetes::scripted::CrowdedApi;
using ::testing::ElementsAre;

class WatchShardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cluster = testing::MiniCluster::Start({.nodes = 1});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    auto config = kubernetes::LoadClusterConfig(cluster_->kubeconfig());
    ASSERT_TRUE(config.ok()) << config.status();
    MakeShard(*std::move(config));
  }

  void MakeShard(kubernetes::ClusterConfig config) {
    client_ = std::make_unique<kubernetes::Client>(std::move(config));
    Sql("CREATE SCHEMA queue; CREATE SCHEMA matcher; CREATE SCHEMA admission;"
        "CREATE TABLE queue.jobs (job_id text, pool text, kind text, namespace text, name text, "
        "  attempt integer, state text, slots integer, live boolean);"
        "CREATE TABLE matcher.graph_nodes (pool text, node bytea, present boolean);"
        "CREATE TABLE admission.pools (pool text, partition integer);"
        "INSERT INTO admission.pools VALUES ('default', 3)");
    shard_ =
        std::make_unique<WatchShard>(config_,
                                     *client_,
                                     std::make_unique<postgres::Connection>(Database("cleanup")),
                                     metrics_,
                                     clock_,
                                     tracer_,
                                     quarantine_,
                                     [] {});
  }

  postgres::Options Database(const std::string& schema) {
    return {.dsn = postgres_.dsn(), .application = "test", .schema = schema};
  }

  void Sql(const std::string& sql) {
    postgres::Connection own(Database("public"));
    const absl::Status status = own.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", Message(status));
  }

  void AddJob(const std::string& job_id) {
    Sql(
        fmt::format("INSERT INTO queue.jobs VALUES "
                    "('{}', 'default', 'Job', 'default', 'job', 1, 'Bound', 1, true)",
                    job_id));
  }

  void MakeBindersTable() {
    Sql("CREATE SCHEMA binder; CREATE TABLE binder.slots (job_id text, attempt integer, "
        "part integer, slot integer, node text, pod_uid text, namespace text, state text)");
  }
  void AddSlot(const std::string& job_id, const std::string& pod_uid) {
    Sql(
        fmt::format("INSERT INTO binder.slots VALUES "
                    "('{}', 1, 0, 0, 'node-0', '{}', 'default', 'bound')",
                    job_id,
                    pod_uid));
  }

  // A pod that its maker has put on a node, and that names a job. Its uid.
  std::string CreatePod(const std::string& name,
                        const std::string& node,
                        const std::string& job_id,
                        const std::string& slot,
                        const std::string& cpu = "100m") {
    const auto made = cluster_->Kubectl(
        {"create", "-o", "jsonpath={.metadata.uid}", "-f", "-"},
        fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","annotations":)"
                    R"({{"fluxqueue.io/job-id":"{}","fluxqueue.io/allocation":"{}",)"
                    R"("fluxqueue.io/run-seconds":"600"}}}},"spec":{{"nodeName":"{}",)"
                    R"("containers":[{{"name":"c","image":"none","resources":{{"requests":)"
                    R"({{"cpu":"{}"}}}}}}]}}}})",
                    name,
                    job_id,
                    slot,
                    node,
                    cpu));
    CHECK(made.ok(), "{}", Message(made.status()));
    return *made;
  }

  // One turn of the loop. What it said of jobs, and how many pods of others use the node.
  absl::Status Turn() {
    delivery::Outbox outbox;
    const absl::Status polled = shard_->Poll(outbox);
    if (!polled.ok()) {
      shard_->Rollback();
      return polled;
    }
    shard_->Commit();
    for (const delivery::Outbox::Message& message : outbox.messages()) {
      const events::v1::Envelope& fact = message.envelope;
      if (fact.has_node_upserted()) {
        foreign_ = 0;
        for (const auto& amount : fact.node_upserted().node().foreign()) {
          if (amount.resource() == "pods") foreign_ = amount.amount();
          if (amount.resource() == "cpu") foreign_cpu_ = amount.amount();
        }
      } else if (fact.has_job_started()) {
        said_.push_back(fmt::format(
            "started {} {}", fact.job_started().job_id(), fact.job_started().attempt()));
      } else if (!fact.has_inventory_synced()) {
        said_.push_back(fact.ShortDebugString());
      }
    }
    return absl::OkStatus();
  }

  bool Eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }

  testing::MiniPostgres postgres_;
  std::unique_ptr<testing::MiniCluster> cluster_;
  std::unique_ptr<kubernetes::Client> client_;
  const CleanupConfig config_;
  metrics::Registry registry_;
  CleanupMetrics metrics_{registry_};
  RealClock clock_;
  tracing::Tracer tracer_{{}, registry_};
  delivery::Quarantine quarantine_{clock_};
  std::unique_ptr<WatchShard> shard_;

  std::vector<std::string> said_;
  int64_t foreign_ = -1;
  int64_t foreign_cpu_ = -1;
};

class CrowdedShardTest : public WatchShardTest {
 protected:
  void SetUp() override {
    api_ = std::make_unique<CrowdedApi>();
    MakeShard(api_->config());
  }
  void TearDown() override { shard_.reset(); }

  std::unique_ptr<CrowdedApi> api_;
};

TEST_F(WatchShardTest, OnlyARowMakesAPodOurs) {
  const std::string honest = CreatePod("honest", "node-0", "job-1", "1.0.0/1");
  CreatePod("forged", "node-0", "job-2", "4294967295.0.0/1");
  CreatePod("nowhere", "node-that-is-not", "job-2", "1.0.0/1");
  CreatePod("odd", "node-0", R"(a\u0000b)", "1.0.0/1");
  const std::string late = CreatePod("late", "node-0", "job-3", "1.0.0/1");
  for (const char* job : {"job-1", "job-2", "job-3"}) AddJob(job);
  postgres::Connection connection(Database("cleanup"));
  const auto loaded =
      connection.Transact([&](pqxx::transaction_base& tx) { return shard_->Load(tx); });
  ASSERT_TRUE(loaded.ok()) << loaded;

  // The binder's table is waited for, and no event is lost by it.
  absl::Status waits;
  ASSERT_TRUE(Eventually([&] { return !(waits = Turn()).ok(); }));
  EXPECT_EQ(waits.code(), absl::StatusCode::kUnavailable) << waits;
  EXPECT_TRUE(shard_->HasWork());
  MakeBindersTable();
  AddSlot("job-1", honest);
  AddSlot("job-2", "another-pod");
  ASSERT_TRUE(Eventually([&] { return Turn().ok() && foreign_ == 3 && !said_.empty(); }))
      << foreign_ << " foreign pods; " << ::testing::PrintToString(said_);
  EXPECT_THAT(said_, ElementsAre("started job-1 1"));

  // What is proven stays so, also when it says something else.
  const auto changed = cluster_->Kubectl({"annotate",
                                          "pod",
                                          "honest",
                                          "fluxqueue.io/allocation-",
                                          "fluxqueue.io/job-id=job-2",
                                          "--overwrite"});
  ASSERT_TRUE(changed.ok()) << changed.status();
  // The binder has adopted it: the next sweep's rows bring its proof.
  AddSlot("job-3", late);
  shard_->PostLiveJobs({});
  ASSERT_TRUE(Eventually([&] { return Turn().ok() && foreign_ == 2; })) << foreign_;
  EXPECT_THAT(said_, ElementsAre("started job-1 1", "started job-3 1"));
}

TEST_F(WatchShardTest, WhatIsLeftOutUsesItsNode) {
  MakeBindersTable();
  AddJob("job-1");
  AddSlot("job-1", CreatePod("held", "node-0", "job-1", "1.0.0/1"));
  quarantine_.Restore({{.object = {.kind = "Pod", .space = "default", .uid = "namespace/default"},
                        .reason = "too many",
                        .held = true}});
  postgres::Connection connection(Database("cleanup"));
  const auto load = [&] {
    return connection.Transact([&](pqxx::transaction_base& tx) { return shard_->Load(tx); });
  };
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(Eventually([&] { return Turn().ok() && foreign_ == 1; })) << foreign_;
  EXPECT_THAT(said_, ElementsAre());
  // An operator retries it.
  quarantine_.Retried({{"Pod", "namespace/default"}});
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(Eventually([&] { return Turn().ok() && !said_.empty(); }));
  EXPECT_THAT(said_, ElementsAre("started job-1 1"));
}

TEST_F(WatchShardTest, APodThatAsksForMoreThanANumberHoldsUsesItsNodeInFull) {
  MakeBindersTable();
  AddJob("job-1");
  CreatePod("huge", "node-0", "job-2", "1.0.0/1", "1e20");
  AddSlot("job-1", CreatePod("held", "node-0", "job-1", "1.0.0/1"));
  postgres::Connection connection(Database("cleanup"));
  const auto loaded =
      connection.Transact([&](pqxx::transaction_base& tx) { return shard_->Load(tx); });
  ASSERT_TRUE(loaded.ok()) << loaded;
  ASSERT_TRUE(Eventually([&] { return Turn().ok() && foreign_ == 1 && !said_.empty(); }));
  EXPECT_THAT(said_, ElementsAre("started job-1 1"));
  EXPECT_EQ(foreign_cpu_, kubernetes::kMostAmount);
  EXPECT_TRUE(quarantine_.empty());
}

// Kafka is away, so that the loop does not ask what there is to say: 100,000 pods change meanwhile.
TEST_F(CrowdedShardTest, WhatNobodyTakesIsBoundedAndTheLastStateOfEachIsTakenInTheEnd) {
  // The limit, and of each watch the one item that has passed it.
  constexpr size_t kMostBytes = WatchShard::kMostInboxBytes + 6 * CrowdedApi::kPodBytes;
  MakeBindersTable();
  postgres::Connection connection(Database("cleanup"));
  const auto loaded =
      connection.Transact([&](pqxx::transaction_base& tx) { return shard_->Load(tx); });
  ASSERT_TRUE(loaded.ok()) << loaded;
  ASSERT_TRUE(Eventually([&] { return shard_->mailbox().times_full() > 0; }));
  EXPECT_LE(shard_->mailbox().bytes(), kMostBytes);
  EXPECT_TRUE(shard_->HasWork());

  // It is back.
  size_t most = 0;
  ASSERT_TRUE(Eventually([&] {
    most = std::max(most, shard_->mailbox().bytes());
    const absl::Status turned = Turn();
    EXPECT_TRUE(turned.ok()) << turned;
    return shard_->Ready().ok() && api_->told_all() && !shard_->HasWork();
  }));
  EXPECT_LE(most, kMostBytes);
}

}  // namespace
}  // namespace fluxqueue::cleanup
