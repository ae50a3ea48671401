#include "libs/fluxion/library.h"

#include <dlfcn.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::fluxion {
namespace {

constexpr std::string_view kWhatToInstall =
    "wanted is libreapi_cli.so of flux-sched 0.54, or libfluxqueue_reapi.so";

template <typename Function>
absl::Status LookUp(void* handle, const char* name, Function* function) {
  const std::string symbol = fmt::format("reapi_cli_{}", name);
  *function = reinterpret_cast<Function>(dlsym(handle, symbol.c_str()));
  if (*function == nullptr) return InvalidArgument("has no function {}", symbol);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps it for each thread.
  if (handle == nullptr) return InvalidArgument("{}; {}", dlerror(), kWhatToInstall);
  const std::shared_ptr<Library> library(new Library(handle));
  Functions& f = library->functions_;
  for (const absl::Status& found : {LookUp(handle, "new", &f.make),
                                    LookUp(handle, "destroy", &f.destroy),
                                    LookUp(handle, "initialize", &f.initialize),
                                    LookUp(handle, "clone", &f.clone),
                                    LookUp(handle, "match_with_jobid", &f.match_with_jobid),
                                    LookUp(handle, "update_allocate", &f.update_allocate),
                                    LookUp(handle, "cancel", &f.cancel),
                                    LookUp(handle, "partial_cancel", &f.partial_cancel),
                                    LookUp(handle, "info", &f.info),
                                    LookUp(handle, "find", &f.find),
                                    LookUp(handle, "add_subgraph", &f.add_subgraph),
                                    LookUp(handle, "remove_subgraph", &f.remove_subgraph),
                                    LookUp(handle, "set_status", &f.set_status),
                                    LookUp(handle, "get_status", &f.get_status),
                                    LookUp(handle, "get_err_msg", &f.get_err_msg),
                                    LookUp(handle, "clear_err_msg", &f.clear_err_msg)}) {
    if (!found.ok()) return InvalidArgument("{}: {}; {}", path, Message(found), kWhatToInstall);
  }
  return library;
}

Library::~Library() {
  dlclose(handle_);
}

}  // namespace fluxqueue::fluxion
