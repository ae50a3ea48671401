#include "tests/simulation/watched.h"

#include <fmt/format.h>

namespace fluxqueue::simulation {

absl::Status Watched::Load(pqxx::transaction_base& tx, int partition) {
  return inner_->Load(tx, partition);
}

absl::Status Watched::Handle(const delivery::Record& record, delivery::Outbox& outbox) {
  batch_.push_back(fmt::format("{} {} {} {}",
                               service_,
                               record.partition,
                               record.envelope.stream(),
                               record.envelope.sequence()));
  return inner_->Handle(record, outbox);
}

void Watched::Buried(const delivery::Record& record, delivery::Outbox& outbox) {
  ++world_.counts()["dead letters of " + service_];
  inner_->Buried(record, outbox);
}

absl::Status Watched::Write(pqxx::transaction_base& tx) {
  wrote_ = true;
  return inner_->Write(tx);
}

void Watched::Begin() {
  batch_.clear();
  wrote_ = false;
}

// What had rows is handled once; what had none may come again (partition_worker.h).
void Watched::Commit() {
  if (wrote_) {
    for (const std::string& message : batch_) world_.Handled(message);
  }
  if (world_.tells() && !batch_.empty()) {
    world_.Say(
        fmt::format("{} has handled {} messages, to {}", service_, batch_.size(), batch_.back()));
  }
  Begin();
  inner_->Commit();
}

void Watched::Rollback() {
  if (world_.tells() && !batch_.empty()) {
    world_.Say(fmt::format("{} takes {} messages back", service_, batch_.size()));
  }
  Begin();
  if (world_.lacks(Without::kUndo)) {
    inner_->Commit();
  } else {
    inner_->Rollback();
  }
}

}  // namespace fluxqueue::simulation
