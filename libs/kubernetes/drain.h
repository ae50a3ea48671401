// How a node is emptied (`fluxqueue drain`): an annotation that a person sets and cleanup acts on.
#pragma once

#include <string_view>

namespace fluxqueue::kubernetes {

// On a node: what becomes of the jobs that hold something there. "requeue": they are stopped and go
// back into line, as those of a lost node do. Anything else: nothing.
inline constexpr std::string_view kDrainAnnotation = "fluxqueue.io/drain";
inline constexpr std::string_view kDrainRequeue = "requeue";

}  // namespace fluxqueue::kubernetes
