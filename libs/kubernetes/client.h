// The Kubernetes API server over HTTP (cluster.h says what its calls do), each call with the
// configuration's timeout.
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
#include "libs/base/threads.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/config.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// Since the client was made, by verb, resource and code: what metrics show.
struct CallCount {
  std::string verb{};      // get, list, watch, create, patch, delete, bind
  std::string resource{};  // plural
  int code = 0;            // of HTTP; 0: no answer
  uint64_t calls = 0;
  double seconds = 0;  // in all; a watch counts until its first byte
};

class Client final : public Cluster {
 public:
  explicit Client(ClusterConfig config);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::Status Bind(const Binding& binding) override;
  absl::Status Watch(const Resource& resource,
                     const Selector& selector,
                     std::string_view resource_version,
                     Millis server_timeout,
                     const std::function<bool(std::string_view)>& sink,
                     std::stop_token stop) override;

  const Clock& clock() const override { return clock_; }
  Threads& threads() override { return threads_; }
  uint64_t NewSeed() override;

  // OK when the API server says that it is ready: GET /readyz.
  absl::Status Ready();

  std::vector<CallCount> Calls() const;

 private:
  absl::StatusOr<std::string> DoGet(const Resource& resource,
                                    std::string_view space,
                                    std::string_view name,
                                    std::optional<Millis> timeout) override;
  absl::StatusOr<std::string> DoList(const Resource& resource,
                                     const Selector& selector,
                                     const std::function<absl::Status(std::string_view)>& item,
                                     int page) override;
  absl::StatusOr<std::string> DoCreate(const Resource& resource,
                                       std::string_view space,
                                       std::string_view body,
                                       std::optional<Millis> timeout) override;
  absl::StatusOr<std::string> DoPatch(const Resource& resource,
                                      std::string_view space,
                                      std::string_view name,
                                      PatchType type,
                                      std::string_view body,
                                      std::string_view subresource) override;
  absl::Status DoDelete(const Resource& resource,
                        std::string_view space,
                        std::string_view name,
                        const DeleteOptions& options) override;

  class Impl;
  const RealClock clock_;
  RealThreads threads_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::kubernetes
