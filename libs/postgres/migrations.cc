#include "libs/postgres/migrations.h"

#include <string>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

// Applies one file if it is not recorded yet.
absl::Status Apply(pqxx::transaction_base& tx,
                   const std::string& schema,
                   const std::string& name,
                   const std::string& sql) {
  const pqxx::result recorded =
      tx.exec_params("SELECT checksum, md5($2) FROM migrations WHERE name = $1", name, sql);
  if (!recorded.empty()) {
    if (recorded[0][0].as<std::string>() == recorded[0][1].as<std::string>()) {
      return absl::OkStatus();
    }
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        "migration {} of schema {} has changed since it was applied: put the file back as it "
        "was, and write the change as a new migration",
        name,
        schema);
  }
  try {
    tx.exec(sql);
  } catch (const pqxx::sql_error& error) {
    return Internal("migration {} of schema {}: {}", name, schema, error.what());
  }
  tx.exec_params("INSERT INTO migrations (name, checksum) VALUES ($1, md5($2))", name, sql);
  LogInfo("migration applied", {{"schema", schema}, {"migration", name}});
  return absl::OkStatus();
}

}  // namespace

absl::Status Migrate(Connection& connection,
                     const std::string& schema,
                     const std::vector<const MigrationSet*>& sets) {
  return connection.Transact([&](pqxx::transaction_base& tx) -> absl::Status {
    // One lock for all schemas: two services that start together would else race for the catalog's
    // rows.
    tx.exec("SELECT pg_advisory_xact_lock(hashtext('fluxqueue.migrations'))");
    const std::string quoted = tx.quote_name(schema);
    tx.exec("CREATE SCHEMA IF NOT EXISTS " + quoted);
    tx.exec("SET LOCAL search_path = " + quoted);
    tx.exec(
        "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, checksum text NOT NULL, "
        "applied timestamptz NOT NULL DEFAULT now())");
    for (const MigrationSet* set : sets) {
      for (const Migration& migration : set->migrations) {
        RETURN_IF_ERROR(Apply(tx,
                              schema,
                              fmt::format("{}/{}", set->name, migration.name),
                              std::string(migration.sql)));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace fluxqueue::postgres
