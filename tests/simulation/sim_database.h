// The database in memory: tables whose changes can be taken back, one transaction at a time.
//
// A transaction happens at one moment: others see nothing of it before, and all of it afterwards,
// as with Postgres' locks. Around that moment it may wait, fail, or not say what became of it, and
// its process may end. The last commits are remembered, so that they can be lost.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "libs/delivery/ledger.h"
#include "libs/delivery/quarantine.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/store.h"
#include "tests/simulation/scheduler.h"

namespace fluxqueue::simulation {

// Inverses, to be called from the last to the first.
using Undo = std::vector<std::function<void()>>;

template <typename K, typename V>
class Table {
 public:
  explicit Table(Undo& undo) : undo_(undo) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::map<K, V>& rows() const { return rows_; }
  bool Has(const K& key) const { return rows_.contains(key); }
  const V* Find(const K& key) const {
    const auto it = rows_.find(key);
    return it == rows_.end() ? nullptr : &it->second;
  }
  // Made when it is not there. The reference is for changing it at once.
  V& Edit(const K& key) {
    Remember(key);
    return rows_[key];
  }
  void Put(const K& key, V value) { Edit(key) = std::move(value); }
  bool Erase(const K& key) {
    if (!rows_.contains(key)) return false;
    Remember(key);
    rows_.erase(key);
    return true;
  }
  template <typename Predicate>
  size_t EraseIf(Predicate predicate) {
    std::vector<K> keys;
    for (const auto& [key, value] : rows_) {
      if (predicate(key, value)) keys.push_back(key);
    }
    for (const K& key : keys) Erase(key);
    return keys.size();
  }

 private:
  void Remember(const K& key) {
    const V* before = Find(key);
    undo_.push_back([this, key, old = before == nullptr ? std::nullopt : std::optional(*before)] {
      if (old.has_value()) {
        rows_[key] = *old;
      } else {
        rows_.erase(key);
      }
    });
  }

  Undo& undo_;
  std::map<K, V> rows_;
};

// The tables of libs/delivery, of one schema.
struct DeliveryTables {
  explicit DeliveryTables(Undo& undo)
      : inbox(undo),
        streams(undo),
        outbox(undo),
        leases(undo),
        ends(undo),
        quarantine(undo),
        under_way(undo),
        skips(undo) {}

  struct Stream {
    delivery::StreamPosition position;
    Millis raised{0};
  };
  struct Lease {
    delivery::LeaseRow row;
    Millis expires{0};
  };
  struct Quarantined {
    delivery::QuarantineRow row;
    bool retry = false;
  };

  Table<int, delivery::InboxRow> inbox;
  Table<std::pair<int, std::string>, Stream> streams;
  Table<uint64_t, delivery::OutboxRow> outbox;  // by number
  Table<std::string, Lease> leases;
  Table<std::string, int> ends;
  Table<std::tuple<std::string, std::string, std::string>, Quarantined> quarantine;
  Table<std::string, delivery::ObjectRef> under_way;
  Table<std::pair<int, int64_t>, std::string> skips;
  uint64_t last_number = 0;  // an identity is never given twice
};

class Database {
 public:
  struct Faults {
    uint64_t fail_one_in = 0;    // of commits: nothing happens, and it says so or not
    uint64_t unsaid_one_in = 0;  // of commits: it happens, and it does not say so
    Millis slowest{3};
    TimePoint away_until{};
    Millis skew{0};                 // of its clock
    bool same_incarnation = false;  // a safety that is taken out
  };
  static constexpr size_t kRemembered = 200;

  explicit Database(Scheduler& scheduler) : scheduler_(scheduler) {}

  std::shared_ptr<postgres::Stores> For(Owner& owner);

  Faults& faults() { return faults_; }
  Scheduler& scheduler() { return scheduler_; }
  bool away() const { return faults_.away_until > scheduler_.now(); }
  Millis Now() const { return WallTime(scheduler_, faults_.skew); }
  uint64_t commits() const { return commits_; }
  // Called with each commit that happened, and each that was lost again.
  void OnCommit(std::function<void()> committed) { committed_ = std::move(committed); }

  // As a standby that had not got them.
  size_t LoseLast(size_t commits);

  // All that is done is one transaction. Throws and returns what the work does.
  absl::Status Run(const std::string& schema,
                   const std::function<absl::Status(pqxx::transaction_base&)>& work,
                   bool commit);

  DeliveryTables& DeliveryOf(const std::string& schema);
  // The tables of a service: made when they are first asked for.
  template <typename Tables>
  Tables& Of() {
    std::shared_ptr<void>& tables = tables_[typeid(Tables)];
    if (tables == nullptr) tables = std::make_shared<Tables>(undo_);
    return *static_cast<Tables*>(tables.get());
  }
  Undo& undo() { return undo_; }
  int64_t NewIncarnation() {
    return faults_.same_incarnation ? 1 : static_cast<int64_t>(scheduler_.chance().Next() >> 1) | 1;
  }

 private:
  Scheduler& scheduler_;
  Faults faults_;
  Undo undo_;  // of the transaction under way
  std::deque<Undo> remembered_;
  uint64_t commits_ = 0;
  std::function<void()> committed_;
  std::map<std::string, std::unique_ptr<DeliveryTables>> delivery_;
  std::map<std::type_index, std::shared_ptr<void>> tables_;
};

// What the stores' functions are given in a simulation.
class SimTx final : public pqxx::transaction_base {
 public:
  SimTx(Database& database, std::string schema, pqxx::connection_base& nowhere)
      : pqxx::internal::namedclass("simulated"),
        pqxx::transaction_base(nowhere, /*direct=*/false),
        database_(database),
        schema_(std::move(schema)) {}
  ~SimTx() override { End(); }

  static SimTx& Of(pqxx::transaction_base& tx) { return static_cast<SimTx&>(tx); }
  Database& database() { return database_; }
  const std::string& schema() const { return schema_; }
  DeliveryTables& delivery() { return database_.DeliveryOf(schema_); }

 private:
  void do_begin() override {}
  pqxx::result do_exec(const char* sql) override {
    throw pqxx::usage_error(std::string("no SQL is simulated: ") + sql);
  }
  void do_commit() override {}
  void do_abort() override {}

  Database& database_;
  const std::string schema_;
};

// The tables that a store's function is asked about.
template <typename Tables>
Tables& TablesOf(pqxx::transaction_base& tx) {
  return SimTx::Of(tx).database().Of<Tables>();
}

}  // namespace fluxqueue::simulation
