// FluxJobs compared with the rows of a real Postgres; the API server is played here.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"
#include "libs/metrics/metrics.h"
#include "libs/model/job_state.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/statement.h"
#include "libs/testing/mini_postgres.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/flux_job_writer.h"

#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue::queue {
namespace {

using model::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of a year ago.
constexpr postgres::Statement kInsertJob{
    "test_insert_job",
    "INSERT INTO queue.jobs (job_id, pool, queue, namespace, name, kind, state, version, attempt, "
    "  reason, message, slots, priority, created_ms, start_ms, updated_ms, placement_hash, row) "
    "VALUES ($1, 'main', 'default', 'team', $1, 'Job', $2, $3, 1, '', '', 1, 0, 0, 0, 0, 0, $4) "
    "ON CONFLICT (job_id) DO UPDATE SET state = $2, version = $3, row = $4"};

class FluxJobWriterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  FluxJobWriterTest() : connection_(Database("queue")) {
    Must(connection_.Transact([](pqxx::transaction_base& tx) {
      tx.exec("DROP SCHEMA IF EXISTS queue CASCADE; DROP SCHEMA IF EXISTS matcher CASCADE");
      return absl::OkStatus();
    }));
    Must(postgres::Migrate(connection_, "queue", {&delivery::Migrations(), &migrations::queue()}));
    postgres::Connection matcher(Database("matcher"));
    Must(postgres::Migrate(matcher, "matcher", {&migrations::matcher()}));
  }

  static postgres::Options Database(const std::string& schema) {
    return {.dsn = postgres_->dsn(), .application = "test", .schema = schema};
  }
  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  static events::v1::JobFact FactOf(const std::string& id,
                                    JobState state,
                                    uint64_t version,
                                    const std::string& pool = "main") {
    events::v1::JobFact fact;
    fact.set_job_id(id);
    fact.set_pool(pool);
    fact.set_version(version);
    fact.set_attempt(1);
    fact.set_state(static_cast<events::v1::JobState>(state));
    fact.mutable_workload()->set_kind("Job");
    fact.mutable_workload()->set_namespace_("team");
    fact.mutable_workload()->set_name(id);
    fact.mutable_workload()->set_uid(id);
    return fact;
  }
  void Row(const std::string& id,
           JobState state,
           uint64_t version,
           const std::string& pool = "main") {
    v1::JobRow row;
    *row.mutable_fact() = FactOf(id, state, version, pool);
    Must(connection_.Transact([&](pqxx::transaction_base& tx) {
      postgres::Exec(tx,
                     kInsertJob,
                     id,
                     std::string(model::Name(state)),
                     static_cast<int64_t>(version),
                     pqxx::binarystring(row.SerializeAsString()));
      return absl::OkStatus();
    }));
  }
  void Shown(const std::string& id, JobState state, uint64_t version) {
    const std::lock_guard lock(mutex_);
    nlohmann::json object = {
        {"metadata",
         {{"name", "job-" + id},
          {"namespace", "team"},
          {"uid", "object-" + id},
          {"ownerReferences", nlohmann::json::array({nlohmann::json::object({{"uid", id}})})}}},
        {"spec", {{"jobId", id}}},
        {"status", {{"version", version}, {"state", model::Name(state)}}}};
    Keep("job-" + id, std::move(object));
  }
  // REQUIRES: mutex_ is held
  std::string Keep(const std::string& name, nlohmann::json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++changes_);
    return shown_[name] = object.dump();
  }
  uint64_t ShownVersionOf(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return nlohmann::json::parse(shown_.at("job-" + id))["status"]["version"];
  }
  // A batch was committed in which the job became this.
  void Committed(const std::string& id, JobState state, uint64_t version, int64_t position = 0) {
    Row(id, state, version);
    writer_.Changed({{.fact = FactOf(id, state, version), .position = position}});
  }

  http::Response Answer(const http::Request& request) {
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    if (request.path.find("/fluxjobs") == std::string::npos) {
      ++events_;
      return {.body = "{}"};
    }
    if (request.method == "GET" && name == "fluxjobs") return List();
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") return {.body = shown_.at(name)};
    nlohmann::json sent = nlohmann::json::parse(request.body);
    if (request.method == "PATCH") {
      nlohmann::json object = nlohmann::json::parse(shown_.at(name));
      if (sent["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"]) {
        api_.Note("conflict " + name);
        if (on_conflict_) std::exchange(on_conflict_, {})();
        return {.status = 409, .body = R"({"reason": "Conflict"})"};
      }
      api_.Note("patch " + name);
      object.merge_patch(sent);
      return {.body = Keep(name, std::move(object))};
    }
    const std::string made = sent["metadata"]["name"];
    if (shown_.contains(made)) return {.status = 409, .body = R"({"reason": "AlreadyExists"})"};
    api_.Note("create " + made);
    return {.status = 201, .body = Keep(made, std::move(sent))};
  }
  http::Response List() {
    ++lists_;
    if (down_) return {.status = 503, .body = "down"};
    const std::lock_guard lock(mutex_);
    std::string items;
    for (const auto& [name, object] : shown_) items += (items.empty() ? "" : ",") + object;
    return {.body = kubernetes::scripted::List(1, items)};
  }

  void Start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { Must(writer_.Run(stop)); });
  }
  template <typename Condition>
  static void WaitFor(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(Millis(5));
    }
    EXPECT_TRUE(condition());
  }

  // What is written next is due when the write before it has ended.
  template <typename Condition>
  void AdvanceUntil(const Condition& condition) {
    WaitFor([&] {
      clock_.Advance(Millis(100));
      return condition();
    });
  }

  static testing::MiniPostgres* postgres_;
  postgres::Connection connection_;
  std::mutex mutex_;
  std::map<std::string, std::string> shown_;
  int changes_ = 0;
  std::function<void()> on_conflict_;  // once
  std::atomic<int> lists_ = 0;
  std::atomic<int> events_ = 0;
  std::atomic<bool> down_ = false;
  kubernetes::scripted::NotedApi api_{[this](const http::Request& r) { return Answer(r); }};
  kubernetes::Client client_{api_.config()};
  metrics::Registry registry_;
  QueueMetrics metrics_{registry_};
  FluxJobSource source_{Database("queue")};
  FakeClock clock_;
  FluxJobWriter writer_{client_, source_, metrics_, clock_, FluxJobTimes{.first_delay = Millis(0)}};
  std::jthread thread_;
};

testing::MiniPostgres* FluxJobWriterTest::postgres_ = nullptr;

// However long ago it ended.
TEST_F(FluxJobWriterTest, WhatIsMissingOrOldIsWrittenWhenPoolsAreGained) {
  Row("new", JobState::kRunning, 3);
  Row("moved", JobState::kRunning, 3);
  Shown("moved", JobState::kPending, 1);
  Row("as-shown", JobState::kRunning, 3);
  Shown("as-shown", JobState::kRunning, 3);
  Row("ended", JobState::kSucceeded, 4);
  Shown("ended", JobState::kRunning, 3);
  Row("ended-as-shown", JobState::kSucceeded, 4);
  Shown("ended-as-shown", JobState::kSucceeded, 4);
  Row("went-on", JobState::kSucceeded, 9);
  Shown("went-on", JobState::kRejected, 2);
  Row("ended-and-gone", JobState::kFailed, 4);
  Shown("forgotten", JobState::kRunning, 3);  // it has no row any more
  writer_.PoolsGained({"main"});
  Start();
  api_.WaitFor(4);
  thread_ = {};
  std::vector<std::string> acts = api_.WaitFor(4);
  std::sort(acts.begin(), acts.end());
  EXPECT_THAT(
      acts,
      ElementsAre("create job-new", "patch job-ended", "patch job-moved", "patch job-went-on"));
}

// It has lost the pool, and does not know it yet.
TEST_F(FluxJobWriterTest, AnObjectThatAnotherHasWrittenSinceDoesNotGoBack) {
  Start();
  Committed("a", JobState::kPending, 1, /*position=*/1);
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-a"));
  Shown("a", JobState::kSucceeded, 5);
  writer_.Moved({{"a", 2}});
  AdvanceUntil([&] { return writer_.backlog() == 0; });
  EXPECT_THAT(api_.WaitFor(2), ElementsAre("create job-a", "conflict job-a"));
  EXPECT_EQ(ShownVersionOf("a"), 5);
}

TEST_F(FluxJobWriterTest, AnEndThatComesDuringSuchAWriteIsShown) {
  Start();
  Committed("a", JobState::kPending, 1, /*position=*/1);
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-a"));
  Shown("a", JobState::kRunning, 5);
  on_conflict_ = [this] { Committed("a", JobState::kSucceeded, 7); };
  writer_.Moved({{"a", 2}});
  AdvanceUntil([&] { return writer_.backlog() == 0; });
  EXPECT_EQ(ShownVersionOf("a"), 7);
}

// What it is told of comes right after what it reads.
TEST_F(FluxJobWriterTest, WhatTheRowSaysIsWrittenOnce) {
  Row("a", JobState::kSucceeded, 5);
  Start();
  writer_.Changed({{.fact = FactOf("a", JobState::kPending, 1), .position = 1}});
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-a"));
  EXPECT_EQ(ShownVersionOf("a"), 5);
  writer_.Changed({{.fact = FactOf("a", JobState::kSucceeded, 5), .position = 0}});
  WaitFor([&] { return writer_.backlog() == 0; });
  clock_.Advance(Millis(10'000));
  Committed("b", JobState::kPending, 1);
  EXPECT_THAT(api_.WaitFor(2), ElementsAre("create job-a", "create job-b"));
}

TEST_F(FluxJobWriterTest, AJobWhoseRowIsGoneIsForgotten) {
  Start();
  writer_.Changed({{.fact = FactOf("a", JobState::kSucceeded, 5), .position = 0}});
  WaitFor([&] { return writer_.backlog() == 0; });
  EXPECT_THAT(shown_, IsEmpty());
}

TEST_F(FluxJobWriterTest, WhatIsAnothersIsLeftToIt) {
  Row("theirs", JobState::kRunning, 3);
  Row("ours", JobState::kRunning, 3, "other");
  writer_.PoolsGained({"main", "other"});
  writer_.PoolsLost({"main"});
  Start();
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-ours"));
  EXPECT_EQ(writer_.backlog(), 1);
  writer_.PoolsLost({"other"});
  EXPECT_EQ(writer_.backlog(), 0);
}

TEST_F(FluxJobWriterTest, AnObjectThatAnotherHasWrittenSinceGoesOn) {
  Start();
  Committed("a", JobState::kPending, 1, /*position=*/1);
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-a"));
  Shown("a", JobState::kPending, 1);
  Committed("a", JobState::kRunning, 4);
  AdvanceUntil([&] { return ShownVersionOf("a") == 4; });
  // By what the API server has answered it knows the object again.
  Committed("a", JobState::kSucceeded, 5);
  AdvanceUntil([&] { return writer_.backlog() == 0; });
  EXPECT_THAT(api_.WaitFor(4),
              ElementsAre("create job-a", "conflict job-a", "patch job-a", "patch job-a"));
}

TEST_F(FluxJobWriterTest, AComparisonThatFailsIsTriedAgainWhenItsTimeHasCome) {
  Row("new", JobState::kRunning, 1);
  down_ = true;
  writer_.PoolsGained({"main"});
  Start();
  WaitFor([&] { return !writer_.Ready().ok(); });
  EXPECT_EQ(lists_, 1);
  // Pools that are gained meanwhile are no reason to hurry.
  for (int i = 1; i <= 3; ++i) {
    writer_.PoolsGained({"main"});
    // Its Event is written in the round that looks whether to compare.
    writer_.Changed({{.fact = FactOf("refused", JobState::kRejected, i), .position = 0}});
    WaitFor([&] { return events_ == i; });
  }
  EXPECT_EQ(lists_, 1);
  down_ = false;
  clock_.Advance(Millis(1000));
  WaitFor([&] { return writer_.Ready().ok(); });
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("create job-new"));
}

}  // namespace
}  // namespace fluxqueue::queue
