// Which of the resources that fit are taken: Fluxion's ten policies and its custom form,
// and one of our own, `packed`; `packed-3` and `packed-4` are
// those of logs of rules up to 3, and up to 5 (libs/model/rules.h).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

struct MatchPolicy {
  enum class Order {
    kHigh,       // greatest score first, and a score grows with the id
    kLow,        // least score first
    kLocality,   // at the top, runs of adjacent scores together, the highest run first
    kVariation,  // least `perf_class` first
    kPacked,     // what leaves most gpus of use to others (packing.h)
  };

  Order order = Order::kHigh;
  // A node's id weighs more than the ids below it.
  bool node_centric = false;
  // Every node that is used is held with all that it contains.
  bool node_exclusive = false;
  // Take what is found first, in the order of what was free when a child was last used.
  bool stop_on_first = false;
  // Of kPacked: nodes are kept for slots that not every node can take (set_aside.h).
  enum class SetsAside {
    kNothing,
    kExpected,    // as many as such slots are expected to need
    kUnexpected,  // and a part of the cluster at least
  };
  SetsAside sets_aside = SetsAside::kNothing;

  // Least score first, and of two the one with the lesser id.
  bool TakesLeast() const { return order == Order::kLow || order == Order::kPacked; }

  // A name ("first", "lonodex" …) or settings ("policy=low node_centric=true"). InvalidArgument
  // names what is allowed.
  static absl::StatusOr<MatchPolicy> Parse(std::string_view text);
};

}  // namespace fluxqueue::graph
