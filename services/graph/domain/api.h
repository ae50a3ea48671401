// The API's messages.
#pragma once

#include "fluxqueue/matcher/v1/matcher.pb.h"

namespace fluxqueue::graph_service {

namespace v1 = matcher::v1;

}  // namespace fluxqueue::graph_service
