// The pods that run in managed namespaces and have not been through the queue: made while the
// webhook or the policies were away, or before the namespace was managed. Each is told of, and
// stopped where its namespace says fluxqueue.io/enforce: strict.
//
// It is told of pods that are bound, have not ended, are not held, and do not say that they are not
// for the queue (kBypassLabels). One that says that a DaemonSet or a kubelet has made it is left
// alone once somebody has looked whether there is such a DaemonSet or node; until then nothing is
// done about it, and afterwards it is as any other if there is none.
//
// What waits in a namespace when it becomes managed is looked for once, a little later
// (unqueued.h): no watch tells of it.
//
// Pure; not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {

// What to do about a pod.
struct BypassStep {
  enum class Kind { kCheck, kStop, kTell, kLook };
  Kind kind = Kind::kTell;
  std::string space{};
  std::string name{};
  std::string uid{};
  // Of kTell: its namespace is strict.
  bool strict = false;
  // Of kLook only `space` is set: what waits there?
  // Of kCheck: is there such an owner? The rest is not set.
  kubernetes::OwnerClaim claim{};

  friend bool operator==(const BypassStep&, const BypassStep&) = default;
};

class BypassBook {
 public:
  // A pod that was to be stopped and is still there is stopped again after this.
  static constexpr Millis kStopAgain{10'000};
  // What was to be looked at, and was not answered, is asked again after this.
  static constexpr Millis kCheckAgain{30'000};
  // So long after a namespace was seen to be managed: every API server knows it by then, and what
  // kube-scheduler could place is bound.
  static constexpr Millis kSettle{3'000};

  void Saw(const kubernetes::Namespace& space);
  void NamespaceGone(std::string_view name);
  // Of a pod that the selectors kBypass… let through.
  void Saw(const kubernetes::ObjectMeta& meta);
  void PodGone(const std::string& uid);
  bool Knows(const std::string& uid) const { return space_of_.contains(uid); }
  // What a kCheck has found. No uid comes twice: it stays so for as long as a pod says it.
  void Checked(const kubernetes::OwnerClaim& claim, bool exists);
  // A kLook was not answered: it comes again after kCheckAgain.
  void LookFailed(std::string_view space, std::chrono::steady_clock::time_point now);

  // What is due at `now`, at most `most`; what is to be looked at comes first, then stops. Each pod
  // is told of once, each owner looked at once, each namespace whenever it becomes managed.
  std::vector<BypassStep> TakeSteps(std::chrono::steady_clock::time_point now, size_t most);
  // Pods that run past the queue.
  size_t size() const;

 private:
  struct Pod {
    std::string name;
    bool going = false;
    bool told = false;
    std::optional<kubernetes::OwnerClaim> claim{};
    std::chrono::steady_clock::time_point stop_at{};  // the epoch: never tried
  };
  struct Owner {
    size_t pods = 0;  // that name it
    std::optional<bool> exists{};
    std::chrono::steady_clock::time_point check_at{};
  };
  struct Space {
    bool exists = false;  // else only pods of it are known
    bool managed = false;
    bool strict = false;
    bool looked = false;
    std::chrono::steady_clock::time_point look_at{};  // the epoch: not known yet
    std::map<std::string, Pod> pods{};                // by uid
  };

  using Time = std::chrono::steady_clock::time_point;

  void Claim(Pod* pod, std::optional<kubernetes::OwnerClaim> claim);
  bool Bypasses(const Pod& pod) const;
  // Each adds to `steps` what is due, up to `most` in all.
  void TakeChecks(Time now, size_t most, std::vector<BypassStep>* steps);
  void TakeStops(Time now, size_t most, std::vector<BypassStep>* steps);
  void TakeTellings(size_t most, std::vector<BypassStep>* steps);
  void TakeLooks(Time now, size_t most, std::vector<BypassStep>* steps);

  std::map<std::string, Space, std::less<>> spaces_;
  std::map<kubernetes::OwnerClaim, Owner> owners_;         // that pods name
  std::unordered_map<std::string, std::string> space_of_;  // by the pod's uid
};

}  // namespace fluxqueue::binder
