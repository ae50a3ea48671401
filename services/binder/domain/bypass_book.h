// The pods that run in managed namespaces and have not been through the queue: made while the
// webhook or the policies were away, or before the namespace was managed. Each is told of, and
// stopped where its namespace says fluxqueue.io/enforce: strict.
//
// It is told of pods that are bound, have not ended, are not held, and do not say that they are not
// for the queue (kubernetes::MayBypass).
//
// Pure; not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {

// What to do about a pod.
struct BypassStep {
  enum class Kind { kStop, kTell };
  Kind kind = Kind::kTell;
  std::string space;
  std::string name;
  std::string uid;
  // Of kTell: its namespace is strict.
  bool strict = false;

  friend bool operator==(const BypassStep&, const BypassStep&) = default;
};

class BypassBook {
 public:
  // A pod that was to be stopped and is still there is stopped again after this.
  static constexpr Millis kStopAgain{10'000};

  void Saw(const kubernetes::Namespace& space);
  void NamespaceGone(std::string_view name);
  // Of a pod that the selectors kBypass… let through.
  void Saw(const kubernetes::ObjectMeta& meta);
  void PodGone(const std::string& uid);

  // What is due at `now`, at most `most`; stops come first. Each pod is told of once.
  std::vector<BypassStep> TakeSteps(std::chrono::steady_clock::time_point now, size_t most);
  // Pods that run past the queue.
  size_t size() const;

 private:
  struct Pod {
    std::string name;
    bool going = false;
    bool told = false;
    std::chrono::steady_clock::time_point stop_at{};  // the epoch: never tried
  };
  struct Space {
    bool exists = false;  // else only pods of it are known
    bool managed = false;
    bool strict = false;
    std::map<std::string, Pod> pods{};  // by uid
  };

  std::map<std::string, Space, std::less<>> spaces_;
  std::unordered_map<std::string, std::string> space_of_;  // by the pod's uid
};

}  // namespace fluxqueue::binder
