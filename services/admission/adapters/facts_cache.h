// ClusterFacts kept in step by watches of namespaces, FluxQueues, FluxWindows, LimitRanges,
// RuntimeClasses and PriorityClasses. Every replica has one: each answers webhook calls.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/informer.h"
#include "libs/lifecycle/component.h"
#include "services/admission/domain/cluster_facts.h"
#include "services/admission/metrics.h"

#include "absl/status/statusor.h"

namespace fluxqueue::admission {

class FactsCache final : public lifecycle::Component {
 public:
  // `changed` is called after FluxQueues or FluxWindows changed, and when the cache has become
  // synced; from the watches' threads, it must not block. All must outlive the cache.
  FactsCache(kubernetes::Cluster& cluster,
             AdmissionMetrics& metrics,
             std::function<void()> changed);
  ~FactsCache() override { Stop(); }

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override { informers_.Stop(); }
  // OK while every watch stands, and has told its first list.
  absl::Status Ready() const override { return informers_.Ready(); }

  // Everything has been listed once: absence means something. Stays true.
  bool synced() const { return lists_ == kResources; }

  void SetUsage(UsageBySpace usage) {
    const std::unique_lock lock(mutex_);
    facts_.SetUsage(std::move(usage));
  }

  // `read` must not keep references, nor block for long: changes wait meanwhile.
  template <typename Read>
  auto With(Read read) const {
    const std::shared_lock lock(mutex_);
    return read(static_cast<const ClusterFacts&>(facts_));
  }

 private:
  // An informer whose objects go into the facts; `remove` takes one out.
  template <typename Object>
  std::unique_ptr<kubernetes::InformerBase> Watch(const kubernetes::Resource& resource,
                                                  absl::StatusOr<Object> (*parse)(std::string_view),
                                                  void (*remove)(ClusterFacts& facts,
                                                                 const kubernetes::Gone& gone));

  static constexpr int kResources = 6;

  const std::string name_ = "cluster facts";
  kubernetes::Cluster& cluster_;
  AdmissionMetrics& metrics_;
  const std::function<void()> changed_;

  mutable std::shared_mutex mutex_;
  ClusterFacts facts_;

  std::atomic<int> lists_{0};        // watches whose first list has been told
  kubernetes::Informers informers_;  // last: they use all of the above
};

}  // namespace fluxqueue::admission
