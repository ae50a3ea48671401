// What every program checks of the addresses in its configuration, before it uses them.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fluxqueue::config {

struct Connections {
  std::string dsn;
  std::string dsn_as_written;  // in the file: ${NAME} is still there
  std::string bootstrap;
  std::string tracing;
};

// InvalidArgument, each with what to do:
// - a password in `dsn_as_written` where every user of the machine, or all who may read the
//   ConfigMap, can read the file at `path`. The user's own file (chmod 600) may hold one, as
//   libpq's .pgpass may.
// - a DSN that may go on without TLS (libs/postgres/dsn.h)
// - a user or a password in `bootstrap` or `tracing`: these are logged.
absl::Status CheckConnections(const std::string& path, const Connections& connections);

}  // namespace fluxqueue::config
