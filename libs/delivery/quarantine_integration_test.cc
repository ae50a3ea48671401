// A shard loop whose handler cannot handle an object, with a real Kafka and a real Postgres: all
// others go on, and what is left out is written down, said, and tried again when it is asked for.
//
// The Collector stands for a service: its objects are the rows of `objects`, and it writes those
// that it has handled into `handled`.
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/quarantine.h"
#include "libs/delivery/shard_loop.h"
#include "libs/delivery/testing_loops.h"
#include "libs/postgres/array.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::delivery {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

const postgres::MigrationSet& TestMigrations() {
  static const postgres::MigrationSet kSet{
      "test",
      {{"0001_test",
        "CREATE TABLE objects (name text PRIMARY KEY, version text NOT NULL, does text NOT NULL);"
        "CREATE TABLE handled (name text, version text, at smallint, times int DEFAULT 1, "
        "  PRIMARY KEY (name, version));"}}};
  return kSet;
}

constexpr postgres::Statement kObjects = {"test_objects",
                                          "SELECT name, version, does FROM objects ORDER BY name"};
// The number goes through text, so that one that is too large fails in the database.
constexpr postgres::Statement kHandled = {
    "test_handled",
    "INSERT INTO handled AS h (name, version, at) "
    "SELECT n, v, a::smallint FROM unnest($1::text[], $2::text[], $3::text[]) AS o (n, v, a) "
    "ON CONFLICT (name, version) DO UPDATE SET times = h.times + 1"};

struct Object {
  std::string name;
  std::string version;
  std::string does;  // a number; or "throw", "abort"
};

class Collector final : public ShardHandler {
 public:
  explicit Collector(Quarantine& quarantine) : quarantine_(quarantine) {}

  absl::Status Load(pqxx::transaction_base& tx) override {
    Drop();
    for (const pqxx::row& row : postgres::Exec(tx, kObjects)) {
      todo_.push_back(
          {row[0].as<std::string>(), row[1].as<std::string>(), row[2].as<std::string>()});
    }
    return absl::OkStatus();
  }
  void Drop() override {
    todo_.clear();
    Rollback();
  }
  bool HasWork() const override { return !todo_.empty(); }
  bool HasRows() const override { return !batch_.empty(); }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override { return {}; }
  absl::Status Poll(Outbox& /*outbox*/) override {
    while (looked_at_ < todo_.size()) {
      const Object& object = todo_[looked_at_++];
      ASSIGN_OR_RETURN(const bool admitted,
                       quarantine_.Admit({.kind = "Pod",
                                          .space = "team",
                                          .name = object.name,
                                          .uid = "uid-" + object.name,
                                          .version = object.version}));
      if (!admitted) continue;
      if (object.does == "throw") throw std::runtime_error("stoi");
      if (object.does == "abort") std::abort();
      batch_.push_back(object);
      if (quarantine_.careful()) break;
    }
    return absl::OkStatus();
  }
  absl::Status Write(pqxx::transaction_base& tx) override {
    postgres::TextArray names, versions, numbers;
    for (const Object& object : batch_) {
      names.Add(object.name);
      versions.Add(object.version);
      numbers.Add(object.does);
    }
    postgres::Exec(tx, kHandled, names.text(), versions.text(), numbers.text());
    return absl::OkStatus();
  }
  void Commit() override {
    todo_.erase(todo_.begin(), todo_.begin() + static_cast<std::ptrdiff_t>(looked_at_));
    Rollback();
  }
  void Rollback() override {
    looked_at_ = 0;
    batch_.clear();
  }

 private:
  Quarantine& quarantine_;
  std::vector<Object> todo_;
  size_t looked_at_ = 0;
  std::vector<Object> batch_;
};

// A service.
class Running {
 public:
  explicit Running(const LoopOptions& options)
      : quarantine_(clock_, {"Pod"}),
        collector_(quarantine_),
        loop_({.loop = options, .shard = "watch", .quarantine = &quarantine_}, collector_, clock_),
        thread_([this](std::stop_token stop) { status_ = loop_.Run(stop); }) {}
  ~Running() {
    thread_.request_stop();
    thread_.join();
    EXPECT_TRUE(status_.ok()) << status_;
  }
  uint64_t put_in() const { return quarantine_.Totals().at("Pod"); }

 private:
  RealClock clock_;
  Quarantine quarantine_;
  Collector collector_;
  ShardLoop loop_;
  absl::Status status_;
  std::jthread thread_;
};

class QuarantineLoopTest : public LoopTest {
 protected:
  QuarantineLoopTest() : LoopTest("service") {
    const absl::Status status =
        Prepare(Options(), {&TestMigrations()}, [](const absl::Status&) {}, {});
    CHECK(status.ok(), "{}", Message(status));
  }

  LoopOptions Options() const { return LoopTest::Options("service", "s"); }
  // 100 objects, of which o50 does something.
  void MakeObjects(const std::string& does) {
    Value(
        "INSERT INTO objects SELECT 'o' || lpad(i::text, 2, '0'), '1', i::text "
        "FROM generate_series(0, 99) i");
    Value(fmt::format("UPDATE objects SET does = '{}' WHERE name = 'o50'", does));
  }
  std::string Names() {
    return Value(
        "SELECT string_agg(name || '@' || version, ' ' ORDER BY name) FROM quarantine "
        "WHERE held");
  }
  std::string Handled(const std::string& name) {
    return Value(fmt::format("SELECT max(version) FROM handled WHERE name = '{}'", name));
  }
  bool AllButOneAreHandled() {
    return Eventually([&] {
      return Value("SELECT count(DISTINCT name) FROM handled WHERE name <> 'o50'") == "99";
    });
  }
  void ExpectOneLetter(const std::string& reason) {
    ASSERT_TRUE(Eventually([&] { return !Letters().empty(); }));
    const auto letters = Letters();
    ASSERT_EQ(letters.size(), 1);
    EXPECT_THAT(letters[0],
                AllOf(Contains(Pair("key", "Pod team/o50")),
                      Contains(Pair("fluxqueue_service", name_ + "-service")),
                      Contains(Pair("fluxqueue_topic", name_ + "-service/watch")),
                      Contains(Pair("fluxqueue_object_uid", "uid-o50")),
                      Contains(Pair("fluxqueue_reason", HasSubstr(reason)))));
  }
};

TEST_F(QuarantineLoopTest, OneThatThrowsIsLeftOut) {
  MakeObjects("throw");
  {
    Running service(Options());
    EXPECT_TRUE(AllButOneAreHandled());
    EXPECT_TRUE(Eventually([&] { return Names() == "o50@1"; })) << Names();
    EXPECT_EQ(service.put_in(), 1);
    ExpectOneLetter("it threw: stoi");
    // What it has published and not yet taken out, its successor publishes again.
    EXPECT_TRUE(Eventually([&] { return Value("SELECT count(*) FROM outbox") == "0"; }));
  }
  // Another that takes the lease leaves it out, too, and does not say so again. The new version is
  // handled, and the row goes.
  Value("UPDATE objects SET version = '2', does = '7' WHERE name IN ('o50', 'o51')");
  Running service(Options());
  EXPECT_TRUE(Eventually([&] { return Handled("o50") == "2" && Names().empty(); })) << Names();
  EXPECT_EQ(service.put_in(), 0);
  EXPECT_EQ(Letters().size(), 1);
}

TEST_F(QuarantineLoopTest, OneThatCannotBeWrittenIsFoundAmongTheOthers) {
  MakeObjects("99999");  // more than a smallint
  Running service(Options());
  EXPECT_TRUE(AllButOneAreHandled());
  EXPECT_TRUE(Eventually([&] { return Names() == "o50@1"; })) << Names();
  ExpectOneLetter("out of range");
  EXPECT_EQ(Value("SELECT max(times) FROM handled"), "1") << "it needs no second list";
}

TEST_F(QuarantineLoopTest, AnOperatorHasItTriedAgain) {
  MakeObjects("throw");
  Running service(Options());
  EXPECT_TRUE(Eventually([&] { return Names() == "o50@1"; })) << Names();
  Value("UPDATE objects SET does = '7' WHERE name = 'o50'");  // as by a new version of the service
  Value("UPDATE quarantine SET retry = true WHERE name = 'o50'");
  EXPECT_TRUE(Eventually([&] { return Handled("o50") == "1"; }));
  EXPECT_EQ(Names(), "");
}

// ---- what ends the process

int ServiceMain(char** args) {
  Running service(MakeOptions(args[2], "service", "s", args[0], args[1]));
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

TEST_F(QuarantineLoopTest, OneThatEndsTheProcessIsLeftOutByTheFifth) {
  MakeObjects("abort");
  for (int i = 0; i < 4; ++i) {
    int ended = 0;
    ASSERT_GT(waitpid(Spawn({name_}), &ended, 0), 0);
    EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT) << ended;
    EXPECT_EQ(Value("SELECT ends FROM leases"), fmt::format("{}", i));
    EXPECT_EQ(Value("SELECT coalesce(string_agg(name, ' '), '') FROM under_way"),
              i < 2 ? "" : "o50");
  }
  Running fifth(Options());
  EXPECT_TRUE(AllButOneAreHandled());
  EXPECT_EQ(Names(), "o50@1");
  ExpectOneLetter("the process ended while it was handled");
}

// A process that is killed for another reason blames no object.
TEST_F(QuarantineLoopTest, AKillBlamesNobody) {
  MakeObjects("7");
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = Spawn({name_});
    EXPECT_TRUE(AllButOneAreHandled());
    EXPECT_TRUE(Eventually([&] {
      return Value("SELECT min(times) FROM handled") == fmt::format("{}", i + 1) &&
             Value("SELECT count(*) FROM under_way") == "0";
    })) << Value("SELECT min(times) FROM handled");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  Running fifth(Options());
  EXPECT_TRUE(Eventually([&] { return Value("SELECT min(times) FROM handled") == "5"; }));
  EXPECT_EQ(Value("SELECT count(*) FROM quarantine"), "0");
}

}  // namespace
}  // namespace fluxqueue::delivery

int main(int argc, char** argv) {
  return fluxqueue::delivery::RunTests(argc, argv, fluxqueue::delivery::ServiceMain);
}
