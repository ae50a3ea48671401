// From nodes to the inventory. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::kubernetes {

// The node as an event; `foreign` is what bound, unfinished pods use that hold no live slot of
// ours. Lists are sorted by name, so equal nodes have equal bytes. Resources of amount 0 are left
// out.
events::v1::Node ToEvent(const Node& node, const Amounts& foreign);

// The node without its resource version, serialized: where it is equal, what came was a heartbeat
// and no news.
std::string InventoryOf(events::v1::Node node);

// Why no pod with these tolerations is to be started on it: it is cordoned, or has a taint
// (NoSchedule, NoExecute) that they do not tolerate. Unset: it is open to them.
std::optional<std::string> WhyClosed(const Node& node, const std::vector<Toleration>& tolerations);

// Label fluxqueue.io/pool, else "default".
std::string PoolOf(const Node& node);

Amounts ToAmounts(const google::protobuf::RepeatedPtrField<events::v1::Amount>& list);

}  // namespace fluxqueue::kubernetes
