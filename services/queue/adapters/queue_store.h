// The tables of the schema `queue`. Set-based: a batch costs a statement for each table it changes,
// however many rows. Throws what libpqxx throws; the delivery loop turns that into a status.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pqxx/pqxx>

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

// Forgets all but the last thousand cycles of a pool.
size_t PruneCycles(pqxx::transaction_base& tx, const std::string& pool);

}  // namespace fluxqueue::queue
