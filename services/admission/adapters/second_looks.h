// Looks at the API server for what a review took for absent, and decides again: watches are a
// moment late, users type fast. And for what no watch tells of: what is scaled, and what says of
// how many pods a group is, or of a pod's places.
//
// One look at a time, on a thread of its own, so that the webhook's threads never wait for the API
// server. What was absent is not looked up again for a second, nor is the size of a group for five;
// what is scaled, or has places, is, each time. Those that wait for the size of one group have one
// place. Few reviews wait, and only so long: well within the time that the API server gives a
// webhook. For what no watch tells of fewer, and of a namespace very few: they are many where
// somebody wants it so.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/kubernetes/cluster.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/domain/webhook.h"
#include "services/admission/metrics.h"

namespace fluxqueue::admission {

class SecondLooks {
 public:
  // With those of one source in libs/http: as many may wait, and others be answered meanwhile.
  static constexpr size_t kMostWaiting = 16;
  static constexpr size_t kMostUnwatched = 8;
  static constexpr size_t kMostUnwatchedInANamespace = 2;
  static constexpr Millis kPatience{1'000};
  static constexpr Millis kLookTimeout{1'500};
  static constexpr Millis kAbsentFor{1'000};
  static constexpr Millis kSizeFor{5'000};

  // All references must outlive it.
  SecondLooks(const FactsCache& facts,
              kubernetes::Cluster& cluster,
              const WebhookOptions& options,
              const Clock& clock,
              AdmissionMetrics& metrics);

  void Start();
  // Ends the look under way; drops those that wait.
  void Stop();

  // It was looked for a moment ago.
  bool IsKnownAbsent(const Absent& absent) const;
  // The size of its group was looked for a moment ago: it is in the review now.
  bool Recall(const Absent& absent, Review* review) const;

  // `then` is called on the thread of the looks, with what was decided in the light of them; null:
  // it has waited for too long. False: as many wait as may, and it is not called.
  bool Decide(Review review, Verdict first, std::function<void(const Verdict*)> then);

  // For metrics.
  const auto& mailbox() const { return waiting_; }

 private:
  struct Waiting {
    Review review;
    Verdict first;
    std::function<void(const Verdict*)> then;
    std::chrono::steady_clock::time_point since;
  };
  using Key = std::pair<Absent::Kind, std::string>;
  struct GroupSize {
    absl::StatusOr<uint32_t> size;
    std::chrono::steady_clock::time_point until;
  };

  // Of a review that waits for what no watch tells of. False: as many wait as may.
  bool TakePlace(const Absent& absent, const std::string& space);
  void GivePlaceBack(const Absent& absent, const std::string& space);
  void Run(const std::stop_token& stop);
  Verdict DecideAgain(Review review, Verdict verdict);
  // Adds what is absent to the facts; false: it is not there.
  bool LookUp(const Absent& absent, ClusterFacts* facts);
  template <typename Object>
  bool LookUp(const kubernetes::Resource& resource,
              const Absent& absent,
              absl::StatusOr<Object> (*parse)(std::string_view),
              ClusterFacts* facts);
  // JSON; empty: it is not there. Unset: it cannot be looked up.
  std::optional<std::string> TextOf(const kubernetes::Resource& resource,
                                    const Absent& absent,
                                    const std::string& space);
  bool LookUpScaled(const Absent& absent, Review* review);
  bool LookUpGroup(const Absent& absent, Review* review);
  bool LookUpPlaces(const Absent& absent, Review* review);
  void NoteAbsent(const Absent& absent);

  const FactsCache& facts_;
  kubernetes::Cluster& cluster_;
  const WebhookOptions options_;
  const Clock& clock_;
  AdmissionMetrics& metrics_;

  Mailbox<Waiting> waiting_{"second looks", kMostWaiting};  // each counts as 1
  mutable std::mutex mutex_;
  std::map<Key, std::chrono::steady_clock::time_point> absent_;  // until when; guarded by mutex_
  std::map<std::string, GroupSize> sizes_;  // by resource, namespace and name; guarded by mutex_
  std::map<std::string, size_t> awaited_;   // how many wait for a size; by key; guarded by mutex_
  std::multiset<std::string> unwatched_;    // namespaces of the places; guarded by mutex_
  std::jthread thread_;
};

}  // namespace fluxqueue::admission
