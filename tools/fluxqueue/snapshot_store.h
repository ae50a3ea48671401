// What the invariants are checked on, as it stands in Postgres, Kafka and the cluster. Reads only.
#pragma once

#include <map>
#include <string>

#include "libs/postgres/connection.h"
#include "libs/verify/snapshot.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

postgres::Options PostgresOptions(const std::string& dsn);

// All rows, of one moment. What else is in `snapshot` stays.
absl::Status ReadRows(postgres::Connection& connection, verify::Snapshot* snapshot);

// Nodes and allocations only.
absl::Status ReadGraph(postgres::Connection& connection, verify::Snapshot* snapshot);

// Nodes, and the pods and Jobs with our hold. No kubeconfig: of the cluster that this runs in.
absl::StatusOr<verify::Cluster> ReadCluster(const std::string& kubeconfig);

}  // namespace fluxqueue::cli
