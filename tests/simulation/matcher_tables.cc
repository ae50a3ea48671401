// services/matcher/adapters/matcher_store.h, and what the matcher reads by
// libs/matcher_rows, over the database in memory.
#include "tests/simulation/matcher_tables.h"

#include "libs/matcher_rows/matcher_rows.h"
#include "services/matcher/adapters/matcher_store.h"

namespace fluxqueue {

using matcher_core::Changes;
using simulation::MatcherTables;
using simulation::SimTx;

namespace matcher_rows {
namespace {

PoolRows RowsOf(const MatcherTables& tables,
                const std::string& name,
                const MatcherTables::Pool& row) {
  PoolRows pool;
  pool.pool = name;
  pool.rows.pool = row.row;
  pool.rows.forecast = row.forecast;
  for (const auto& [key, node] : tables.nodes.rows()) {
    if (key.first == name) pool.rows.nodes.push_back(node);
  }
  for (const auto& [key, spec] : tables.specs.rows()) {
    if (spec.pool == name) pool.rows.specs.push_back(spec.row);
  }
  for (const auto& [key, reservation] : tables.reservations.rows()) {
    if (reservation.pool == name) pool.rows.reservations.push_back(reservation.row);
  }
  for (const auto& [key, answer] : tables.answers.rows()) {
    if (key.first == name) pool.rows.answers = {{key.second, answer}};  // the last
  }
  return pool;
}

void AddAllocations(const MatcherTables& tables, PoolRows* pool) {
  for (const auto& [key, allocation] : tables.allocations.rows()) {
    if (allocation.pool == pool->pool && !allocation.row.released) {
      pool->rows.allocations.push_back(allocation.row);
    }
  }
}

}  // namespace

std::vector<PoolRows> LoadPools(pqxx::transaction_base& tx, int partition) {
  const MatcherTables& tables = simulation::TablesOf<MatcherTables>(tx);
  std::vector<PoolRows> pools;
  for (const auto& [name, row] : tables.pools.rows()) {
    if (row.partition != partition) continue;
    AddAllocations(tables, &pools.emplace_back(RowsOf(tables, name, row)));
  }
  return pools;
}

}  // namespace matcher_rows

namespace matcher {
namespace {

// Of the pool that first had it.
std::string PoolOf(const std::string& known, const std::string& pool) {
  return known.empty() ? pool : known;
}

void WriteAllocations(MatcherTables& tables,
                      const std::string& pool,
                      const Changes& changes,
                      Millis now) {
  for (const auto& key : changes.released) {
    if (!tables.allocations.Has(MatcherTables::KeyOf(key))) continue;
    MatcherTables::Allocation& row = tables.allocations.Edit(MatcherTables::KeyOf(key));
    row.row.released = true;
    row.released_at = now;
  }
  for (const auto& row : changes.allocations) {
    MatcherTables::Allocation& kept = tables.allocations.Edit(MatcherTables::KeyOf(row.key));
    kept = {PoolOf(kept.pool, pool), row, row.released ? now : Millis(0)};
  }
}

void WriteSpecs(MatcherTables& tables, const std::string& pool, const Changes& changes) {
  for (const auto& key : changes.specs_dropped) tables.specs.Erase(key);
  for (const auto& row : changes.specs) {
    MatcherTables::Spec& kept = tables.specs.Edit({row.job_id, row.part});
    kept = {PoolOf(kept.pool, pool), row};
  }
}

void WriteReservations(MatcherTables& tables, const std::string& pool, const Changes& changes) {
  for (const auto& key : changes.reservations_dropped) {
    tables.reservations.Erase(MatcherTables::KeyOf(key));
  }
  for (const auto& row : changes.reservations) {
    MatcherTables::Reservation& kept = tables.reservations.Edit(MatcherTables::KeyOf(row.key));
    kept = {PoolOf(kept.pool, pool), row};
  }
}

void WriteAnswers(MatcherTables& tables, const std::string& pool, const Changes& changes) {
  for (const auto& row : changes.answers) tables.answers.Put({pool, row.cycle_id}, row.answer);
  if (changes.answers.empty() || changes.answers_dropped_through == 0) return;
  tables.answers.EraseIf([&](const auto& key, const auto&) {
    return key.first == pool && key.second <= changes.answers_dropped_through;
  });
}

}  // namespace

size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const Changes& changes,
                    bool first) {
  SimTx& sim = SimTx::Of(tx);
  MatcherTables& tables = sim.database().Of<MatcherTables>();
  WriteAllocations(tables, pool, changes, sim.database().Now());
  for (const std::string& name : changes.nodes_dropped) tables.nodes.Erase({pool, name});
  for (const auto& row : changes.nodes) tables.nodes.Put({pool, row.name}, row);
  WriteSpecs(tables, pool, changes);
  WriteReservations(tables, pool, changes);
  WriteAnswers(tables, pool, changes);
  if (changes.pool.has_value() || first) {
    MatcherTables::Pool& row = tables.pools.Edit(pool);
    row.partition = partition;
    row.row = changes.pool.value_or("");
  }
  if (changes.forecast.has_value() && tables.pools.Has(pool)) {
    tables.pools.Edit(pool).forecast = *changes.forecast;
  }
  return changes.released.size() + changes.allocations.size() + changes.nodes_dropped.size() +
         changes.nodes.size() + changes.specs_dropped.size() + changes.specs.size();
}

size_t PruneReleased(pqxx::transaction_base& tx, Millis age) {
  SimTx& sim = SimTx::Of(tx);
  const Millis before = sim.database().Now() - age;
  return sim.database().Of<MatcherTables>().allocations.EraseIf(
      [&](const auto&, const auto& row) { return row.row.released && row.released_at < before; });
}

}  // namespace matcher
}  // namespace fluxqueue
