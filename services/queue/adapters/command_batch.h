// The commands and questions of the batch under way: taken from the desk, judged by the pool's
// core, written to its log, answered by Commit.
//
// A client's id is accepted once. What is in memory is asked here (the core remembers a claim until
// the matcher has confirmed its release); what is only in the tables, inside the transaction: if
// one is found there, the batch fails with Aborted, and is made again without it. Those who put
// errands on the desk look into the tables first, so that is rare.
//
// Confined to the loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/delivery/outbox.h"
#include "libs/queue_core/queue_core.h"
#include "services/queue/adapters/command_desk.h"
#include "services/queue/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

struct HeldPool {
  int partition = 0;
  const queue_core::QueueCore* core = nullptr;
};

class CommandBatch {
 public:
  using FindPool = std::function<std::optional<HeldPool>(const std::string& pool)>;

  // `find`: the pools held. References must outlive the batch.
  CommandBatch(CommandDesk& desk, FindPool find, QueueMetrics& metrics)
      : desk_(desk), find_(std::move(find)), metrics_(metrics) {}

  bool HasWork() const { return !desk_.empty(); }
  // The delivery handler's.
  void Poll(std::chrono::steady_clock::time_point now, delivery::Outbox& outbox);
  bool HasRows() const { return commands_ > 0; }
  absl::Status Write(pqxx::transaction_base& tx);
  void Commit();
  void Rollback();

 private:
  struct Taken {
    Errand errand;
    ErrandResult result;
  };

  ErrandResult Judge(const Errand& errand, std::chrono::steady_clock::time_point now) const;
  static ErrandResult JudgeClaim(const Errand& errand, const queue_core::QueueCore& core);
  static ErrandResult JudgeAbandon(uint64_t named, const queue_core::QueueCore& core);
  void Say(const Errand& errand, delivery::Outbox& outbox);
  void AddJob(const Errand& errand, ErrandResult* result) const;
  // Marks what the tables know, which is in `known`.
  bool Mark(const std::vector<std::string>& known, bool claims);

  CommandDesk& desk_;
  const FindPool find_;
  QueueMetrics& metrics_;
  std::vector<Taken> taken_;
  size_t commands_ = 0;  // of taken_, written to the log by this batch
};

}  // namespace fluxqueue::queue
