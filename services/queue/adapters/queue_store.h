// The tables of the schema `queue`. Set-based: a batch costs a statement for each table it changes,
// however many rows. Throws what libpqxx throws; the delivery loop turns that into a status.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/queue_core/rows.h"

namespace fluxqueue::queue {

// Everything that is live in the pools of a partition, sorted by pool.
std::vector<std::pair<std::string, queue_core::Rows>> LoadPools(pqxx::transaction_base& tx,
                                                                int partition);

// Applies what a batch changed. Returns the number of rows written.
size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const queue_core::Changes& changes);

// Replaces the jobs of the pool that lack nothing but nodes (QueueCore::LackNodes).
void WriteLackNodes(pqxx::transaction_base& tx,
                    const std::string& pool,
                    const std::vector<std::string>& job_ids);

struct AcceptedCommand {
  std::string client_id;
  std::string job_id;
};

// Those of the jobs that have a row.
std::vector<std::string> FindJobs(pqxx::transaction_base& tx,
                                  const std::vector<std::string>& job_ids);

// Returns the client ids that were there already. REQUIRES: each is named once.
std::vector<std::string> InsertCommands(pqxx::transaction_base& tx,
                                        const std::vector<AcceptedCommand>& commands);

}  // namespace fluxqueue::queue
