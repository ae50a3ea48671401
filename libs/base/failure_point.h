// Steps at which a test lets a process end, as if it were killed there.
//
//   FLUXQUEUE_DIE_AT=commit.after:3     at the third time that it comes there
//
// Where the environment names none, a point costs one comparison.
#pragma once

#include <string_view>

namespace fluxqueue {

// Ends the process without another step where this is the point that the environment names.
// Thread-safe.
void FailurePoint(std::string_view name);

}  // namespace fluxqueue
