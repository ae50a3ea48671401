// Around a handler: each message has its effect once (World::Handled); and what is rolled back can
// be left as it is, which is a safety taken out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/delivery/handler.h"
#include "tests/simulation/world.h"

namespace fluxqueue::simulation {

class Watched final : public delivery::PartitionHandler {
 public:
  Watched(World& world, std::string service, std::shared_ptr<delivery::PartitionHandler> inner)
      : world_(world), service_(std::move(service)), inner_(std::move(inner)) {}

  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override { inner_->Drop(partition); }
  absl::Status Idle() override { return inner_->Idle(); }
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  void Buried(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override { return inner_->HasWork(); }
  std::optional<TimePoint> WakeAt() const override { return inner_->WakeAt(); }
  absl::Status Poll(delivery::Outbox& outbox) override { return inner_->Poll(outbox); }
  bool HasRows() const override { return inner_->HasRows(); }
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  void Begin();

  World& world_;
  const std::string service_;
  const std::shared_ptr<delivery::PartitionHandler> inner_;
  std::vector<std::string> batch_;
  bool wrote_ = false;
};

}  // namespace fluxqueue::simulation
