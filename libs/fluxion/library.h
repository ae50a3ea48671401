// Fluxion's library, opened at run time: libreapi_cli.so of flux-sched 0.54, or another with its C
// interface, such as ours (libs/reapi). Nothing of Fluxion is needed to build this.
#pragma once

#include <memory>
#include <string>

#include "libs/reapi/reapi_cli.h"

#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

// What is called through it follows the interface's rules: one thread for all contexts.
class Library {
 public:
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
    decltype(&reapi_cli_clear_err_msg) clear_err_msg = nullptr;
  };

  // InvalidArgument when it cannot be opened or lacks a function: names both, and what to install.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions* operator->() const { return &functions_; }

 private:
  explicit Library(void* handle) : handle_(handle) {}

  void* handle_;
  Functions functions_;
};

}  // namespace fluxqueue::fluxion
