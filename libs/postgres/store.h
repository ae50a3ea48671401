// The database as loops, handlers and shards use it: transactions. Postgres is behind RealStores();
// tests/simulation has one in memory.
//
// What is done in a transaction stands in the functions of the stores (ledger.h, queue_store.h …),
// each of which may have two implementations: the one in SQL, and the simulation's, which a program
// that simulates is linked with in place of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pqxx {
class transaction_base;
}

namespace fluxqueue::postgres {

struct Limits;
struct Options;
struct MigrationSet;

// Throws pqxx exceptions or returns a status; both roll the transaction back.
using Work = std::function<absl::Status(pqxx::transaction_base&)>;

// A connection. Confined to one thread.
class Store {
 public:
  virtual ~Store() = default;
  // As Connection's (connection.h).
  virtual absl::Status Transact(const Work& work) = 0;
  virtual absl::Status Transact(const Limits& limits, const Work& work) = 0;
  virtual absl::Status Query(const Work& work) = 0;
  virtual void Close() = 0;
};

class Stores {
 public:
  virtual ~Stores() = default;
  virtual std::unique_ptr<Store> Open(const Options& options) = 0;
  virtual absl::Status Migrate(const Options& options,
                               const std::vector<const MigrationSet*>& sets) = 0;
};

std::shared_ptr<Stores> RealStores();

}  // namespace fluxqueue::postgres
