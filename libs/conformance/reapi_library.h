// A library with Fluxion's C interface (libs/reapi/reapi_cli.h), opened at run time: Fluxion's own
// or ours. An adapter: makes calls, decides nothing.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "libs/conformance/transcript.h"
#include "libs/reapi/reapi_cli.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::conformance {

// Not thread-safe: errno is looked at after each call.
class ReapiLibrary final : public CallTarget {
 public:
  // InvalidArgument when it cannot be opened, or lacks a function.
  static absl::StatusOr<std::unique_ptr<ReapiLibrary>> Open(const std::string& path);
  ~ReapiLibrary() override;
  ReapiLibrary(const ReapiLibrary&) = delete;
  ReapiLibrary& operator=(const ReapiLibrary&) = delete;

  absl::Status Begin(const std::string& graph, const std::string& options) override;
  nlohmann::json Call(const nlohmann::json& call) override;

 private:
  // As the interface names them, without "reapi_cli_".
  struct Functions {
    decltype(&reapi_cli_new) make = nullptr;
    decltype(&reapi_cli_destroy) destroy = nullptr;
    decltype(&reapi_cli_initialize) initialize = nullptr;
    decltype(&reapi_cli_clone) clone = nullptr;
    decltype(&reapi_cli_match_with_jobid) match_with_jobid = nullptr;
    decltype(&reapi_cli_update_allocate) update_allocate = nullptr;
    decltype(&reapi_cli_cancel) cancel = nullptr;
    decltype(&reapi_cli_partial_cancel) partial_cancel = nullptr;
    decltype(&reapi_cli_info) info = nullptr;
    decltype(&reapi_cli_find) find = nullptr;
    decltype(&reapi_cli_add_subgraph) add_subgraph = nullptr;
    decltype(&reapi_cli_remove_subgraph) remove_subgraph = nullptr;
    decltype(&reapi_cli_set_status) set_status = nullptr;
    decltype(&reapi_cli_get_status) get_status = nullptr;
    decltype(&reapi_cli_get_err_msg) get_err_msg = nullptr;
  };
  // Of one call: the context and the arguments, and what came back.
  struct Scene {
    reapi_cli_ctx_t* ctx = nullptr;
    const nlohmann::json& args;
    nlohmann::json out = nlohmann::json::object();
  };

  ReapiLibrary(void* handle, const Functions& functions) : handle_(handle), functions_(functions) {}

  int Make(const std::string& function, Scene* scene);
  int Match(Scene* scene);
  int UpdateAllocate(Scene* scene);
  int PartialCancel(Scene* scene);
  int Info(Scene* scene);
  int Find(Scene* scene);
  int Status(Scene* scene);
  void Clear();

  void* handle_;
  Functions functions_;
  std::map<std::string, reapi_cli_ctx_t*> contexts_;
};

}  // namespace fluxqueue::conformance
