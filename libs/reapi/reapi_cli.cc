// The C of Fluxion's interface around a Session each. No exception leaves it.
#include "libs/reapi/reapi_cli.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/status_macros.h"
#include "libs/reapi/session.h"

using fluxqueue::FromAbsl;
using fluxqueue::InvalidArgument;
using fluxqueue::reapi::JobInfo;
using fluxqueue::reapi::JobMode;
using fluxqueue::reapi::NameOf;
using fluxqueue::reapi::Placement;
using fluxqueue::reapi::Session;

struct reapi_cli_ctx {
  std::unique_ptr<Session> session;
  std::map<uint64_t, double> overheads;  // of each job's match, in seconds
  std::string errors;
};

namespace {

int ErrnoOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return ENOENT;
    case absl::StatusCode::kAlreadyExists:
      return EEXIST;
    case absl::StatusCode::kResourceExhausted:
      return EBUSY;
    case absl::StatusCode::kFailedPrecondition:
      return ENODEV;
    case absl::StatusCode::kDataLoss:
      return EPROTO;
    default:
      return EINVAL;
  }
}

int Fail(reapi_cli_ctx* ctx, const char* function, int error, std::string_view text) {
  if (ctx != nullptr) {
    try {
      ctx->errors.append(function).append(": ").append(text).append("\n");
    } catch (const std::bad_alloc&) {
      ctx->errors.clear();
    }
  }
  errno = error;
  return -1;
}

// 0, or -1 with errno and the text.
template <typename Body>
int Call(reapi_cli_ctx* ctx, const char* function, Body body) {
  try {
    const absl::Status status = body();
    return status.ok() ? 0 : Fail(ctx, function, ErrnoOf(status), FromAbsl(status.message()));
  } catch (const std::bad_alloc&) {
    return Fail(ctx, function, ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return Fail(ctx, function, EINVAL, error.what());
  }
}

// The same for what needs a graph.
template <typename Body>
int CallSession(reapi_cli_ctx* ctx, const char* function, Body body) {
  return Call(ctx, function, [&] {
    if (ctx == nullptr) return InvalidArgument("ctx is NULL");
    if (ctx->session == nullptr) return InvalidArgument("the context has not been initialized");
    return body(*ctx->session);
  });
}

struct Argument {
  const char* name;
  const void* value;
};

absl::Status CheckGiven(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.value == nullptr) return InvalidArgument("{} is NULL", argument.name);
  }
  return absl::OkStatus();
}

char* Copy(const std::string& text) {
  char* copy = strdup(text.c_str());
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace

extern "C" {

reapi_cli_ctx_t* reapi_cli_new(void) {
  auto* ctx = new (std::nothrow) reapi_cli_ctx;
  if (ctx == nullptr) errno = ENOMEM;
  return ctx;
}

void reapi_cli_destroy(reapi_cli_ctx_t* ctx) {
  delete ctx;
}

int reapi_cli_initialize(reapi_cli_ctx_t* ctx, const char* graph, const char* options) {
  return Call(ctx, __func__, [&] {
    RETURN_IF_ERROR(CheckGiven({{"ctx", ctx}, {"graph", graph}, {"options", options}}));
    if (ctx->session != nullptr) return InvalidArgument("the context is initialized already");
    ASSIGN_OR_RETURN(ctx->session, Session::Make(graph, options));
    return absl::OkStatus();
  });
}

reapi_cli_ctx_t* reapi_cli_clone(reapi_cli_ctx_t* ctx) {
  std::unique_ptr<reapi_cli_ctx> clone;
  const int rc = CallSession(ctx, __func__, [&](const Session& session) {
    clone = std::make_unique<reapi_cli_ctx>();
    clone->session = session.Clone();
    clone->overheads = ctx->overheads;
    return absl::OkStatus();
  });
  return rc == 0 ? clone.release() : nullptr;
}

// NOLINTBEGIN(readability-function-size): as many parameters as Fluxion has.
int reapi_cli_match_with_jobid(reapi_cli_ctx_t* ctx,
                               int op,
                               const char* jobspec,
                               uint64_t jobid,
                               bool* reserved,
                               char** R,
                               int64_t* at,
                               double* overhead) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"jobspec", jobspec},
                                {"reserved", reserved},
                                {"R", R},
                                {"at", at},
                                {"overhead", overhead}}));
    const Stopwatch stopwatch;
    ASSIGN_OR_RETURN(const Placement placement, session.Match(op, jobspec, jobid));
    *R = Copy(placement.resources);
    *reserved = placement.reserved;
    *at = placement.at_s;
    *overhead = stopwatch.seconds();
    ctx->overheads[jobid] = *overhead;
    return absl::OkStatus();
  });
}

int reapi_cli_match(reapi_cli_ctx_t* ctx,
                    int op,
                    const char* jobspec,
                    uint64_t* jobid,
                    bool* reserved,
                    char** R,
                    int64_t* at,
                    double* overhead) {
  uint64_t next = 0;
  const int rc = CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"jobid", jobid}}));
    next = session.NextJob();
    return absl::OkStatus();
  });
  if (rc != 0) return rc;
  if (reapi_cli_match_with_jobid(ctx, op, jobspec, next, reserved, R, at, overhead) != 0) return -1;
  *jobid = next;
  return 0;
}

// NOLINTEND(readability-function-size)

int reapi_cli_update_allocate(reapi_cli_ctx_t* ctx,
                              uint64_t jobid,
                              const char* R,
                              int64_t* at,
                              double* overhead,
                              const char** R_out) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"R", R}, {"at", at}, {"overhead", overhead}, {"R_out", R_out}}));
    const Stopwatch stopwatch;
    ASSIGN_OR_RETURN(const Placement placement, session.Restore(jobid, R));
    *R_out = Copy(placement.resources);
    *at = placement.at_s;
    *overhead = stopwatch.seconds();
    ctx->overheads[jobid] = *overhead;
    return absl::OkStatus();
  });
}

int reapi_cli_cancel(reapi_cli_ctx_t* ctx, uint64_t jobid, bool noent_ok) {
  return CallSession(ctx, __func__, [&](Session& session) {
    const absl::Status cancelled = session.Cancel(jobid);
    return noent_ok && absl::IsNotFound(cancelled) ? absl::OkStatus() : cancelled;
  });
}

int reapi_cli_partial_cancel(
    reapi_cli_ctx_t* ctx, uint64_t jobid, const char* R, bool noent_ok, bool* full_removal) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"R", R}, {"full_removal", full_removal}}));
    const absl::StatusOr<bool> all = session.CancelPart(jobid, R);
    if (noent_ok && absl::IsNotFound(all.status())) return absl::OkStatus();
    if (all.ok()) *full_removal = *all;
    return all.status();
  });
}

int reapi_cli_info(reapi_cli_ctx_t* ctx,
                   uint64_t jobid,
                   char** mode,
                   bool* reserved,
                   int64_t* at,
                   double* overhead) {
  return CallSession(ctx, __func__, [&](const Session& session) {
    RETURN_IF_ERROR(
        CheckGiven({{"mode", mode}, {"reserved", reserved}, {"at", at}, {"overhead", overhead}}));
    ASSIGN_OR_RETURN(const JobInfo info, session.Info(jobid));
    *mode = Copy(std::string(NameOf(info.mode)));
    *reserved = info.mode == JobMode::kReserved;
    *at = info.at_s;
    *overhead = ctx->overheads[jobid];
    return absl::OkStatus();
  });
}

int reapi_cli_find(reapi_cli_ctx_t* ctx, const char* criteria, const char* format, char** R) {
  return CallSession(ctx, __func__, [&](const Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"criteria", criteria}, {"R", R}}));
    ASSIGN_OR_RETURN(
        const std::optional<std::string> found,
        session.Find(criteria,
                     format == nullptr ? std::nullopt : std::optional<std::string_view>(format)));
    *R = found.has_value() ? Copy(*found) : nullptr;
    return absl::OkStatus();
  });
}

int reapi_cli_add_subgraph(reapi_cli_ctx_t* ctx, const char* jgf) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"jgf", jgf}}));
    return session.AddSubgraph(jgf);
  });
}

int reapi_cli_remove_subgraph(reapi_cli_ctx_t* ctx, const char* path) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"path", path}}));
    return session.RemoveSubgraph(path);
  });
}

int reapi_cli_set_status(reapi_cli_ctx_t* ctx, const char* path, int status) {
  return CallSession(ctx, __func__, [&](Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"path", path}}));
    if (status != REAPI_UP && status != REAPI_DOWN) {
      return InvalidArgument("status must be 0 (up) or 1 (down), is {}", status);
    }
    return session.SetUp(path, status == REAPI_UP);
  });
}

int reapi_cli_get_status(reapi_cli_ctx_t* ctx, const char* path, int* status) {
  return CallSession(ctx, __func__, [&](const Session& session) {
    RETURN_IF_ERROR(CheckGiven({{"path", path}, {"status", status}}));
    ASSIGN_OR_RETURN(const bool up, session.IsUp(path));
    *status = up ? REAPI_UP : REAPI_DOWN;
    return absl::OkStatus();
  });
}

const char* reapi_cli_get_err_msg(reapi_cli_ctx_t* ctx) {
  return strdup(ctx == nullptr ? "ctx is NULL\n" : ctx->errors.c_str());
}

void reapi_cli_clear_err_msg(reapi_cli_ctx_t* ctx) {
  if (ctx != nullptr) ctx->errors.clear();
}

}  // extern "C"
