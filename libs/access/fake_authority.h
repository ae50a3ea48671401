// For tests: an authority that knows what it was told. A user with scopes (extra) may do nothing.
// One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "libs/access/authority.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::access {

class FakeAuthority final : public Authority {
 public:
  absl::StatusOr<User> WhoseIs(const std::string& token) override {
    if (on_token) on_token();
    RETURN_IF_ERROR(there);
    const auto found = tokens.find(token);
    if (found == tokens.end()) {
      return MakeStatus(absl::StatusCode::kUnauthenticated, "the token is nobody's");
    }
    return found->second;
  }
  absl::StatusOr<Verdict> Judge(const User& user, const Right& right) override {
    RETURN_IF_ERROR(there);
    if (user.extra.contains("scopes")) return Verdict::kDenied;
    return rights.contains({user.name, Text(right)}) ? Verdict::kAllowed : Verdict::kNoOpinion;
  }
  absl::StatusOr<QueuesByName> QueueAndAbove(const std::string& name) override {
    RETURN_IF_ERROR(there);
    QueuesByName found;
    for (auto at = queues.find(name); at != queues.end(); at = queues.find(at->second.parent)) {
      found.insert(*at);
    }
    return found;
  }
  absl::StatusOr<std::optional<kubernetes::StringMap>> LabelsOf(const std::string& space) override {
    RETURN_IF_ERROR(there);
    const auto found = spaces.find(space);
    if (found == spaces.end()) return std::nullopt;
    return found->second;
  }

  // "create jobs/cancel lab", without the name.
  static std::string Text(const Right& right) {
    std::string text = right.verb + " " + right.resource;
    if (!right.subresource.empty()) text += "/" + right.subresource;
    if (!right.space.empty()) text += " " + right.space;
    return text;
  }

  absl::Status there{};              // else what everybody is told
  std::function<void()> on_token{};  // called first, on the caller's thread
  std::map<std::string, User> tokens{};
  std::set<std::pair<std::string, std::string>> rights{};  // user, Text()
  QueuesByName queues{};
  std::map<std::string, kubernetes::StringMap> spaces{};
};

}  // namespace fluxqueue::access
