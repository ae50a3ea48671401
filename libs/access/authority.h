// Who knows users, their rights and the FluxQueues: the API server (cluster_authority.h), or a
// table in tests.
//
// Each call may wait, and is Unavailable where nobody could be asked, which is never a yes.
// Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "libs/access/queue_access.h"
#include "libs/access/rights.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::access {

// kDenied: nothing else may give him the right, as a FluxQueue's subjects could else. So is a token
// kept to its scopes.
enum class Verdict { kAllowed, kNoOpinion, kDenied };

class Authority {
 public:
  virtual ~Authority() = default;

  // Unauthenticated: nobody's, or the token is not made for kAudience.
  virtual absl::StatusOr<User> WhoseIs(const std::string& token) = 0;
  virtual absl::StatusOr<Verdict> Judge(const User& user, const Right& right) = 0;
  absl::StatusOr<bool> Allows(const User& user, const Right& right) {
    const absl::StatusOr<Verdict> verdict = Judge(user, right);
    if (!verdict.ok()) return verdict.status();
    return *verdict == Verdict::kAllowed;
  }
  // The FluxQueue of that name, and all above it that there are. Empty: there is none.
  virtual absl::StatusOr<QueuesByName> QueueAndAbove(const std::string& name) = 0;
  // Of the namespace; nothing: there is none.
  virtual absl::StatusOr<std::optional<kubernetes::StringMap>> LabelsOf(
      const std::string& space) = 0;
};

}  // namespace fluxqueue::access
