// When pods were bound, as anybody sees it who watches the API server.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace fluxqueue::chaos {

// A bound pod, as kubectl shows it; nothing: it is not bound.
struct Bound {
  std::string pod{};
  std::string owner{};  // "" without one
};
std::optional<Bound> ParseBound(std::string_view line);

// The longest time between two of `times`, which are sorted, from `from` on, and from the last one
// to `to`.
std::chrono::milliseconds LongestPause(
    const std::vector<std::chrono::steady_clock::time_point>& times,
    std::chrono::steady_clock::time_point from,
    std::chrono::steady_clock::time_point to);

// Watches by kubectl, and again when the watch has ended. Thread-safe.
class Sightings {
 public:
  using Clock = std::chrono::steady_clock;

  Sightings(std::string kubeconfig, std::string in_namespace);
  ~Sightings();
  Sightings(const Sightings&) = delete;
  Sightings& operator=(const Sightings&) = delete;

  std::vector<Clock::time_point> bindings() const;
  // Of the last of these; the clock's beginning when there is none.
  Clock::time_point last() const;
  // Different pods of this owner that were seen bound.
  int PodsOf(const std::string& owner) const;

 private:
  void Run(const std::stop_token& stop);
  void Watch(const std::stop_token& stop);
  void See(std::string_view line);

  const std::string kubeconfig_;
  const std::string namespace_;
  mutable std::mutex mutex_;
  std::vector<Clock::time_point> bindings_;              // guarded by mutex_
  std::map<std::string, std::set<std::string>> owners_;  // guarded by mutex_; pods by owner
  std::jthread thread_;                                  // last: it uses all of the above
};

}  // namespace fluxqueue::chaos
