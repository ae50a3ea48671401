// A service that says each of its ids once, and one that counts them: each is to have its effect
// exactly once, on whatever partition, and the numbers of a partition have no gap.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "libs/delivery/handler.h"
#include "tests/simulation/world.h"

namespace fluxqueue::simulation {

class DeliveryWorld final : public World {
 public:
  static constexpr int64_t kIds = 60;

  explicit DeliveryWorld(const Trial& trial);

  bool Done();
  std::string WhatIsLeft();
  // Fails where numbers are missing.
  void CheckNumbers();

  Table<int64_t, bool>& todo() { return todo_; }
  Table<std::pair<int, int64_t>, int64_t>& seen() { return seen_; }
  Table<int64_t, bool>& seen_ids() { return seen_ids_; }

 private:
  Table<int64_t, bool> todo_;                     // is it said?
  Table<std::pair<int, int64_t>, int64_t> seen_;  // partition and number: the id
  Table<int64_t, bool> seen_ids_;
};

// Three ids at once, every second and a half.
class Feeder final : public delivery::ShardHandler {
 public:
  Feeder(DeliveryWorld& world, const Clock& clock) : world_(world), clock_(clock) {}
  absl::Status Load(pqxx::transaction_base& tx) override;
  void Drop() override { todo_.clear(); }
  bool HasWork() const override { return false; }
  bool HasRows() const override { return said_ > 0; }
  std::optional<TimePoint> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override { said_ = 0; }

 private:
  DeliveryWorld& world_;
  const Clock& clock_;
  std::vector<int64_t> todo_;
  TimePoint next_{};
  size_t said_ = 0;
};

// Keeps in memory how far it has counted, with a journal to undo, and says each number.
class Counter final : public delivery::PartitionHandler {
 public:
  explicit Counter(DeliveryWorld& world) : world_(world) {}
  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override { counts_.erase(partition); }
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override { return false; }
  std::optional<TimePoint> WakeAt() const override { return {}; }
  absl::Status Poll(delivery::Outbox&) override { return absl::OkStatus(); }
  bool HasRows() const override { return !rows_.empty(); }
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  struct Row {
    int partition;
    int64_t number;
    int64_t id;
  };
  DeliveryWorld& world_;
  std::map<int, int64_t> counts_;
  std::map<int, int64_t> undo_;
  std::vector<Row> rows_;
};

}  // namespace fluxqueue::simulation
