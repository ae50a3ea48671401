// Sees what runs past the queue of managed namespaces: counts it, writes an Event on each pod, and
// deletes those of strict namespaces (bypass_book.h decides). In each replica: an Event has the
// name of its pod, and a deletion names the uid, so that two do what one does.
//
// While the API server does not answer it knows less, and nothing else waits for it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <variant>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/informer.h"
#include "services/binder/domain/bypass_book.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class BypassGuard {
 public:
  // `instance` is named in Events. References must outlive the guard.
  BypassGuard(kubernetes::Client& client,
              BinderMetrics& metrics,
              const Clock& clock,
              std::string instance);

  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

 private:
  using News = std::variant<kubernetes::Seen<kubernetes::Namespace>,
                            kubernetes::Seen<kubernetes::ObjectMeta>,
                            kubernetes::Gone,
                            kubernetes::Synced>;

  kubernetes::Informers::List MakeInformers();
  void Learn(const News& news);
  void Do(const BypassStep& step);
  void Stop(const BypassStep& step);
  void Tell(const BypassStep& step);

  kubernetes::Client& client_;
  BinderMetrics& metrics_;
  const Clock& clock_;
  const std::string instance_;
  BypassBook book_;
  Mailbox<News> inbox_;
};

}  // namespace fluxqueue::binder
