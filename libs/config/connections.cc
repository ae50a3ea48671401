#include "libs/config/connections.h"

#include <filesystem>

#include "libs/base/status_macros.h"
#include "libs/postgres/dsn.h"

namespace fluxqueue::config {
namespace {

bool OthersCanRead(const std::string& path) {
  std::error_code error;
  const auto permissions = std::filesystem::status(path, error).permissions();
  return !error &&
         (permissions & std::filesystem::perms::others_read) != std::filesystem::perms::none;
}

}  // namespace

absl::Status CheckConnections(const std::string& path, const Connections& connections) {
  if (postgres::HoldsPassword(connections.dsn_as_written) && OthersCanRead(path)) {
    return InvalidArgument(
        "{}: postgres.dsn: it holds a password, and everybody can read this file: give the "
        "password "
        "in the environment (PGPASSWORD, or the whole as FLUXQUEUE_POSTGRES_DSN) or in a file of "
        "its "
        "own (passfile=FILE), or chmod 600 this one",
        path);
  }
  // What does not parse at all is said where it is used.
  if (postgres::TlsMode(connections.dsn) != "") {
    RETURN_IF_ERROR(Annotate(postgres::CheckDsn(connections.dsn), path));
  }
  if (connections.bootstrap.find('@') != std::string::npos) {
    return InvalidArgument(
        "{}: kafka.bootstrap: it is host:port,… and holds no user: name the user and the password "
        "in "
        "the file of kafka.properties (sasl.username, sasl.password)",
        path);
  }
  if (connections.tracing.find_first_of("@?#") != std::string::npos) {
    return InvalidArgument(
        "{}: tracing.endpoint: it is http://HOST:PORT and holds no user, password or token: where "
        "the "
        "collector wants one, send to an agent of your own that adds it",
        path);
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::config
