// What admission knows of the cluster when it judges an object: namespaces, FluxQueues, and what
// the API server will complete pod templates with; and FluxWindows. Filled by watches
// (adapters/facts_cache.h).
//
// Pure. Not thread-safe; const methods may run side by side.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/views.h"
#include "services/admission/domain/usage.h"

namespace fluxqueue::admission {

class ClusterFacts {
 public:
  template <typename T>
  using ByName = std::map<std::string, T, std::less<>>;

  // Each replaces what was known under its name.
  void Upsert(kubernetes::Namespace space);
  void Upsert(kubernetes::FluxQueue queue);
  void Upsert(kubernetes::FluxWindow window);
  void Upsert(kubernetes::LimitRange range);
  void Upsert(kubernetes::RuntimeClass runtime_class);
  void Upsert(kubernetes::PriorityClass priority_class);

  void SetUsage(UsageBySpace usage) { usage_ = std::move(usage); }

  // Unknown names are no error.
  void RemoveNamespace(std::string_view name);
  void RemoveQueue(std::string_view name);
  void RemoveWindow(std::string_view name);
  void RemoveLimitRange(std::string_view space, std::string_view name);
  void RemoveRuntimeClass(std::string_view name);
  void RemovePriorityClass(std::string_view name);

  // Null if there is none.
  const kubernetes::Namespace* FindNamespace(std::string_view name) const;
  const kubernetes::FluxQueue* FindQueue(std::string_view name) const;
  const ByName<kubernetes::FluxQueue>& queues() const { return queues_; }
  const ByName<kubernetes::FluxWindow>& windows() const { return windows_; }
  // Of what is in the queues, as of a moment ago.
  const UsageBySpace& usage() const { return usage_; }
  // Rises with each change of a FluxQueue or FluxWindow.
  uint64_t catalog_version() const { return catalog_version_; }

  // What an object in this namespace is judged by, without what concerns other namespaces alone.
  ClusterFacts For(std::string_view space) const;

  // What a template in this namespace is completed with. Valid until the next change.
  const kubernetes::TemplateContext& ContextOf(std::string_view space) const;

 private:
  void RebuildContexts();
  void RebuildContext(const std::string& space);

  ByName<kubernetes::Namespace> namespaces_;
  ByName<kubernetes::FluxQueue> queues_;
  ByName<kubernetes::FluxWindow> windows_;
  UsageBySpace usage_;
  uint64_t catalog_version_ = 0;
  ByName<kubernetes::RuntimeClass> runtime_classes_;
  ByName<kubernetes::PriorityClass> priority_classes_;
  ByName<ByName<kubernetes::LimitRange>> limit_ranges_;  // namespace → name

  kubernetes::TemplateContext classes_;           // of namespaces without a LimitRange
  ByName<kubernetes::TemplateContext> contexts_;  // of those with one
};

}  // namespace fluxqueue::admission
