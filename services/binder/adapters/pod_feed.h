// The pod watch: every pod that carries our label, into the inbox. Read and thinned out on the
// informer's own thread.
#pragma once

#include <string>

#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/informer.h"
#include "libs/lifecycle/component.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class PodFeed final : public lifecycle::Component {
 public:
  // References must outlive the feed.
  PodFeed(kubernetes::Cluster& cluster, Inbox& inbox, BinderMetrics& metrics)
      : cluster_(cluster), inbox_(inbox), metrics_(metrics) {}

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override { pods_.Stop(); }
  // OK: all pods are in view.
  absl::Status Ready() const override;

 private:
  const std::string name_ = "pod watch";
  kubernetes::Cluster& cluster_;
  Inbox& inbox_;
  BinderMetrics& metrics_;
  kubernetes::Informers pods_;
};

}  // namespace fluxqueue::binder
