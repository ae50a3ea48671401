// The tables of the schema `matcher`, read. Throws what libpqxx throws. What is read together has
// to be read in one snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/matcher_core/rows.h"

namespace fluxqueue::matcher_rows {

struct PoolRows {
  std::string pool;
  matcher_core::Rows rows;
};

// Everything that is live in the pools of a partition, sorted by pool.
std::vector<PoolRows> LoadPools(pqxx::transaction_base& tx, int partition);

struct PoolHead {
  std::string row;  // matcher.v1.PoolState
  // Grows with each change of its nodes.
  int64_t nodes_version = 0;
  // Which commit of its partition was the last.
  int64_t epoch = 0;
  int64_t commits = 0;
};

// Nothing: there is no such pool.
std::optional<PoolHead> LoadHead(pqxx::transaction_base& tx, const std::string& pool);

std::vector<matcher_core::NodeRow> LoadNodes(pqxx::transaction_base& tx, const std::string& pool);
std::vector<matcher_core::ReservationRow> LoadReservations(pqxx::transaction_base& tx,
                                                           const std::string& pool);

// What is held, by job, attempt and part.
std::vector<matcher_core::AllocationRow> LoadAllocations(pqxx::transaction_base& tx,
                                                         const std::string& pool);
std::vector<matcher_core::AllocationRow> LoadAllocationsOf(pqxx::transaction_base& tx,
                                                           const std::string& pool,
                                                           const std::vector<std::string>& jobs);

// By job that holds something: a hash of all that it holds, another one after each change.
std::map<std::string, std::string> LoadHolders(pqxx::transaction_base& tx, const std::string& pool);
// The first job behind `job_id` that holds something, in the order of bytes.
std::optional<std::string> HolderBehind(pqxx::transaction_base& tx,
                                        const std::string& pool,
                                        const std::string& job_id);

}  // namespace fluxqueue::matcher_rows
