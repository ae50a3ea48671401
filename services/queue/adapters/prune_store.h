// What is deleted of the tables of the schema `queue` once it is old (postgres::Pruner). As
// queue_store.h: throws what libpqxx throws.
//
// Nothing here takes the inbox row's lock: what is deleted no core knows any more. A batch that
// brings such a job back at the same time has locked its row, which is passed over, or waits for
// the one transaction that deletes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/postgres/pruner.h"

namespace fluxqueue::queue {

// Jobs of a pool that ended longer ago than `age`, with their events; the last `kept` that have
// ended stay, as others may depend on them.
size_t PruneEnded(pqxx::transaction_base& tx, const std::string& pool, Millis age, uint64_t kept);

// All but the last thousand cycles of a pool.
size_t PruneCycles(pqxx::transaction_base& tx, const std::string& pool);

// Commands that were accepted more than a day ago.
size_t PruneCommands(pqxx::transaction_base& tx);

// All of that, for each pool that has a row, whoever holds it and whether or not anything happens
// in it. `retention`: how long jobs that have ended stay.
postgres::Pruner::Steps PruneSteps(pqxx::transaction_base& tx, Millis retention);

}  // namespace fluxqueue::queue
