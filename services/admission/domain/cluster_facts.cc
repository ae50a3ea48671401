#include "services/admission/domain/cluster_facts.h"

#include <utility>

namespace fluxqueue::admission {
namespace {

template <typename T>
bool Erase(ClusterFacts::ByName<T>& map, std::string_view name) {
  const auto found = map.find(name);
  if (found == map.end()) return false;
  map.erase(found);
  return true;
}

template <typename T>
const T* Find(const ClusterFacts::ByName<T>& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

void ClusterFacts::Upsert(kubernetes::Namespace space) {
  std::string name = space.name;
  namespaces_.insert_or_assign(std::move(name), std::move(space));
}

void ClusterFacts::Upsert(kubernetes::FluxQueue queue) {
  std::string name = queue.meta.name;
  queues_.insert_or_assign(std::move(name), std::move(queue));
  ++catalog_version_;
}

void ClusterFacts::Upsert(kubernetes::FluxWindow window) {
  std::string name = window.meta.name;
  windows_.insert_or_assign(std::move(name), std::move(window));
  ++catalog_version_;
}

void ClusterFacts::Upsert(kubernetes::LimitRange range) {
  const std::string space = range.meta.namespace_name;
  std::string name = range.meta.name;
  limit_ranges_[space].insert_or_assign(std::move(name), std::move(range));
  RebuildContext(space);
}

void ClusterFacts::Upsert(kubernetes::RuntimeClass runtime_class) {
  std::string name = runtime_class.name;
  runtime_classes_.insert_or_assign(std::move(name), std::move(runtime_class));
  RebuildContexts();
}

void ClusterFacts::Upsert(kubernetes::PriorityClass priority_class) {
  std::string name = priority_class.name;
  priority_classes_.insert_or_assign(std::move(name), std::move(priority_class));
  RebuildContexts();
}

void ClusterFacts::RemoveNamespace(std::string_view name) {
  Erase(namespaces_, name);
}

void ClusterFacts::RemoveQueue(std::string_view name) {
  if (Erase(queues_, name)) ++catalog_version_;
}

void ClusterFacts::RemoveWindow(std::string_view name) {
  if (Erase(windows_, name)) ++catalog_version_;
}

void ClusterFacts::RemoveLimitRange(std::string_view space, std::string_view name) {
  const auto ranges = limit_ranges_.find(space);
  if (ranges == limit_ranges_.end() || !Erase(ranges->second, name)) return;
  const std::string owner = ranges->first;
  if (ranges->second.empty()) limit_ranges_.erase(ranges);
  RebuildContext(owner);
}

void ClusterFacts::RemoveRuntimeClass(std::string_view name) {
  if (Erase(runtime_classes_, name)) RebuildContexts();
}

void ClusterFacts::RemovePriorityClass(std::string_view name) {
  if (Erase(priority_classes_, name)) RebuildContexts();
}

const kubernetes::Namespace* ClusterFacts::FindNamespace(std::string_view name) const {
  return Find(namespaces_, name);
}

const kubernetes::FluxQueue* ClusterFacts::FindQueue(std::string_view name) const {
  return Find(queues_, name);
}

const kubernetes::TemplateContext& ClusterFacts::ContextOf(std::string_view space) const {
  const auto* own = Find(contexts_, space);
  return own == nullptr ? classes_ : *own;
}

ClusterFacts ClusterFacts::For(std::string_view space) const {
  ClusterFacts part;
  if (const auto* known = FindNamespace(space)) part.Upsert(*known);
  part.queues_ = queues_;
  for (auto it = usage_.lower_bound({std::string(space), ""});
       it != usage_.end() && it->first.first == space;
       ++it) {
    part.usage_.insert(*it);
  }
  part.runtime_classes_ = runtime_classes_;
  part.priority_classes_ = priority_classes_;
  const auto ranges = limit_ranges_.find(space);
  if (ranges != limit_ranges_.end()) part.limit_ranges_.insert(*ranges);
  part.RebuildContexts();
  return part;
}

void ClusterFacts::RebuildContexts() {
  classes_ = {};
  for (const auto& [name, runtime_class] : runtime_classes_) classes_.Add(runtime_class);
  for (const auto& [name, priority_class] : priority_classes_) classes_.Add(priority_class);
  contexts_.clear();
  for (const auto& [space, ranges] : limit_ranges_) RebuildContext(space);
}

void ClusterFacts::RebuildContext(const std::string& space) {
  const auto ranges = limit_ranges_.find(space);
  if (ranges == limit_ranges_.end()) {
    contexts_.erase(space);
    return;
  }
  kubernetes::TemplateContext context = classes_;
  for (const auto& [name, range] : ranges->second) context.Add(range);
  contexts_.insert_or_assign(space, std::move(context));
}

}  // namespace fluxqueue::admission
