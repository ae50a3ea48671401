#include "libs/conformance/reapi_library.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::conformance {
namespace {

using nlohmann::json;

// What came back, freed: JSON where it is, else text; null for NULL.
json Take(char* text) {
  if (text == nullptr) return nullptr;
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) value = text;
  std::free(text);
  return value;
}

json NameOfErrno(int number) {
  if (number == 0) return "0";
  const char* name = strerrorname_np(number);
  return name == nullptr ? json(number) : json(name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReapiLibrary>> ReapiLibrary::Open(const std::string& path) {
  ASSIGN_OR_RETURN(auto library, fluxion::Library::Open(path));
  return std::unique_ptr<ReapiLibrary>(new ReapiLibrary(std::move(library)));
}

ReapiLibrary::~ReapiLibrary() {
  Clear();
}

void ReapiLibrary::Clear() {
  for (const auto& [name, ctx] : contexts_) (*library_)->destroy(ctx);
  contexts_.clear();
}

absl::Status ReapiLibrary::Begin(const std::string& graph, const std::string& options) {
  Clear();
  reapi_cli_ctx_t* ctx = (*library_)->make();
  if (ctx == nullptr) return InvalidArgument("reapi_cli_new: errno {}", errno);
  contexts_["c0"] = ctx;
  if ((*library_)->initialize(ctx, graph.c_str(), options.c_str()) == 0) return absl::OkStatus();
  const json text = Take(const_cast<char*>((*library_)->get_err_msg(ctx)));
  return InvalidArgument("reapi_cli_initialize: {}", text.dump());
}

json ReapiLibrary::Call(const json& call) {
  const std::string function = call.at("fn");
  const auto ctx = contexts_.find(call.at("ctx").get<std::string>());
  if (ctx == contexts_.end()) return {{"rc", -1}, {"errno", "the clone failed"}};
  Scene scene{ctx->second, call.at("args")};
  if (function == "clone") {
    reapi_cli_ctx_t* clone = (*library_)->clone(scene.ctx);
    if (clone == nullptr) return {{"rc", -1}, {"errno", NameOfErrno(errno)}};
    contexts_[scene.args.at("as").get<std::string>()] = clone;
    return json::object();
  }
  errno = 0;
  const int rc = Make(function, &scene);
  const int error = errno;
  if (rc != 0) return {{"rc", rc}, {"errno", NameOfErrno(error)}};
  scene.out["rc"] = rc;
  scene.out["errno"] = "ok";
  return std::move(scene.out);
}

int ReapiLibrary::Make(const std::string& function, Scene* scene) {
  const json& args = scene->args;
  const auto text = [&args](const char* key) -> const char* {
    return args.at(key).get_ref<const std::string&>().c_str();
  };
  if (function == "match_with_jobid") return Match(scene);
  if (function == "update_allocate") return UpdateAllocate(scene);
  if (function == "partial_cancel") return PartialCancel(scene);
  if (function == "info") return Info(scene);
  if (function == "find") return Find(scene);
  if (function == "get_status") return Status(scene);
  if (function == "cancel") {
    return (*library_)->cancel(
        scene->ctx, args.at("jobid").get<uint64_t>(), args.at("noent_ok").get<bool>());
  }
  if (function == "add_subgraph") return (*library_)->add_subgraph(scene->ctx, text("jgf"));
  if (function == "remove_subgraph") return (*library_)->remove_subgraph(scene->ctx, text("path"));
  return (*library_)->set_status(scene->ctx, text("path"), args.at("status").get<int>());
}

int ReapiLibrary::Match(Scene* scene) {
  bool reserved = false;
  char* resources = nullptr;
  int64_t at = 0;
  double overhead = 0;
  const int rc =
      (*library_)->match_with_jobid(scene->ctx,
                                    scene->args.at("op").get<int>(),
                                    scene->args.at("jobspec").get_ref<const std::string&>().c_str(),
                                    scene->args.at("jobid").get<uint64_t>(),
                                    &reserved,
                                    &resources,
                                    &at,
                                    &overhead);
  if (rc == 0) scene->out = {{"reserved", reserved}, {"at", at}, {"R", Take(resources)}};
  return rc;
}

int ReapiLibrary::UpdateAllocate(Scene* scene) {
  int64_t at = 0;
  double overhead = 0;
  const char* resources = nullptr;
  const int rc =
      (*library_)->update_allocate(scene->ctx,
                                   scene->args.at("jobid").get<uint64_t>(),
                                   scene->args.at("R").get_ref<const std::string&>().c_str(),
                                   &at,
                                   &overhead,
                                   &resources);
  if (rc == 0) scene->out = {{"at", at}, {"R", Take(const_cast<char*>(resources))}};
  return rc;
}

int ReapiLibrary::PartialCancel(Scene* scene) {
  bool full_removal = false;
  const int rc =
      (*library_)->partial_cancel(scene->ctx,
                                  scene->args.at("jobid").get<uint64_t>(),
                                  scene->args.at("R").get_ref<const std::string&>().c_str(),
                                  scene->args.at("noent_ok").get<bool>(),
                                  &full_removal);
  if (rc == 0) scene->out = {{"full_removal", full_removal}};
  return rc;
}

int ReapiLibrary::Info(Scene* scene) {
  char* mode = nullptr;
  bool reserved = false;
  int64_t at = 0;
  double overhead = 0;
  const int rc = (*library_)->info(
      scene->ctx, scene->args.at("jobid").get<uint64_t>(), &mode, &reserved, &at, &overhead);
  if (rc == 0) scene->out = {{"mode", Take(mode)}, {"reserved", reserved}, {"at", at}};
  return rc;
}

int ReapiLibrary::Find(Scene* scene) {
  char* resources = nullptr;
  const int rc = (*library_)->find(scene->ctx,
                                   scene->args.at("criteria").get_ref<const std::string&>().c_str(),
                                   scene->args.at("format").get_ref<const std::string&>().c_str(),
                                   &resources);
  if (rc == 0) scene->out = {{"R", Take(resources)}};
  return rc;
}

int ReapiLibrary::Status(Scene* scene) {
  int status = 0;
  const int rc = (*library_)->get_status(
      scene->ctx, scene->args.at("path").get_ref<const std::string&>().c_str(), &status);
  if (rc == 0) scene->out = {{"status", status}};
  return rc;
}

}  // namespace fluxqueue::conformance
