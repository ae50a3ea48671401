// A library with Fluxion's C interface (libs/reapi/reapi_cli.h), opened at run time: Fluxion's own
// or ours. An adapter: makes calls, decides nothing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/conformance/transcript.h"
#include "libs/fluxion/library.h"

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
  // Of one call: the context and the arguments, and what came back.
  struct Scene {
    reapi_cli_ctx_t* ctx = nullptr;
    const nlohmann::json& args;
    nlohmann::json out = nlohmann::json::object();
  };

  explicit ReapiLibrary(std::shared_ptr<const fluxion::Library> library)
      : library_(std::move(library)) {}

  int Make(const std::string& function, Scene* scene);
  int Match(Scene* scene);
  int UpdateAllocate(Scene* scene);
  int PartialCancel(Scene* scene);
  int Info(Scene* scene);
  int Find(Scene* scene);
  int Status(Scene* scene);
  void Clear();

  std::shared_ptr<const fluxion::Library> library_;
  std::map<std::string, reapi_cli_ctx_t*> contexts_;
};

}  // namespace fluxqueue::conformance
