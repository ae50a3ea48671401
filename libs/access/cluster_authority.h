// The API server as the authority: TokenReview, SubjectAccessReview, FluxQueues, namespaces.
//
// What it said is believed for `age`, a no as well as a yes: so long a right stays that was taken
// away, and a token whose account is gone. A token is remembered by its SHA-256. After a call that
// nobody answered, all are Unavailable at once for `outage`, so that callers do not wait in line
// for a server that is away.
#pragma once

#include <mutex>
#include <string>

#include "libs/access/authority.h"
#include "libs/access/recent_cache.h"
#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"

namespace fluxqueue::access {

class ClusterAuthority final : public Authority {
 public:
  struct Options {
    Millis age{5'000};
    Millis timeout{2'000};
    Millis outage{1'000};
    size_t most = 10'000;  // answers of each kind that are remembered
  };

  // References outlive the object.
  ClusterAuthority(kubernetes::Client& client, const Clock& clock)
      : ClusterAuthority(client, clock, Options()) {}
  ClusterAuthority(kubernetes::Client& client, const Clock& clock, const Options& options);

  absl::StatusOr<User> WhoseIs(const std::string& token) override;
  absl::StatusOr<Verdict> Judge(const User& user, const Right& right) override;
  absl::StatusOr<QueuesByName> QueueAndAbove(const std::string& name) override;
  absl::StatusOr<std::optional<kubernetes::StringMap>> LabelsOf(const std::string& space) override;

 private:
  absl::StatusOr<std::optional<kubernetes::FluxQueue>> Queue(const std::string& name);
  // An answer, NotFound, or Unavailable.
  absl::StatusOr<std::string> Create(const kubernetes::Resource& resource, const std::string& body);
  absl::StatusOr<std::string> Get(const kubernetes::Resource& resource, const std::string& name);
  absl::Status CheckThere();
  absl::Status NoAnswer(const absl::Status& why);

  kubernetes::Client& client_;
  const Clock& clock_;
  const Options options_;
  RecentCache<std::optional<User>> users_;  // by the token; nothing: nobody's
  RecentCache<Verdict> rights_;
  RecentCache<std::optional<kubernetes::FluxQueue>> queues_;
  RecentCache<std::optional<kubernetes::StringMap>> spaces_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point away_until_{};  // guarded by mutex_
};

}  // namespace fluxqueue::access
