// The cluster as watches, binder, cleanup and admission use it: calls to the API server, and what
// watches run by. Client (client.h) is the real one; tests/simulation has one in memory that does
// what a cluster may do at its worst. Objects are JSON texts; views.h reads them.
//
// Nothing is retried here: each call is one request, and the status says what to do (the table in
// status_macros.h):
//   NotFound            404
//   AlreadyExists       409 with reason AlreadyExists
//   Aborted             any other 409: a precondition (uid, resourceVersion) failed, or a pod is
//                       bound already; read it, then decide
//   OutOfRange          410: the resourceVersion or continue token has expired
//   InvalidArgument     400, 405, 413, 415, 422: the API server does not accept this body, ever
//   PermissionDenied    403 (RBAC, quota, an admission plugin)
//   Unauthenticated     401
//   Unavailable         429, 5xx, connection refused or lost; RetryAfter() gives the server's wish
//   DeadlineExceeded    no answer in time: it may have been done all the same
// Messages are the API server's own, with verb, resource and name in front.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/threads.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

struct Selector {
  std::string space{};   // empty: all namespaces
  std::string labels{};  // "fluxqueue.io/queue"
  std::string fields{};  // "spec.schedulerName=fluxqueue"
};

enum class PatchType { kJson, kMerge, kStrategic };

// Empty fields are no precondition.
struct Preconditions {
  std::string uid{};
  std::string resource_version{};
};

struct Binding {
  std::string space{};
  std::string pod{};
  std::string node{};
  Preconditions preconditions{};
  StringMap annotations{};  // reach the pod in the same write
};

struct DeleteOptions {
  Preconditions preconditions{};
  std::optional<int64_t> grace_period_s{};  // unset: the object's own
  std::string propagation{};  // "Background", "Foreground", "Orphan"; empty: the resource's default
};

class Cluster {
 public:
  virtual ~Cluster() = default;

  // `timeout`: unset, the configuration's.
  absl::StatusOr<std::string> Get(const Resource& resource,
                                  std::string_view space,
                                  std::string_view name,
                                  std::optional<Millis> timeout = std::nullopt) {
    return DoGet(resource, space, name, timeout);
  }

  // Pages of `page` objects, each given to `item` as JSON text (valid during the call; without
  // apiVersion and kind, as the API server gives it). A list that expires half way gives
  // OutOfRange: start again. Returns the resourceVersion of the list, from which a watch may begin.
  // An error of `item` ends it and is returned.
  absl::StatusOr<std::string> List(const Resource& resource,
                                   const Selector& selector,
                                   const std::function<absl::Status(std::string_view)>& item,
                                   int page = 500) {
    return DoList(resource, selector, item, page);
  }

  absl::StatusOr<std::string> Create(const Resource& resource,
                                     std::string_view space,
                                     std::string_view body,
                                     std::optional<Millis> timeout = std::nullopt) {
    return DoCreate(resource, space, body, timeout);
  }

  // Preconditions are a matter of the body: metadata.uid and metadata.resourceVersion in a merge or
  // strategic patch give Aborted when they differ. A failed `test` of a JSON patch gives
  // InvalidArgument, as does a bad patch: do not use it as one.
  absl::StatusOr<std::string> Patch(const Resource& resource,
                                    std::string_view space,
                                    std::string_view name,
                                    PatchType type,
                                    std::string_view body,
                                    std::string_view subresource = {}) {
    return DoPatch(resource, space, name, type, body, subresource);
  }

  absl::Status Delete(const Resource& resource,
                      std::string_view space,
                      std::string_view name,
                      const DeleteOptions& options = {}) {
    return DoDelete(resource, space, name, options);
  }

  // Aborted: the pod is bound, going, gated, or not the one that the preconditions name. NotFound:
  // there is none.
  virtual absl::Status Bind(const Binding& binding) = 0;

  // The raw stream of a watch: the Watcher's business (watch.h). `sink` as in http::Client::Stream.
  virtual absl::Status Watch(const Resource& resource,
                             const Selector& selector,
                             std::string_view resource_version,
                             Millis server_timeout,
                             const std::function<bool(std::string_view)>& sink,
                             std::stop_token stop) = 0;

  // What watches run by: their time, their threads, and where each one's chance begins.
  virtual const Clock& clock() const = 0;
  virtual Threads& threads() = 0;
  virtual uint64_t NewSeed() = 0;

 private:
  virtual absl::StatusOr<std::string> DoGet(const Resource& resource,
                                            std::string_view space,
                                            std::string_view name,
                                            std::optional<Millis> timeout) = 0;
  virtual absl::StatusOr<std::string> DoList(
      const Resource& resource,
      const Selector& selector,
      const std::function<absl::Status(std::string_view)>& item,
      int page) = 0;
  virtual absl::StatusOr<std::string> DoCreate(const Resource& resource,
                                               std::string_view space,
                                               std::string_view body,
                                               std::optional<Millis> timeout) = 0;
  virtual absl::StatusOr<std::string> DoPatch(const Resource& resource,
                                              std::string_view space,
                                              std::string_view name,
                                              PatchType type,
                                              std::string_view body,
                                              std::string_view subresource) = 0;
  virtual absl::Status DoDelete(const Resource& resource,
                                std::string_view space,
                                std::string_view name,
                                const DeleteOptions& options) = 0;
};

// How long the API server asked to wait with this error (header Retry-After); unset: it did not
// say.
std::optional<Millis> RetryAfter(const absl::Status& status);

}  // namespace fluxqueue::kubernetes
