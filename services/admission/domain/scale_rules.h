// Who may have more pods made of an object of the table of kinds, by its subresource `scale` or an
// autoscaler of it: not in the name of another, who made the object, and not of what goes past the
// queue. Pure, thread-safe.
//
// The API server asks about those alone who want more, and have no right to it (k8s/webhook.yaml,
// scale.fluxqueue.io). What is asked about has no template, so the first verdict names what is
// scaled (Absent::Kind::kScaled); with it, as Review::scaled, comes the second.
#pragma once

#include "services/admission/domain/review.h"

namespace fluxqueue::admission {

// It scales something, or is an autoscaler.
bool IsScale(const Review& review);

// REQUIRES: IsScale(review).
Verdict DecideScale(const Review& review);

}  // namespace fluxqueue::admission
