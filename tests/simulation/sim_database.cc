#include "tests/simulation/sim_database.h"

#include <algorithm>
#include <exception>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/postgres/status.h"

namespace fluxqueue::simulation {
namespace {

pqxx::connection_base& Nowhere() {
  static pqxx::lazyconnection connection{std::string()};
  return connection;
}

class SimStore final : public postgres::Store {
 public:
  SimStore(Database& database, Owner& owner, std::string schema)
      : database_(database), owner_(owner), schema_(std::move(schema)) {}

  absl::Status Transact(const postgres::Work& work) override {
    Scheduler& scheduler = database_.scheduler();
    Chance& chance = scheduler.chance();
    if (owner_.freeze_in_commit > Millis(0)) {
      scheduler.Freeze(owner_, std::exchange(owner_.freeze_in_commit, Millis(0)));
    }
    scheduler.Sleep(Millis(chance.Between(0, database_.faults().slowest.count())));
    if (database_.away()) return Unavailable("simulated: the database is away");
    const bool fails = chance.OneIn(database_.faults().fail_one_in);
    const bool unsaid = chance.OneIn(database_.faults().unsaid_one_in);
    const bool says = !unsaid && (!fails || chance.OneIn(2));
    absl::Status status = Do(work, /*commit=*/!fails);
    if (!status.ok()) return status;
    scheduler.GiveWay();
    if (says && !fails) return status;
    if (says) return Unavailable("simulated: a lock could not be had");
    return MakeStatus(absl::StatusCode::kUnknown, "simulated: the connection died during COMMIT");
  }
  absl::Status Transact(const postgres::Limits& /*limits*/, const postgres::Work& work) override {
    return Transact(work);
  }
  absl::Status Query(const postgres::Work& work) override {
    Scheduler& scheduler = database_.scheduler();
    scheduler.GiveWay();
    if (database_.away()) return Unavailable("simulated: the database is away");
    return Do(work, /*commit=*/true);
  }
  void Close() override {}

 private:
  absl::Status Do(const postgres::Work& work, bool commit) {
    const Scheduler::NoYield at_once(database_.scheduler());
    try {
      return database_.Run(schema_, work, commit);
    } catch (const std::exception& error) {
      return postgres::FromException(error, "simulated");
    }
  }

  Database& database_;
  Owner& owner_;
  const std::string schema_;
};

class SimStores final : public postgres::Stores {
 public:
  SimStores(Database& database, Owner& owner) : database_(database), owner_(owner) {}
  std::unique_ptr<postgres::Store> Open(const postgres::Options& options) override {
    return std::make_unique<SimStore>(database_, owner_, options.schema);
  }
  absl::Status Migrate(const postgres::Options&,
                       const std::vector<const postgres::MigrationSet*>&) override {
    return absl::OkStatus();
  }

 private:
  Database& database_;
  Owner& owner_;
};

void TakeBack(Undo& undo) {
  for (auto inverse = undo.rbegin(); inverse != undo.rend(); ++inverse) (*inverse)();
  undo.clear();
}

}  // namespace

std::shared_ptr<postgres::Stores> Database::For(Owner& owner) {
  return std::make_shared<SimStores>(*this, owner);
}

DeliveryTables& Database::DeliveryOf(const std::string& schema) {
  std::unique_ptr<DeliveryTables>& tables = delivery_[schema];
  if (tables == nullptr) tables = std::make_unique<DeliveryTables>(undo_);
  return *tables;
}

absl::Status Database::Run(const std::string& schema,
                           const std::function<absl::Status(pqxx::transaction_base&)>& work,
                           bool commit) {
  CHECK(undo_.empty(), "a transaction within another");
  absl::Status status;
  try {
    SimTx tx(*this, schema, Nowhere());
    status = work(tx);
  } catch (...) {
    TakeBack(undo_);
    throw;
  }
  if (!status.ok() || !commit) {
    TakeBack(undo_);
    return status;
  }
  if (undo_.empty()) return status;
  ++commits_;
  remembered_.push_back(std::exchange(undo_, {}));
  if (remembered_.size() > kRemembered) remembered_.pop_front();
  if (committed_) committed_();
  return status;
}

size_t Database::LoseLast(size_t commits) {
  commits = std::min(commits, remembered_.size());
  for (size_t i = 0; i < commits; ++i) {
    Undo undo = std::move(remembered_.back());
    remembered_.pop_back();
    TakeBack(undo);
  }
  if (commits > 0 && committed_) committed_();
  return commits;
}

}  // namespace fluxqueue::simulation
