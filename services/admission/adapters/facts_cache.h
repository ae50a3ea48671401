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
#include <utility>
#include <vector>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/watch.h"
#include "libs/lifecycle/component.h"
#include "services/admission/domain/cluster_facts.h"

#include "absl/status/statusor.h"

namespace fluxqueue::admission {

class FactsCache final : public lifecycle::Component {
 public:
  // `changed` is called after FluxQueues or FluxWindows changed, and when the cache has become
  // synced; from the watches' threads, it must not block. The client must outlive the cache.
  FactsCache(kubernetes::Client& client, std::function<void()> changed);
  ~FactsCache() override;

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override;
  // OK while every watch stands.
  absl::Status Ready() const override;

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
  void Watch(const kubernetes::Resource& resource,
             std::function<void(const kubernetes::WatchEvent&)> apply);
  template <typename Object>
  void Upsert(absl::StatusOr<Object> object);

  static constexpr int kResources = 6;

  const std::string name_ = "cluster facts";
  kubernetes::Client& client_;
  const std::function<void()> changed_;

  mutable std::shared_mutex mutex_;
  ClusterFacts facts_;

  std::atomic<int> lists_{0};  // watches whose first list has been told

  struct NamedWatcher {
    std::string resource;
    std::unique_ptr<kubernetes::Watcher> watcher;
  };
  mutable std::mutex watchers_mutex_;
  std::vector<NamedWatcher> watchers_;
};

}  // namespace fluxqueue::admission
