// services/queue/adapters/queue_store.h and attempt_store.h over the database in memory.
#include "tests/simulation/queue_tables.h"

#include <algorithm>

#include "libs/scheduling/dependencies.h"
#include "services/queue/adapters/attempt_store.h"
#include "services/queue/adapters/queue_store.h"

namespace fluxqueue::queue {
namespace {

using queue_core::Changes;
using simulation::QueueTables;
using simulation::SimTx;

QueueTables& Of(pqxx::transaction_base& tx) {
  return simulation::TablesOf<QueueTables>(tx);
}

[[noreturn]] void Taken(const char* key) {
  throw pqxx::unique_violation(key, "", "23505");
}

uint64_t LastEnding(const QueueTables& tables, const std::string& pool) {
  uint64_t last = 0;
  for (const auto& [id, row] : tables.jobs.rows()) {
    if (row.pool == pool) last = std::max(last, row.job.ending);
  }
  return last;
}

void WriteJob(QueueTables& tables, const std::string& pool, const queue_core::JobChange& job) {
  const QueueTables::Job* known = tables.jobs.Find(job.job_id);
  if (known != nullptr) {
    const bool open = known->live() || known->job.state == model::JobState::kRejected;
    if (known->job.version > job.version || !open) return;
  }
  tables.jobs.Put(job.job_id, {pool, job});
}

}  // namespace

std::vector<std::pair<std::string, queue_core::Rows>> LoadPools(pqxx::transaction_base& tx,
                                                                int partition) {
  const QueueTables& tables = Of(tx);
  std::vector<std::pair<std::string, queue_core::Rows>> pools;
  for (const auto& [pool, row] : tables.pools.rows()) {
    if (row.partition != partition) continue;
    queue_core::Rows& rows = pools.emplace_back(pool, queue_core::Rows{}).second;
    rows.pool = row.row;
    for (const auto& [key, queue] : tables.queues.rows()) {
      if (key.first == pool) rows.queues.push_back(queue);
    }
    const uint64_t last = LastEnding(tables, pool);
    std::map<uint64_t, std::string> endings;
    for (const auto& [id, job] : tables.jobs.rows()) {
      if (job.pool != pool) continue;
      if (job.live()) rows.jobs.push_back(job.job.row);
      if (job.job.ending > 0 && job.job.ending + scheduling::kEndingsKept > last) {
        endings[job.job.ending] = job.job.row;
      }
    }
    for (auto& [ending, text] : endings) rows.endings.push_back(std::move(text));
    for (const auto& [key, cycle] : tables.cycles.rows()) {
      if (key.first == pool && !cycle.answered) rows.cycles_unanswered.push_back(cycle.requested);
    }
    for (const auto& [key, usage] : tables.usage.rows()) {
      if (std::get<0>(key) == pool) rows.usage.push_back(usage);
    }
  }
  return pools;
}

size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const Changes& changes) {
  QueueTables& tables = Of(tx);
  tables.pools.Put(pool, {partition, changes.pool});
  for (const queue_core::QueueChange& change : changes.queues) {
    if (change.deleted) {
      tables.queues.Erase({pool, change.queue});
    } else {
      tables.queues.Put({pool, change.queue}, change.row);
    }
  }
  for (const queue_core::JobChange& job : changes.jobs) WriteJob(tables, pool, job);
  for (const queue_core::UsageChange& change : changes.usage) {
    if (change.deleted) {
      tables.usage.Erase({pool, change.kind, change.name});
    } else {
      tables.usage.Put({pool, change.kind, change.name}, change.row);
    }
  }
  for (const queue_core::JobEvent& event : changes.events) {
    if (tables.events.Has({event.job_id, event.version})) Taken("job_events_pkey");
    tables.events.Put({event.job_id, event.version}, event);
  }
  for (const queue_core::CycleRequest& cycle : changes.cycles_requested) {
    tables.cycles.Edit({pool, cycle.cycle_id}).requested = cycle.requested;
  }
  for (const uint64_t id : changes.cycles_answered) {
    if (tables.cycles.Has({pool, id})) tables.cycles.Edit({pool, id}).answered = true;
  }
  for (const queue_core::PromiseRecord& promise : changes.promises) {
    if (tables.promises.Has({promise.job_id, promise.version})) Taken("promises_pkey");
    tables.promises.Put({promise.job_id, promise.version}, promise);
  }
  return 1 + changes.queues.size() + changes.jobs.size() + changes.usage.size() +
         changes.events.size() + changes.cycles_requested.size() + changes.cycles_answered.size() +
         changes.promises.size() + WriteAttempts(tx, pool, changes.attempts);
}

size_t WriteAttempts(pqxx::transaction_base& tx,
                     const std::string& /*pool*/,
                     const std::vector<queue_core::AttemptRecord>& attempts) {
  auto& table = Of(tx).attempts;
  for (const queue_core::AttemptRecord& attempt : attempts) {
    const std::tuple key(attempt.end_ms, attempt.job_id, attempt.attempt);
    if (!table.Has(key)) table.Put(key, attempt);
  }
  return attempts.size();
}

void WriteLackNodes(pqxx::transaction_base& tx,
                    const std::string& pool,
                    const std::vector<std::string>& job_ids) {
  auto& table = Of(tx).lack_nodes;
  table.EraseIf([&](const auto& id, const auto& of) {
    return of == pool && std::ranges::find(job_ids, id) == job_ids.end();
  });
  for (const std::string& id : job_ids) table.Put(id, pool);
}

std::vector<std::string> FindJobs(pqxx::transaction_base& tx,
                                  const std::vector<std::string>& job_ids) {
  std::vector<std::string> found;
  for (const std::string& id : job_ids) {
    if (Of(tx).jobs.Has(id)) found.push_back(id);
  }
  return found;
}

std::vector<std::string> InsertCommands(pqxx::transaction_base& tx,
                                        const std::vector<AcceptedCommand>& commands) {
  std::vector<std::string> known;
  for (const AcceptedCommand& command : commands) {
    if (Of(tx).commands.Has(command.client_id)) {
      known.push_back(command.client_id);
    } else {
      Of(tx).commands.Put(command.client_id, {command.job_id, SimTx::Of(tx).database().Now()});
    }
  }
  return known;
}

}  // namespace fluxqueue::queue
