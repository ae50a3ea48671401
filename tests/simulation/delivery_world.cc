#include "tests/simulation/delivery_world.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/delivery/outbox.h"

namespace fluxqueue::simulation {

using events::v1::Envelope;

DeliveryWorld::DeliveryWorld(const Trial& trial)
    : World(trial),
      todo_(database().undo()),
      seen_(database().undo()),
      seen_ids_(database().undo()) {
  for (int64_t id = 0; id < kIds; ++id) todo_.Put(id, false);
  database().undo().clear();  // it was always so
}

bool DeliveryWorld::Done() {
  return seen_ids_.rows().size() == kIds && database().DeliveryOf("feeder").outbox.rows().empty() &&
         database().DeliveryOf("counter").outbox.rows().empty();
}

std::string DeliveryWorld::WhatIsLeft() {
  const auto left =
      std::ranges::count_if(todo_.rows(), [](const auto& one) { return !one.second; });
  return fmt::format("{} of {} ids are counted, {} are not said; outboxes have {} and {} rows",
                     seen_ids_.rows().size(),
                     kIds,
                     left,
                     database().DeliveryOf("feeder").outbox.rows().size(),
                     database().DeliveryOf("counter").outbox.rows().size());
}

void DeliveryWorld::CheckNumbers() {
  std::map<int, int64_t> last;
  for (const auto& [key, id] : seen_.rows()) {
    if (key.second == ++last[key.first]) continue;
    Fail(fmt::format("partition {} has a gap before {}", key.first, key.second));
  }
}

absl::Status Feeder::Load(pqxx::transaction_base& /*tx*/) {
  todo_.clear();
  for (const auto& [id, said] : world_.todo().rows()) {
    if (!said) todo_.push_back(id);
  }
  return absl::OkStatus();
}

std::optional<TimePoint> Feeder::WakeAt() const {
  return todo_.empty() ? std::nullopt : std::optional(next_);
}

absl::Status Feeder::Poll(delivery::Outbox& outbox) {
  said_ = clock_.Monotonic() < next_ ? 0 : std::min<size_t>(3, todo_.size());
  for (size_t i = 0; i < said_; ++i) {
    Envelope envelope;
    envelope.set_pool("p");
    envelope.mutable_job_withdrawn()->set_job_id(fmt::format("{}", todo_[i]));
    outbox.AppendToPool(
        delivery::kShard, static_cast<int>(todo_[i] % kPartitions), std::move(envelope));
  }
  return absl::OkStatus();
}

absl::Status Feeder::Write(pqxx::transaction_base& /*tx*/) {
  for (size_t i = 0; i < said_; ++i) world_.todo().Put(todo_[i], true);
  return absl::OkStatus();
}

void Feeder::Commit() {
  todo_.erase(todo_.begin(), todo_.begin() + static_cast<std::ptrdiff_t>(said_));
  if (said_ > 0) next_ = clock_.Monotonic() + Millis(1500);
  said_ = 0;
}

absl::Status Counter::Load(pqxx::transaction_base& /*tx*/, int partition) {
  counts_[partition] = 0;
  for (const auto& [key, id] : world_.seen().rows()) {
    if (key.first == partition) counts_[partition] = std::max(counts_[partition], key.second);
  }
  return absl::OkStatus();
}

absl::Status Counter::Handle(const delivery::Record& record, delivery::Outbox& outbox) {
  CHECK(counts_.contains(record.partition));
  undo_.try_emplace(record.partition, counts_[record.partition]);
  const int64_t number = ++counts_[record.partition];
  rows_.push_back({record.partition, number, std::stoll(record.envelope.job_withdrawn().job_id())});
  Envelope envelope;
  envelope.set_pool("p");
  envelope.mutable_job_fact()->set_job_id(fmt::format("job-{}", record.partition));
  envelope.mutable_job_fact()->set_version(static_cast<uint64_t>(number));
  outbox.AppendToJobs(record.partition, std::move(envelope));
  return absl::OkStatus();
}

absl::Status Counter::Write(pqxx::transaction_base& /*tx*/) {
  for (const Row& row : rows_) {
    if (world_.seen().Has({row.partition, row.number})) world_.Fail("a number is given twice");
    if (world_.seen_ids().Has(row.id)) world_.Fail(fmt::format("id {} is counted twice", row.id));
    world_.seen().Put({row.partition, row.number}, row.id);
    world_.seen_ids().Put(row.id, true);
  }
  return absl::OkStatus();
}

void Counter::Commit() {
  rows_.clear();
  undo_.clear();
}

void Counter::Rollback() {
  for (const auto& [partition, count] : undo_) counts_[partition] = count;
  Commit();
}

}  // namespace fluxqueue::simulation
