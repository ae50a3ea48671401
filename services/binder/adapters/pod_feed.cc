#include "services/binder/adapters/pod_feed.h"

#include <memory>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {
namespace {

absl::StatusOr<std::optional<PodFacts>> ReadFacts(std::string_view json) {
  ASSIGN_OR_RETURN(const kubernetes::Pod pod, kubernetes::ParsePod(json));
  return ToFacts(pod);
}

// Most events of a bound pod are its kubelet's reports, which change nothing here; each would cost
// a batch. Before it is bound every resourceVersion counts: the Binding names it.
std::optional<uint64_t> DigestOf(const PodFacts& pod) {
  if (!pod.Bound()) return std::nullopt;
  return static_cast<uint64_t>(pod.phase) * 2 + (pod.deleting ? 1 : 0);
}

}  // namespace

absl::Status PodFeed::Start() {
  kubernetes::InformerOptions options{.watch = {.resource = kubernetes::kPods},
                                      .unread = [this] { metrics_.UnreadableObject(); }};
  options.watch.selector.labels = kubernetes::kHeldLabel;
  kubernetes::Informers::List pods;
  pods.push_back(std::make_unique<kubernetes::Informer<PodFacts>>(
      cluster_,
      std::move(options),
      kubernetes::Reader<PodFacts>{.parse = ReadFacts, .digest = DigestOf},
      inbox_));
  pods_.Start(std::move(pods));
  return absl::OkStatus();
}

absl::Status PodFeed::Ready() const {
  return pods_.empty() ? Unavailable("not started") : pods_.Ready();
}

}  // namespace fluxqueue::binder
