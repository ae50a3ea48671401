// Which pod takes which slot, and what is asked of the API server to start it: one job in
// Allocated, Bound or Running. Looks at the whole job each time (level-triggered), so it does not
// matter in which order facts, pods and answers came.
#pragma once

#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/plan_context.h"

namespace fluxqueue::binder {

// REQUIRES: job->placed and !job->stopping.
void PlanStart(PlanContext& context, BindJob* job);

}  // namespace fluxqueue::binder
