// What is a root in the table of kinds (deploy/helm/fluxqueue/files/kinds.yaml, compiled in): an
// object of which Kubernetes' own controllers make pods or Jobs. Who makes such an object asks for
// all that comes of it, so its template is stamped with his name when it is made. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/kubernetes/views.h"

namespace fluxqueue::kubernetes {

struct Kind {
  std::string group;       // of the API, in its version v1; empty: the core group
  std::string resource;    // plural
  std::string kind;        // as owner references have it
  std::string template_;   // JSON Pointer
  std::string makes;       // "pods", "jobs"
  std::string controller;  // the account that does; empty: makes other kinds of this table
};

const std::vector<Kind>& Kinds();
// Null: it is none of the table.
const Kind* FindKind(std::string_view group, std::string_view resource);

// `user` is the controller of the object's owner, which is of one of these kinds: so the object was
// made from the owner's template. Owner references alone prove nothing.
bool IsFromTemplate(const ObjectMeta& meta, std::string_view user);

}  // namespace fluxqueue::kubernetes
