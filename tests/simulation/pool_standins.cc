#include "tests/simulation/pool_standins.h"

#include <algorithm>

#include <fmt/format.h>

#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::simulation {
namespace {

using delivery::Outbox;
using events::v1::Envelope;

constexpr Millis kTellInterval{700};

Envelope Pool() {
  Envelope message;
  *message.mutable_pool_configured() = ConfigOfPool();
  return message;
}

Envelope Queue() {
  Envelope message;
  auto* queue = message.mutable_queue_configured();
  queue->set_queue("default");
  queue->set_strategy("easy");
  queue->set_queue_depth(50);
  queue->set_weight(1);
  return message;
}

Envelope Submitted(const std::string& id, const PoolWorld::Job& job) {
  Envelope message = matcher_core::Submitted(id, job.slots, job.cpu);
  auto* submitted = message.mutable_job_submitted();
  submitted->set_queue("default");
  submitted->set_user("ann");
  auto* workload = submitted->mutable_workload();
  workload->set_kind("Job");
  workload->set_namespace_("lab");
  workload->set_name(id);
  workload->set_uid(id);
  workload->set_recreatable(true);
  workload->set_completions(job.slots);
  return message;
}

Envelope Started(const std::string& id, uint32_t attempt) {
  Envelope message;
  message.mutable_job_started()->set_job_id(id);
  message.mutable_job_started()->set_attempt(attempt);
  return message;
}

Envelope Ended(const std::string& id) {
  Envelope message;
  message.mutable_job_ended()->set_job_id(id);
  message.mutable_job_ended()->set_result(events::v1::JobEnded::RESULT_SUCCEEDED);
  return message;
}

}  // namespace

events::v1::PoolConfigured ConfigOfPool() {
  events::v1::PoolConfigured pool;
  pool.set_engine("native");
  pool.set_policy("first");
  pool.set_answer_deadline_ms(5000);
  pool.set_retry_min_ms(1000);
  pool.set_retry_max_ms(8000);
  pool.set_max_attempts(50);
  return pool;
}

void Teller::SayOnce(const std::string& key, const Make& make, Outbox& outbox) {
  if (world_.database().Of<StandInTables>().said.Has(key)) return;
  Envelope message = make();
  message.set_pool("main");
  keys_.push_back(key);
  outbox.AppendToPool(delivery::kShard, PoolWorld::kPoolPartition, std::move(message));
}

void Teller::SayPool(Outbox& outbox) {
  SayOnce("pool", Pool, outbox);
  SayOnce("queue", Queue, outbox);
}

void Teller::SayNode(int number, Outbox& outbox) {
  const PoolWorld::Node& node = world_.node(number);
  const std::string name = fmt::format("n{}", number);
  const auto uid_of = [&](int generation) { return fmt::format("uid-{}-{}", number, generation); };
  const auto say_gone = [&](const std::string& uid) {
    SayOnce(
        "gone " + uid, [&] { return matcher_core::Gone(name, uid); }, outbox);
  };
  for (int old = 0; old < node.generation; ++old) say_gone(uid_of(old));
  const std::string uid = uid_of(node.generation);
  if (node.away) return say_gone(uid);
  SayOnce(
      "node " + uid,
      [&] {
        return matcher_core::Upserted(
            matcher_core::MakeNode(name, PoolWorld::kCpu, node.generation + 1, uid));
      },
      outbox);
}

void Teller::SayJob(const std::string& id, const PoolWorld::Job& job, Outbox& outbox) {
  if (!job.submitted) return;
  SayOnce(
      "submit " + id, [&] { return Submitted(id, job); }, outbox);
  if (job.ended) {
    SayOnce(
        "end " + id, [&] { return Ended(id); }, outbox);
  } else if (job.attempt > 0) {
    SayOnce(
        fmt::format("start {} {}", id, job.attempt),
        [&] { return Started(id, job.attempt); },
        outbox);
  }
}

absl::Status Teller::Poll(Outbox& outbox) {
  keys_.clear();
  next_ = clock_.Monotonic() + kTellInterval;
  SayPool(outbox);
  for (int node = 0; node < PoolWorld::kNodes; ++node) SayNode(node, outbox);
  SayOnce(
      "synced", [] { return matcher_core::Synced(); }, outbox);
  for (const auto& [id, job] : world_.jobs()) SayJob(id, job, outbox);
  return absl::OkStatus();
}

absl::Status Teller::Write(pqxx::transaction_base& /*tx*/) {
  for (const std::string& key : keys_) world_.database().Of<StandInTables>().said.Put(key, true);
  return absl::OkStatus();
}

// One that was killed between its commit and the start has said the start all the same.
absl::Status Starter::Load(pqxx::transaction_base& /*tx*/, int /*partition*/) {
  for (const auto& [id, attempt] : world_.database().Of<StandInTables>().starts.rows()) {
    world_.StartJob(id, attempt);
  }
  return absl::OkStatus();
}

bool Starter::IsNews(const events::v1::JobFact& fact) {
  const uint64_t* row = world_.database().Of<StandInTables>().versions.Find(fact.job_id());
  const uint64_t known = std::max(row == nullptr ? 0 : *row, versions_[fact.job_id()]);
  if (fact.version() <= known) return false;
  versions_[fact.job_id()] = fact.version();
  return true;
}

absl::Status Starter::Handle(const delivery::Record& record, Outbox& outbox) {
  const events::v1::JobFact& fact = record.envelope.job_fact();
  if (!IsNews(fact)) return absl::OkStatus();
  Envelope said;
  said.set_pool(fact.pool());
  if (fact.state() == events::v1::JOB_STATE_ALLOCATED) {
    starts_.emplace_back(fact.job_id(), fact.attempt());
    said.mutable_job_bound()->set_job_id(fact.job_id());
    said.mutable_job_bound()->set_attempt(fact.attempt());
  } else if (fact.state() == events::v1::JOB_STATE_STOPPING) {
    starts_.emplace_back(fact.job_id(), 0);
    said.mutable_job_stopped()->set_job_id(fact.job_id());
    said.mutable_job_stopped()->set_attempt(fact.attempt());
  } else {
    return absl::OkStatus();
  }
  outbox.AppendToPool(record.partition, PoolWorld::kPoolPartition, std::move(said));
  return absl::OkStatus();
}

absl::Status Starter::Write(pqxx::transaction_base& /*tx*/) {
  for (const auto& [id, version] : versions_) {
    world_.database().Of<StandInTables>().versions.Put(id, version);
  }
  for (const auto& [id, attempt] : starts_) {
    world_.database().Of<StandInTables>().starts.Put(id, attempt);
  }
  return absl::OkStatus();
}

void Starter::Commit() {
  versions_.clear();
  for (const auto& [id, attempt] : std::exchange(starts_, {})) world_.StartJob(id, attempt);
}

void Starter::Rollback() {
  versions_.clear();
  starts_.clear();
}

}  // namespace fluxqueue::simulation
