// What the tests of the loops share: a real Kafka and a real Postgres, waiting, faults, processes
// of their own that may end, and a look at the tables and the dead letters.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/faults.h"
#include "libs/delivery/options.h"
#include "libs/kafka/reader.h"
#include "libs/postgres/connection.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"

namespace fluxqueue::delivery {

inline constexpr Millis kDeadline{40'000};

inline testing::MiniKafka* mini_kafka = nullptr;
inline testing::MiniPostgres* mini_postgres = nullptr;

inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(Millis{10});
  }
  return true;
}

// Each test has topics of its own, and each of its services a schema.
inline LoopOptions MakeOptions(const std::string& test,
                               const std::string& service,
                               const std::string& instance,
                               const std::string& bootstrap,
                               const std::string& dsn) {
  LoopOptions options;
  options.service = test + "-" + service;
  options.instance = instance;
  options.brokers = bootstrap;
  options.topics = {test + ".pool", test + ".jobs", test + ".dead"};
  options.postgres = {.dsn = dsn, .application = instance, .schema = test + "_" + service};
  options.session_timeout = Millis{1500};
  return options;
}

// Stops the loop's thread in the middle of a batch, as SIGSTOP would, until Release.
class Freezer final : public FaultInjector {
 public:
  struct Offset {
    int64_t value;
  };
  // At this commit; at that of the batch which has the message.
  explicit Freezer(int commits) : left_(commits) {}
  explicit Freezer(Offset offset) : offset_(offset.value) {}
  void Reading(const kafka::Message& message) override {
    const std::scoped_lock lock(mutex_);
    if (message.offset == offset_) left_ = 1;
  }
  CommitFault NextCommit() override {
    std::unique_lock lock(mutex_);
    if (--left_ == 0) {
      frozen_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return released_; });
    }
    return CommitFault::kNone;
  }
  bool WaitFrozen() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return frozen_; });
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_ = 0;
  int64_t offset_ = -1;
  bool frozen_ = false;
  bool released_ = false;
};

// This program as a process of its own, which RunTests hands over to `child`: bootstrap, DSN, and
// these arguments.
inline pid_t Spawn(const std::vector<std::string>& arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> args = {self, "--child", mini_kafka->bootstrap(), mini_postgres->dsn()};
  args.insert(args.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  CHECK(posix_spawn(&pid, self.c_str(), nullptr, nullptr, argv.data(), environ) == 0);
  return pid;
}

inline int RunTests(int argc, char** argv, int (*child)(char** args)) {
  if (argc > 2 && std::string_view(argv[1]) == "--child") {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    return child(argv + 2);
  }
  ::testing::InitGoogleMock(&argc, argv);
  testing::MiniKafka kafka;
  testing::MiniPostgres postgres;
  mini_kafka = &kafka;
  mini_postgres = &postgres;
  return RUN_ALL_TESTS();
}

class LoopTest : public ::testing::Test {
 protected:
  // Its statements see the tables of `service`.
  explicit LoopTest(const std::string& service)
      : name_(TestName()),
        db_({.dsn = mini_postgres->dsn(), .application = "test", .schema = Schema(service)}) {}

  std::string Schema(const std::string& service) const { return name_ + "_" + service; }
  LoopOptions Options(const std::string& service, const std::string& instance) const {
    return MakeOptions(name_, service, instance, mini_kafka->bootstrap(), mini_postgres->dsn());
  }

  std::vector<std::vector<std::string>> Sql(const std::string& sql) {
    std::vector<std::vector<std::string>> rows;
    const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
      for (const pqxx::row& row : tx.exec(sql)) {
        std::vector<std::string> fields;
        for (const pqxx::field& field : row) fields.emplace_back(field.c_str());
        rows.push_back(std::move(fields));
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return {{Message(status)}};
    return rows;
  }
  // The first field; empty: there is none.
  std::string Value(const std::string& sql) {
    const auto rows = Sql(sql);
    return rows.empty() ? "" : rows[0].at(0);
  }

  // Of each dead letter the headers, and its key as "key".
  std::vector<std::map<std::string, std::string>> Letters() const {
    std::vector<std::map<std::string, std::string>> letters;
    const auto read = kafka::ReadPartition(
        mini_kafka->bootstrap(), name_ + ".dead", 0, 0, [&](const kafka::Message& message) {
          letters.emplace_back(message.headers.begin(), message.headers.end());
          letters.back()["key"] = message.key;
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok() || absl::IsNotFound(read.status())) << read.status();
    return letters;
  }
  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (const auto& letter : Letters()) reasons.push_back(letter.at("fluxqueue_reason"));
    return reasons;
  }

  const std::string name_;
  postgres::Connection db_;

 private:
  static std::string TestName() {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    return name;
  }
};

}  // namespace fluxqueue::delivery
