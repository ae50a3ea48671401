// The job id of a claim, from its pool and the client's own id for it: the same two give the same
// job. Pure.
#pragma once

#include <string>
#include <string_view>

namespace fluxqueue::queue {

// UUID version 5, as text.
std::string ClaimId(std::string_view pool, std::string_view client_id);

}  // namespace fluxqueue::queue
