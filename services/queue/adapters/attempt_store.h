// The table queue.attempts: accounting, in a partition for each month. As queue_store.h: throws
// what libpqxx throws.
//
// A row never lacks its partition: who writes one makes it in the same transaction. AttemptKeeper
// makes the next month's ahead of time, so that writers find it.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/model/accounting_month.h"
#include "libs/queue_core/rows.h"

namespace fluxqueue::queue {

// A row that is there already stays as it is. Returns how many were given.
size_t WriteAttempts(pqxx::transaction_base& tx,
                     const std::string& pool,
                     const std::vector<queue_core::AttemptRecord>& attempts);

// Makes those that are not there. Others may do the same; nobody who reads or writes rows waits for
// it.
void MakeMonths(pqxx::transaction_base& tx, const std::set<model::Month>& months);

// Those that have a partition.
std::set<model::Month> Months(pqxx::transaction_base& tx);

// Throws when the table is in use for longer than a second: nobody is to wait behind it for longer.
void DropMonth(pqxx::transaction_base& tx, model::Month month);

}  // namespace fluxqueue::queue
