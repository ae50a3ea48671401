// A graph and what is held of it in Fluxion's library. What would make the library abort is refused
// before it is called; what fails in it is a status with the library's own text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "libs/fluxion/library.h"
#include "libs/graph/match_operation.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

// Not thread-safe.
class Context {
 public:
  struct Settings {
    std::string policy = "first";            // one of Fluxion's ten names, or its custom form
    std::string traverser = "simple";        // or flexible
    std::string prune_filters = "ALL:core";  // empty: none
  };
  struct Placed {
    bool reserved = false;
    int64_t at_s = 0;
    std::string resources;  // R version 1 with its scheduling key; "" for kSatisfiability
  };

  virtual ~Context() = default;

  // `job`: an id that no other job has or had, at most INT64_MAX. ResourceExhausted: not now;
  // FailedPrecondition: not ever; InvalidArgument: the jobspec.
  virtual absl::StatusOr<Placed> Match(graph::MatchOperation operation,
                                       const std::string& jobspec,
                                       uint64_t job) = 0;
  // Holds again what `resources` (as in Placed) says.
  virtual absl::Status Restore(uint64_t job, const std::string& resources) = 0;
  // NotFound when the job holds nothing.
  virtual absl::Status Cancel(uint64_t job) = 0;
  // Gives back what `resources` says: whole ranks, unless it names vertices.
  virtual absl::Status CancelPart(uint64_t job, const std::string& resources) = 0;
  // The vertices that meet the criteria, and those above them, as JGF; "" when there are none.
  virtual absl::StatusOr<std::string> Find(const std::string& criteria) = 0;
  // Of a vertex with all below it.
  virtual absl::Status SetUp(const std::string& path, bool up) = 0;
};

// In this process. `jgf`: the graph. InvalidArgument: the settings or the graph are not what they
// must be. All contexts of a process belong to one thread: the library keeps one error text for
// all.
absl::StatusOr<std::unique_ptr<Context>> MakeContext(std::shared_ptr<const Library> library,
                                                     const std::string& jgf,
                                                     const Context::Settings& settings);

}  // namespace fluxqueue::fluxion
