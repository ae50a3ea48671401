// The pod watch: every pod that carries our label, into the inbox. Read and thinned out on the
// watcher's own thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/watch.h"
#include "libs/lifecycle/component.h"
#include "services/binder/adapters/inbox.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class PodFeed final : public lifecycle::Component {
 public:
  // References must outlive the feed.
  PodFeed(kubernetes::Client& client, Inbox& inbox) : client_(client), inbox_(inbox) {}

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override;
  // OK: all pods are in view.
  absl::Status Ready() const override;

 private:
  struct Told {
    PodFacts::Phase phase;
    bool deleting;
    friend bool operator==(const Told&, const Told&) = default;
  };

  void OnEvent(const kubernetes::WatchEvent& event);
  // Most events of a bound pod are its kubelet's reports, which change nothing here; each would
  // cost a batch. Before it is bound every resourceVersion counts: the Binding names it.
  bool IsNews(const PodFacts& pod);

  const std::string name_ = "pod watch";
  kubernetes::Client& client_;
  Inbox& inbox_;
  std::unordered_map<std::string, Told> told_;  // of bound pods; the watcher's thread
  mutable std::mutex mutex_;
  std::unique_ptr<kubernetes::Watcher> watcher_;  // guarded by mutex_
};

}  // namespace fluxqueue::binder
