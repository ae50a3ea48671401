// libpqxx's exceptions as statuses. Exceptions stop in this library: callers see absl::Status.
//
//   Unavailable       the server is away, is stopping, is full, a lock could not be had, or a
//   table,
//                     a column or a right is not there (yet): repeat later
//   Aborted           deadlock or serialisation failure: repeat
//   DeadlineExceeded  a statement ran into its time limit: repeat
//   Unknown           the connection died during COMMIT: committed or not, only the rows can tell
//   InvalidArgument   a value that Postgres cannot store (bad UTF-8, NUL, out of range)
//   AlreadyExists     a unique key is taken, or what is to be made is there
//   Internal          another constraint, or SQL of ours that is wrong
#pragma once

#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace fluxqueue::postgres {

// `doing` goes in front of the message.
absl::Status FromException(const std::exception& error, std::string_view doing);

inline bool IsOutcomeUnknown(const absl::Status& status) {
  return absl::IsUnknown(status);
}

}  // namespace fluxqueue::postgres
