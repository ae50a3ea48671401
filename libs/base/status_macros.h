// Propagation of absl::Status, and its bridge to our strings.
//
// What a status code tells the caller to do next is the same in the whole system:
//   OK                                              commit
//   Unavailable, Aborted, DeadlineExceeded          back off, then the same message again
//   InvalidArgument, FailedPrecondition, NotFound   dead letter, commit, go on
//   Internal, DataLoss                              stop the process: an invariant of ours is
//   broken
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue {

// True when repeating the same call later can succeed.
inline bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

// True when the message at hand can never succeed, while the next one may.
inline bool IsPoison(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsNotFound(status);
}

// Debian's absl::string_view is a type of its own; these two are the only bridge.
inline absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view FromAbsl(absl::string_view text) {
  return {text.data(), text.size()};
}

// MakeStatus(absl::StatusCode::kInvalidArgument, "label {}: {}", key, value)
template <typename... Args>
absl::Status MakeStatus(absl::StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return absl::Status(code, ToAbsl(fmt::format(format, std::forward<Args>(args)...)));
}

template <typename... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(absl::StatusCode::kUnavailable, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(absl::StatusCode::kInternal, format, std::forward<Args>(args)...);
}

inline std::string Message(const absl::Status& status) {
  return std::string(FromAbsl(status.message()));
}

// The same status with what was being done in front: "connect to db:5432: refused".
inline absl::Status Annotate(const absl::Status& status, std::string_view doing) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      ToAbsl(fmt::format("{}: {}", doing, FromAbsl(status.message()))));
}

}  // namespace fluxqueue

#define FLUXQUEUE_CONCAT_INNER(a, b) a##b
#define FLUXQUEUE_CONCAT(a, b) FLUXQUEUE_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                           \
  do {                                                  \
    if (absl::Status _status = (expr); !_status.ok()) { \
      return _status;                                   \
    }                                                   \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(FLUXQUEUE_CONCAT(_status_or_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
#define ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                          \
  if (!result.ok()) return result.status();      \
  lhs = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
