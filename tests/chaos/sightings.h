// Which pods were bound, as anybody sees it who watches the API server.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

namespace fluxqueue::chaos {

// A bound pod of an owner.
struct Bound {
  std::string pod{};
  std::string owner{};
};
// As kubectl shows it; nothing: it is not bound, or has no owner.
std::optional<Bound> ParseBound(std::string_view line);

// Watches by kubectl, and again when the watch has ended. Thread-safe.
class Sightings {
 public:
  Sightings(std::string kubeconfig, std::string in_namespace);
  ~Sightings();
  Sightings(const Sightings&) = delete;
  Sightings& operator=(const Sightings&) = delete;

  // Different pods of this owner that were seen bound.
  int PodsOf(const std::string& owner) const;

 private:
  void Run(const std::stop_token& stop);
  void Watch(const std::stop_token& stop);
  void See(std::string_view line);

  const std::string kubeconfig_;
  const std::string namespace_;
  mutable std::mutex mutex_;
  std::map<std::string, std::set<std::string>> owners_;  // guarded by mutex_; pods by owner
  std::jthread thread_;                                  // last: it uses all of the above
};

}  // namespace fluxqueue::chaos
