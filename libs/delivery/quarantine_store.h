// The SQL of the tables quarantine and under_way (migrations/0003_quarantine.sql). Every function
// runs inside the caller's transaction and throws what libpqxx throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/delivery/quarantine.h"

namespace fluxqueue::delivery {

std::vector<QuarantineRow> LoadQuarantine(pqxx::transaction_base& tx, const std::string& shard);
void WriteQuarantine(pqxx::transaction_base& tx,
                     const std::string& shard,
                     const Quarantine::Changes& changes);
// Those that an operator has retried: their rows go.
std::vector<Quarantine::Key> TakeRetried(pqxx::transaction_base& tx, const std::string& shard);

// The object that is handled next; null: none is. Outlives this process, not a crash of the
// database. REQUIRES: nothing else is in the transaction.
void MarkUnderWay(pqxx::transaction_base& tx, const std::string& shard, const ObjectRef* object);
// In a transaction that commits what came of it.
void ClearUnderWay(pqxx::transaction_base& tx, const std::string& shard);

// The lease was taken. Unclean: its last holder did not give it back, and the object that was under
// way is suspected, or held when it was so before. How often in a row the lease was taken like
// that.
int CountEnd(pqxx::transaction_base& tx, const std::string& shard, bool unclean);
void ForgetEnds(pqxx::transaction_base& tx, const std::string& shard, int64_t epoch);

}  // namespace fluxqueue::delivery
