// Who is charged for what controllers make. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace fluxqueue::admission {

// Controllers of the cluster, and those that run in another namespace than what they make. Who may
// only act in the object's own namespace could name any owner.
bool MakesForOthers(std::string_view user, std::string_view space);

// The user who is charged for what controllers make for people that are not known.
std::string UnknownMakerOf(std::string_view space);

}  // namespace fluxqueue::admission
