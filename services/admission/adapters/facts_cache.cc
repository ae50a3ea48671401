#include "services/admission/adapters/facts_cache.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace fluxqueue::admission {

using kubernetes::Gone;

FactsCache::FactsCache(kubernetes::Cluster& cluster,
                       AdmissionMetrics& metrics,
                       std::function<void()> changed)
    : cluster_(cluster), metrics_(metrics), changed_(std::move(changed)) {}

template <typename Object>
std::unique_ptr<kubernetes::InformerBase> FactsCache::Watch(
    const kubernetes::Resource& resource,
    absl::StatusOr<Object> (*parse)(std::string_view),
    void (*remove)(ClusterFacts& facts, const Gone& gone)) {
  constexpr bool kInCatalog = std::is_same_v<Object, kubernetes::FluxQueue> ||
                              std::is_same_v<Object, kubernetes::FluxWindow>;
  const auto apply = [this, remove](kubernetes::Change<Object> change) {
    if (std::holds_alternative<kubernetes::Synced>(change)) {
      ++lists_;
      return changed_();
    }
    if (auto* seen = std::get_if<kubernetes::Seen<Object>>(&change)) {
      const std::unique_lock lock(mutex_);
      facts_.Upsert(std::move(seen->object));
    } else if (const auto* gone = std::get_if<Gone>(&change)) {
      const std::unique_lock lock(mutex_);
      remove(facts_, *gone);
    }
    if (kInCatalog) changed_();
  };
  return std::make_unique<kubernetes::Informer<Object>>(
      cluster_,
      kubernetes::InformerOptions{.watch = {.resource = resource},
                                  .unread = [this] { metrics_.UnreadableObject(); }},
      kubernetes::Reader<Object>{.parse = parse},
      apply);
}

absl::Status FactsCache::Start() {
  kubernetes::Informers::List list;
  list.push_back(
      Watch(kubernetes::kNamespaces,
            kubernetes::ParseNamespace,
            [](ClusterFacts& facts, const Gone& gone) { facts.RemoveNamespace(gone.name); }));
  list.push_back(
      Watch(kubernetes::kFluxQueues,
            kubernetes::ParseFluxQueue,
            [](ClusterFacts& facts, const Gone& gone) { facts.RemoveQueue(gone.name); }));
  list.push_back(
      Watch(kubernetes::kFluxWindows,
            kubernetes::ParseFluxWindow,
            [](ClusterFacts& facts, const Gone& gone) { facts.RemoveWindow(gone.name); }));
  list.push_back(Watch(kubernetes::kLimitRanges,
                       kubernetes::ParseLimitRange,
                       [](ClusterFacts& facts, const Gone& gone) {
                         facts.RemoveLimitRange(gone.space, gone.name);
                       }));
  list.push_back(
      Watch(kubernetes::kRuntimeClasses,
            kubernetes::ParseRuntimeClass,
            [](ClusterFacts& facts, const Gone& gone) { facts.RemoveRuntimeClass(gone.name); }));
  list.push_back(
      Watch(kubernetes::kPriorityClasses,
            kubernetes::ParsePriorityClass,
            [](ClusterFacts& facts, const Gone& gone) { facts.RemovePriorityClass(gone.name); }));
  informers_.Start(std::move(list));
  return absl::OkStatus();
}

}  // namespace fluxqueue::admission
