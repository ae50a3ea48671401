// Sees what runs past the queue of managed namespaces: counts it, writes an Event on each pod, and
// deletes those of strict namespaces (bypass_book.h decides). In each replica: an Event has the
// name of its pod, and a deletion names the uid, so that two do what one does.
//
// A pod whose metadata could never be read may be anybody's, and counts as one that bypasses; one
// that was read before stays as it was. What throws while an object is learnt is caught: the object
// is left out until it changes, told of in an Event and counted, and the others go on.
//
// What waits in a namespace that has become managed it lists once, and names in Events
// (unqueued.h).
//
// While the API server does not answer it knows less, and nothing else waits for it.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/delivery/quarantine.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/event.h"
#include "libs/kubernetes/informer.h"
#include "services/binder/domain/bypass_book.h"
#include "services/binder/domain/unqueued.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::binder {

class BypassGuard {
 public:
  // `instance` is named in Events; `tell` takes what is left out. References must outlive the
  // guard.
  BypassGuard(kubernetes::Cluster& cluster,
              BinderMetrics& metrics,
              const Clock& clock,
              std::string instance,
              std::function<void(const delivery::QuarantineRow&)> tell);

  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

  using News = std::variant<kubernetes::Seen<kubernetes::Namespace>,
                            kubernetes::Seen<kubernetes::ObjectMeta>,
                            kubernetes::Gone,
                            kubernetes::Unread,
                            kubernetes::Synced>;
  // For metrics.
  const Mailbox<News>& mailbox() const { return inbox_; }

 private:
  kubernetes::Informers::List MakeInformers();
  void Learn(const News& news);
  void LearnUnread(const kubernetes::Unread& unread);
  void LeaveOut(const News& news, const std::string& why);
  void Do(const BypassStep& step);
  void Check(const kubernetes::OwnerClaim& claim);
  void Stop(const BypassStep& step);
  void Tell(const BypassStep& step);
  // What waits there, in Events.
  void Look(const std::string& space);
  absl::StatusOr<std::vector<Unqueued>> Waiting(const std::string& space);
  void WriteEvent(const kubernetes::Event& event);

  kubernetes::Cluster& cluster_;
  BinderMetrics& metrics_;
  const Clock& clock_;
  const std::string instance_;
  const std::function<void(const delivery::QuarantineRow&)> tell_;
  BypassBook book_;
  static constexpr size_t kMostInboxBytes = size_t{8} << 20;

  Mailbox<News> inbox_{"bypass", kMostInboxBytes};
};

}  // namespace fluxqueue::binder
