// The JSON Patch that holds an object. Pure, thread-safe.
//
// Only what differs is in it: the patch of an object that is held already is empty.
#pragma once

#include <string>

#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::admission {

// RFC 6902 as text; empty: nothing to change. `user`: who made it; empty: not known.
std::string HoldPatch(const kubernetes::Pod& pod, kubernetes::Mode mode, const std::string& user);
// `suspend`: the Job is to be held by its `spec.suspend` too.
std::string HoldPatch(const kubernetes::Job& job,
                      kubernetes::Mode mode,
                      const std::string& user,
                      bool suspend);

}  // namespace fluxqueue::admission
