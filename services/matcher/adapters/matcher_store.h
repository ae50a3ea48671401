// The tables of the schema `matcher`, written (libs/matcher_rows reads them). Set-based: a batch
// costs a statement for each table it changes, however many rows. Throws what libpqxx throws; the
// delivery loop turns that into a status.
#pragma once

#include <cstddef>
#include <string>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/matcher_core/rows.h"

namespace fluxqueue::matcher {

// Applies what a batch changed. Returns the number of rows written. `first`: the pool has no row
// yet; it gets one even when nothing of it changed, because matcher_rows::LoadPools finds the rest
// by it.
size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const matcher_core::Changes& changes,
                    bool first);

// Deletes allocations that were released longer than `age` ago, of all pools, and returns how many:
// a step of a postgres::Pruner. No core knows them.
size_t PruneReleased(pqxx::transaction_base& tx, Millis age);

}  // namespace fluxqueue::matcher
