// A job that has started, and is of another size now: it goes on.
//
// A job of all or nothing becomes elastic for the rest of the attempt, between the smaller of both
// sizes and the new one: it grows behind the line (elastic.h), and the binder gives back
// (SlotsVacated) what it has beyond its size once no pods are in it. The next attempt is all or
// nothing again.
#pragma once

#include <cstdint>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/job.h"

namespace fluxqueue::queue_core {

// Null: it has none, or none that is not known.
const events::v1::PartSpec* NewSpec(const events::v1::JobUpdated& updated, const Job& job);

// It has started, is of all or nothing, and need not be placed again.
bool GoesOn(const events::v1::JobUpdated& updated, const Job& job);

// REQUIRES: the update has a new spec for the job.
void TakeSize(const events::v1::JobUpdated& updated, Job* job);

// Those that it was to give back, and of a resized one whatever the binder has closed; rising.
std::vector<uint32_t> NewlyVacated(const Job& job, const events::v1::SlotsVacated& vacated);

// To `vacated_slots`, where they are not among them.
void AddVacated(const std::vector<uint32_t>& slots, Job* job);

}  // namespace fluxqueue::queue_core
