// What stands for the services that are not simulated, and for the cluster: as little as the queue
// and the matcher need of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/delivery/handler.h"
#include "tests/simulation/pool_world.h"

namespace fluxqueue::simulation {

events::v1::PoolConfigured ConfigOfPool();

// What they have said and handled, in the database: each thing is said once.
struct StandInTables {
  explicit StandInTables(Undo& undo) : said(undo), versions(undo), starts(undo) {}
  Table<std::string, bool> said;          // by what is said
  Table<std::string, uint64_t> versions;  // of jobs, handled by the binder
  Table<std::string, uint32_t> starts;    // by job: the attempt that it has started, 0: stopped
};

// Admission and cleanup: tells the queue and the matcher of jobs and nodes, as they are.
class Teller final : public delivery::ShardHandler {
 public:
  Teller(PoolWorld& world, const Clock& clock) : world_(world), clock_(clock) {}
  absl::Status Load(pqxx::transaction_base&) override { return absl::OkStatus(); }
  void Drop() override {}
  bool HasWork() const override { return false; }
  bool HasRows() const override { return !keys_.empty(); }
  std::optional<TimePoint> WakeAt() const override { return next_; }
  absl::Status Poll(delivery::Outbox& outbox) override;
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override { keys_.clear(); }
  void Rollback() override { keys_.clear(); }

 private:
  using Make = std::function<events::v1::Envelope()>;

  void SayOnce(const std::string& key, const Make& make, delivery::Outbox& outbox);
  void SayPool(delivery::Outbox& outbox);
  void SayNode(int number, delivery::Outbox& outbox);
  void SayJob(const std::string& id, const PoolWorld::Job& job, delivery::Outbox& outbox);

  PoolWorld& world_;
  const Clock& clock_;
  TimePoint next_{};
  std::vector<std::string> keys_;
};

// The binder: starts and stops at once.
class Starter final : public delivery::PartitionHandler {
 public:
  explicit Starter(PoolWorld& world) : world_(world) {}
  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int) override {}
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override { return false; }
  std::optional<TimePoint> WakeAt() const override { return {}; }
  absl::Status Poll(delivery::Outbox&) override { return absl::OkStatus(); }
  bool HasRows() const override { return !versions_.empty(); }
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  bool IsNews(const events::v1::JobFact& fact);

  PoolWorld& world_;
  std::map<std::string, uint64_t> versions_;
  std::vector<std::pair<std::string, uint32_t>> starts_;
};

}  // namespace fluxqueue::simulation
