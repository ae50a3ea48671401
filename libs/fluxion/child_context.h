// A context in a process of its own: the library may die or hang there, and only a call is lost.
#pragma once

#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/fluxion/context.h"

#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

struct ChildOptions {
  std::string host;     // the program fluxqueue-fluxion-host
  std::string library;  // see Library::Open
  Millis call_timeout{10'000};
  Millis load_timeout{600'000};  // of MakeChildContext: large graphs take minutes
};

// As MakeContext. The calls may also fail with Unavailable, which says how the process ended: it is
// over then, and every further call says so; what it held is to be restored in another. NotFound:
// no such program.
absl::StatusOr<std::unique_ptr<Context>> MakeChildContext(const ChildOptions& options,
                                                          const std::string& jgf,
                                                          const Context::Settings& settings);

}  // namespace fluxqueue::fluxion
