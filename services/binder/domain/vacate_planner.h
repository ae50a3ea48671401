// How an elastic job gives slots back while it goes on (JobFact.vacate), so that nothing runs, or
// can still start, in them.
//
// Their bound pods are marked as disrupted and deleted, with the grace that the fact says; a pod
// whose slot is taken and that is not bound yet is fenced, and may be given another slot. The Job
// makes other pods in place of those that are deleted: they wait for slots as any others. Slots
// that are vacated are given to no pod again in this attempt.
//
// A job that was resized (JobFact.resized) has its controller delete what it has too many of: as
// many slots as it then has beyond its size, and that have no pod, are closed, and count as
// vacated.
//
// SlotsVacated is said of those that are done, as soon as they are.
#pragma once

#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/plan_context.h"

namespace fluxqueue::binder {

// REQUIRES: job->placed, and it is not stopping.
void PlanVacate(PlanContext& context, BindJob* job);

}  // namespace fluxqueue::binder
