#include "libs/postgres/migrations.h"

#include <chrono>
#include <string>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/postgres/grants.h"

namespace fluxqueue::postgres {
namespace {

// Who was first has committed by then, or has failed and left it to the next.
constexpr int kMostRaces = 10;
// A file whose index takes long lifts its statements' time limit; a server that has vanished
// meanwhile is left to TCP.
constexpr Millis kPatience = std::chrono::hours(24);

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

// FailedPrecondition: it is somebody else's, or not there and not ours to make. Both would come
// back as a right that is missing, which for a table of another service passes.
absl::Status MakeSchema(pqxx::transaction_base& tx, const std::string& schema) {
  const pqxx::row is = tx.exec_params1(
      "SELECT current_user, current_database(), "
      "  has_database_privilege(current_database(), 'CREATE'), pg_get_userbyid(n.nspowner), "
      "  pg_has_role(n.nspowner, 'USAGE') "
      "FROM (VALUES ($1)) AS wanted(name) LEFT JOIN pg_namespace n ON n.nspname = wanted.name",
      schema);
  const auto user = is[0].as<std::string>();
  constexpr const char* kSee = "deploy/docs/security.md says how each service gets its schema";
  if (!is[3].is_null()) {
    if (is[4].as<bool>()) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "the schema {} is of {}, and {} may not migrate it: {}",
                      schema,
                      is[3].as<std::string>(),
                      user,
                      kSee);
  }
  if (!is[2].as<bool>()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "there is no schema {}, and {} may not make one (CREATE on the database {}): "
                      "{}",
                      schema,
                      user,
                      is[1].as<std::string>(),
                      kSee);
  }
  // A role that has a schema of its own made for it has no right to make any, not even with IF NOT
  // EXISTS.
  tx.exec("CREATE SCHEMA " + tx.quote_name(schema));
  return absl::OkStatus();
}

// AlreadyExists: another replica has made the schema or the table meanwhile.
absl::Status TryMigrate(Connection& connection,
                        const std::string& schema,
                        const std::vector<const MigrationSet*>& sets) {
  const Limits limits{
      .statement_timeout = connection.options().statement_timeout,
      .idle_in_transaction_timeout = connection.options().idle_in_transaction_timeout,
      .answer_timeout = kPatience};
  return connection.Transact(limits, [&](pqxx::transaction_base& tx) -> absl::Status {
    RETURN_IF_ERROR(MakeSchema(tx, schema));
    tx.exec("SET LOCAL search_path = " + tx.quote_name(schema));
    tx.exec(
        "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, checksum text NOT NULL, "
        "applied timestamptz NOT NULL DEFAULT now())");
    // Only who may write the table can take it, or keep others from it: who may read it has a lock
    // that goes together with this one. An advisory lock would be anybody's.
    tx.exec("LOCK TABLE migrations IN SHARE ROW EXCLUSIVE MODE");
    for (const MigrationSet* set : sets) {
      for (const Migration& migration : set->migrations) {
        RETURN_IF_ERROR(Apply(tx,
                              schema,
                              fmt::format("{}/{}", set->name, migration.name),
                              std::string(migration.sql)));
      }
    }
    ApplyGrants(tx, schema);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status Migrate(Connection& connection,
                     const std::string& schema,
                     const std::vector<const MigrationSet*>& sets) {
  absl::Status status = TryMigrate(connection, schema, sets);
  for (int i = 0; i < kMostRaces && absl::IsAlreadyExists(status); ++i) {
    status = TryMigrate(connection, schema, sets);
  }
  return status;
}

}  // namespace fluxqueue::postgres
