#include "libs/postgres/status.h"

#include <string>

#include <pqxx/pqxx>

#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

// A table, column or schema that is not there (yet): the service that owns it makes it when it
// starts, and one of a later version may have started before it.
bool IsMissing(std::string_view sqlstate) {
  return sqlstate == "42P01" || sqlstate == "42703" || sqlstate == "3F000";
}

// A right that is not there (yet): the same service gives it then (grants.h).
bool IsForbidden(std::string_view sqlstate) {
  return sqlstate == "42501";
}

// A key, or a schema, a table or a type of that name.
bool IsTaken(std::string_view sqlstate) {
  return sqlstate == "23505" || sqlstate == "42P06" || sqlstate == "42P07" || sqlstate == "42710";
}

absl::StatusCode CodeOf(std::string_view sqlstate) {
  const std::string_view family = sqlstate.substr(0, 2);
  if (IsTaken(sqlstate)) return absl::StatusCode::kAlreadyExists;
  if (sqlstate == "57014") return absl::StatusCode::kDeadlineExceeded;
  if (sqlstate == "55P03") return absl::StatusCode::kUnavailable;
  if (IsMissing(sqlstate) || IsForbidden(sqlstate)) return absl::StatusCode::kUnavailable;
  if (sqlstate == "25006") return absl::StatusCode::kUnavailable;  // a standby: not promoted yet
  if (family == "40") return absl::StatusCode::kAborted;
  if (family == "22") return absl::StatusCode::kInvalidArgument;
  // Connection, resources, an operator's doing, I/O.
  if (family == "08" || family == "53" || family == "57" || family == "58" || family == "25") {
    return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

std::string Hint(std::string_view sqlstate) {
  if (IsMissing(sqlstate)) {
    return " (has the service that owns it run its migrations in this database?)";
  }
  if (IsForbidden(sqlstate)) {
    return " (has the service that owns it run its migrations in this database? It gives the "
           "rights of deploy/docs/security.md)";
  }
  if (sqlstate == "53100") return " (the database's disk is full)";
  return "";
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

absl::Status FromException(const std::exception& error, std::string_view doing) {
  const std::string what = Trimmed(error.what());
  if (dynamic_cast<const pqxx::in_doubt_error*>(&error) != nullptr) {
    return MakeStatus(
        absl::StatusCode::kUnknown, "{}: the connection was lost during COMMIT: {}", doing, what);
  }
  if (dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr) {
    return Unavailable("{}: {}", doing, what);
  }
  if (const auto* sql = dynamic_cast<const pqxx::sql_error*>(&error); sql != nullptr) {
    // libpqxx gives no SQLSTATE when the server went away in the middle of a statement.
    const std::string& state = sql->sqlstate();
    const absl::StatusCode code = state.empty() ? absl::StatusCode::kUnavailable : CodeOf(state);
    return MakeStatus(code, "{}: {}{}", doing, what, Hint(state));
  }
  // Unlike SQL errors these carry no state: deadlock_detected, serialization_failure.
  if (dynamic_cast<const pqxx::transaction_rollback*>(&error) != nullptr) {
    return MakeStatus(absl::StatusCode::kAborted, "{}: {}", doing, what);
  }
  return Internal("{}: {}", doing, what);
}

}  // namespace fluxqueue::postgres
