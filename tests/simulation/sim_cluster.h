// The cluster's API in memory, as it may be at its worst: it answers late, not at all, or refuses;
// what it does not answer it may have done, or do later; watches lag, each by itself, break, and
// expire; it vanishes. Controllers and kubelets (cluster_standins.h) change it directly.
//
// Objects are JSON with uid and resourceVersion. Of pods, Jobs and nodes only what the services
// ask for is simulated; a selector can only be that of what we hold.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/kubernetes/cluster.h"
#include "tests/simulation/scheduler.h"

namespace fluxqueue::simulation {

using nlohmann::json;

class SimCluster {
 public:
  struct Faults {
    TimePoint away_until{};
    uint64_t refuse_one_in = 0;  // of calls
    uint64_t unsaid_one_in = 0;  // of calls: they are done, and it does not say so
    uint64_t late_one_in = 0;    // of calls: they are not answered, and done some time later
    Millis slowest{20};          // half a call
    Millis latest{15'000};       // when a late call is done
    Millis slowest_event{30};    // in a watch, each behind the one before
    bool no_versions = false;    // safeties that are taken out: resourceVersion as a precondition,
    bool no_uids = false;        // and uid
  };
  // With what is asked for often; of what it has not, it is empty.
  struct Object {
    explicit Object(json of);

    json body;
    std::string text;
    std::string space;  // namespace
    std::string name;
    std::string uid;
    std::string owner;  // its controller's uid
    std::string node;   // it is bound to
    std::string phase;
    bool going = false;

    bool Finished() const { return phase == "Succeeded" || phase == "Failed"; }
  };
  using Stored = std::shared_ptr<const Object>;
  using Key = std::tuple<std::string, std::string, std::string>;  // plural, namespace, name
  struct Change {
    uint64_t version = 0;
    const char* type = "";  // ADDED, MODIFIED, DELETED
    std::string plural{};
    Stored object{};
  };
  // Null: it was not there, or is not any more.
  using Written =
      std::function<void(const std::string& plural, const Object* before, const Object* after)>;

  using Strayed = std::function<void(const std::string& uid, const Object& object)>;

  explicit SimCluster(Scheduler& scheduler) : scheduler_(scheduler) {}

  // As the process reaches it.
  std::unique_ptr<kubernetes::Cluster> For(Owner& owner);

  Scheduler& scheduler() { return scheduler_; }
  Faults& faults() { return faults_; }
  bool away() const { return faults_.away_until > scheduler_.now(); }
  // All watches break. `expire`: none can go on from where it was.
  void CutWatches(bool expire);
  // When the last Binding that was done had been sent.
  TimePoint binding_sent() const { return binding_sent_; }
  // When a call last saw the node of this uid; unset: none has.
  std::optional<TimePoint> NodeSeen(const std::string& uid) const;
  // As when a backup is restored that lacks the last changes, as the documentation says: objects
  // have the versions that they had, later ones are far higher, and no watch can go on.
  void GoBack(size_t changes);
  // Called with each change.
  void OnWrite(Written written) { written_ = std::move(written); }
  // Called when a call that names another uid is done to an object all the same.
  void OnStray(Strayed strayed) { strayed_ = std::move(strayed); }

  // ---- at once, and without a fault: for stand-ins and checks

  // Null: there is none. What is found stays as it is, whatever is written meanwhile.
  Stored Find(const kubernetes::Resource& resource,
              std::string_view space,
              std::string_view name) const;
  std::vector<Stored> All(const kubernetes::Resource& resource) const;
  // In the place of what has its name, if anything; uid and version are given to it.
  void Put(const kubernetes::Resource& resource, json body);
  void Remove(const kubernetes::Resource& resource, std::string_view space, std::string_view name);

  // ---- what calls do, at the moment when they do it

  absl::StatusOr<std::string> Get(const kubernetes::Resource& resource,
                                  const std::string& space,
                                  const std::string& name);
  absl::StatusOr<std::string> Patch(const kubernetes::Resource& resource,
                                    const std::string& space,
                                    const std::string& name,
                                    const std::string& body);
  absl::Status Delete(const kubernetes::Resource& resource,
                      const std::string& space,
                      const std::string& name,
                      const kubernetes::Preconditions& preconditions);
  // `sent`: when the call was made.
  absl::Status Bind(const kubernetes::Binding& binding, TimePoint sent);

  // ---- of watches

  uint64_t version() const { return version_; }
  uint64_t expired() const { return expired_; }
  uint64_t cuts() const { return cuts_; }
  // How often it went back: no call outlives that.
  uint64_t backups() const { return backups_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  static Key KeyOf(const kubernetes::Resource& resource,
                   std::string_view space,
                   std::string_view name);
  // Aborted: one does not hold.
  absl::Status Check(const Object& object,
                     const std::string& uid,
                     const std::string& version) const;
  void Store(const Key& key, json body);

  Scheduler& scheduler_;
  Faults faults_;
  Written written_;
  Strayed strayed_;
  std::map<Key, Stored> objects_;
  std::vector<Change> changes_;
  uint64_t version_ = 100;
  uint64_t expired_ = 0;  // no watch begins before it
  uint64_t cuts_ = 0;
  uint64_t backups_ = 0;
  uint64_t uids_ = 0;
  TimePoint binding_sent_{};
  std::map<std::string, TimePoint> nodes_seen_;  // by uid
};

// The string at that JSON pointer; empty: there is none.
std::string TextAt(const json& object, const char* pointer);

}  // namespace fluxqueue::simulation
