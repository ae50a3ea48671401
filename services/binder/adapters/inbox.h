// What the pod watch and the API workers have learnt, for the loop's thread. Of a pod the last
// state counts (under its uid); answers are bounded by the calls under way.
#pragma once

#include <string>
#include <variant>

#include "libs/base/mailbox.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

struct PodWasGone {
  std::string uid;
};
// The pod watch has told every pod there is.
struct PodsWereListed {};

using News = std::variant<PodFacts, PodWasGone, PodsWereListed, CallResult>;
using Inbox = Mailbox<News>;

}  // namespace fluxqueue::binder
