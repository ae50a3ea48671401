// Places of pods for those that they make once they run (libs/kubernetes/places.h): what is
// recorded on both. Pure.
#pragma once

#include <optional>
#include <string>

#include "libs/kubernetes/views.h"
#include "services/admission/domain/review.h"

namespace fluxqueue::admission {

struct Placing {
  std::string places;             // the record of those that it has; empty: none
  std::string place_of;           // the pod of whose places it takes one; empty: it takes none
  std::optional<Verdict> answer;  // a look at what says of either
};

// Of a pod that is made. `look`: what says which places it has; unset: it has none.
//
// It takes a place of the pod that is its controller where that one makes it itself, it asks for no
// more than a place has and for no higher priority, and may run on the same nodes. Else it is a job
// of its own.
Placing PlacingOf(const Review& review,
                  const kubernetes::Pod& pod,
                  const std::optional<Absent>& look);

}  // namespace fluxqueue::admission
