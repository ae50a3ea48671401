// One context of Fluxion's library: a graph and what is held of it. What would make the library
// abort is refused before it is called; what fails in it is a status with the library's own text.
//
// All of a process's contexts belong to one thread: the library keeps one error text for all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "libs/fluxion/library.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

class Context {
 public:
  struct Settings {
    std::string policy = "first";            // one of Fluxion's ten names, or its custom form
    std::string traverser = "simple";        // or flexible
    std::string prune_filters = "ALL:core";  // empty: none
  };
  enum class Operation {
    kAllocate = REAPI_ALLOCATE,
    kAllocateWithSatisfiability = REAPI_ALLOCATE_WITH_SATISFIABILITY,
    kAllocateOrElseReserve = REAPI_ALLOCATE_ORELSE_RESERVE,
    kSatisfiability = REAPI_SATISFIABILITY,
    kWithoutAllocating = REAPI_WITHOUT_ALLOCATING,
    kWithoutAllocatingFuture = REAPI_WITHOUT_ALLOCATING_FUTURE,
  };
  struct Placed {
    bool reserved = false;
    int64_t at_s = 0;
    std::string resources;  // R version 1 with its scheduling key; "" for kSatisfiability
  };

  // `jgf`: the graph. InvalidArgument: the settings or the graph are not what they must be.
  static absl::StatusOr<std::unique_ptr<Context>> Make(std::shared_ptr<const Library> library,
                                                       const std::string& jgf,
                                                       const Settings& settings);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // `job`: an id that no other job has or had, at most INT64_MAX. ResourceExhausted: not now;
  // FailedPrecondition: not ever; InvalidArgument: the jobspec.
  absl::StatusOr<Placed> Match(Operation operation, const std::string& jobspec, uint64_t job);
  // Holds again what `resources` (as in Placed) says.
  absl::Status Restore(uint64_t job, const std::string& resources);
  // NotFound when the job holds nothing.
  absl::Status Cancel(uint64_t job);
  // Gives back what `resources` says: whole ranks, unless it names vertices.
  absl::Status CancelPart(uint64_t job, const std::string& resources);
  // The vertices that meet the criteria, and those above them, as JGF; "" when there are none.
  absl::StatusOr<std::string> Find(const std::string& criteria) const;
  // Of a vertex with all below it.
  absl::Status SetUp(const std::string& path, bool up);

 private:
  Context(std::shared_ptr<const Library> library, reapi_cli_ctx_t* ctx)
      : library_(std::move(library)), ctx_(ctx) {}

  // What went wrong in the call that has just failed, with the library's text, which is cleared.
  absl::Status Failed(std::string_view what, int error) const;

  std::shared_ptr<const Library> library_;
  reapi_cli_ctx_t* ctx_;
};

}  // namespace fluxqueue::fluxion
