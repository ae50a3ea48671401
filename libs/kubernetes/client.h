// Calls to the Kubernetes API server. Objects are JSON texts; views.h reads them.
//
// Nothing is retried here: each call is one request with the configuration's timeout, and the
// status says what to do (the table in status_macros.h):
//   NotFound            404
//   AlreadyExists       409 with reason AlreadyExists
//   Aborted             any other 409: a precondition (uid, resourceVersion) failed, or a pod is
//   bound already; read it, then decide OutOfRange          410: the resourceVersion or continue
//   token has expired InvalidArgument     400, 405, 413, 415, 422: the API server does not accept
//   this body, ever PermissionDenied    403 (RBAC, quota, an admission plugin); Unauthenticated 401
//   Unavailable         429, 5xx, connection refused or lost; RetryAfter() gives the server's wish
//   DeadlineExceeded    no answer in time: it may have been done all the same
// Messages are the API server's own, with verb, resource and name in front.
//
// Thread-safe; made for about 16 threads in parallel, each call on a kept-alive connection of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/config.h"
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

// Since the client was made, by verb, resource and code: what metrics show.
struct CallCount {
  std::string verb{};      // get, list, watch, create, patch, delete, bind
  std::string resource{};  // plural
  int code = 0;            // of HTTP; 0: no answer
  uint64_t calls = 0;
  double seconds = 0;  // in all; a watch counts until its first byte
};

class Client {
 public:
  explicit Client(ClusterConfig config);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `timeout`: unset, the configuration's.
  absl::StatusOr<std::string> Get(const Resource& resource,
                                  std::string_view space,
                                  std::string_view name,
                                  std::optional<Millis> timeout = std::nullopt);

  // Pages of `page` objects, each given to `item` as JSON text (valid during the call; without
  // apiVersion and kind, as the API server gives it). A list that expires half way gives
  // OutOfRange: start again. Returns the resourceVersion of the list, from which a watch may begin.
  // An error of `item` ends it and is returned.
  absl::StatusOr<std::string> List(const Resource& resource,
                                   const Selector& selector,
                                   const std::function<absl::Status(std::string_view)>& item,
                                   int page = 500);

  absl::StatusOr<std::string> Create(const Resource& resource,
                                     std::string_view space,
                                     std::string_view body,
                                     std::optional<Millis> timeout = std::nullopt);

  // Preconditions are a matter of the body: metadata.uid and metadata.resourceVersion in a merge or
  // strategic patch give Aborted when they differ. A failed `test` of a JSON patch gives
  // InvalidArgument, as does a bad patch: do not use it as one.
  absl::StatusOr<std::string> Patch(const Resource& resource,
                                    std::string_view space,
                                    std::string_view name,
                                    PatchType type,
                                    std::string_view body,
                                    std::string_view subresource = {});

  absl::Status Delete(const Resource& resource,
                      std::string_view space,
                      std::string_view name,
                      const DeleteOptions& options = {});

  // Aborted: the pod is bound, going, gated, or not the one that the preconditions name. NotFound:
  // there is none.
  absl::Status Bind(const Binding& binding);

  // The raw stream of a watch: the Watcher's business (watch.h). `sink` as in http::Client::Stream.
  absl::Status Watch(const Resource& resource,
                     const Selector& selector,
                     std::string_view resource_version,
                     Millis server_timeout,
                     const std::function<bool(std::string_view)>& sink,
                     std::stop_token stop);

  // OK when the API server says that it is ready: GET /readyz.
  absl::Status Ready();

  std::vector<CallCount> Calls() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// How long the API server asked to wait with this error (header Retry-After); unset: it did not
// say.
std::optional<Millis> RetryAfter(const absl::Status& status);

}  // namespace fluxqueue::kubernetes
