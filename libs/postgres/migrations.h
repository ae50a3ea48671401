// The schema of a service: numbered SQL files, embedded at build time, applied at start.
//
//   fluxqueue_migrations(fluxqueue_queue_store queue ${CMAKE_CURRENT_SOURCE_DIR}/migrations)     #
//   CMake
//
//   #include "queue_migrations.h"                            // made by it:
//   fluxqueue::migrations::queue() Migrate(connection, "queue", {&delivery::Migrations(),
//   &migrations::queue()});
//
// Files are named NNNN_what.sql and hold any number of statements; names without a schema mean the
// service's own. What is missing is applied in one transaction, under a lock of the table
// `<schema>.migrations` (replicas may start together), and recorded there with its checksum. A file
// that was applied must never change: that is an error which names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/postgres/connection.h"

#include "absl/status/status.h"

namespace fluxqueue::postgres {

struct Migration {
  std::string_view name;  // "0001_jobs"
  std::string_view sql;
};

struct MigrationSet {
  std::string_view name;  // recorded as "<name>/0001_jobs"
  std::vector<Migration> migrations;
};

// Makes `schema` where it is not there, applies what is missing, the sets in their order, and gives
// others the rights that they have in it (grants.h). Says each file in the log.
// FailedPrecondition: an applied file has changed, or the schema is somebody else's. Internal: a
// file's SQL is wrong (the message names file and error).
absl::Status Migrate(Connection& connection,
                     const std::string& schema,
                     const std::vector<const MigrationSet*>& sets);

}  // namespace fluxqueue::postgres
