// What the pod watch and the API workers have learnt, for the loop's thread. Of a pod the last
// state counts (kubernetes/informer.h); answers are bounded by the calls that wait or are under
// way, one for each slot and job (call_workers.h).
#pragma once

#include <cstddef>
#include <variant>

#include "libs/base/mailbox.h"
#include "libs/kubernetes/informer.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

using News = std::variant<kubernetes::Seen<PodFacts>,
                          kubernetes::Gone,
                          kubernetes::Unread,
                          kubernetes::Synced,  // the pod watch has told every pod there is
                          CallResult>;
using Inbox = Mailbox<News>;
// Of the text of what is seen; as values it takes about as much again.
inline constexpr size_t kMostInboxBytes = size_t{8} << 20;

}  // namespace fluxqueue::binder
