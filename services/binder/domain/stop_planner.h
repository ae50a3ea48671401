// How a job is stopped, so that afterwards nothing of the attempt runs or can still start.
//
//   a Job without another controller   suspended, with our annotation; its controller removes the
//                                      pods
//   any other                          its bound pods are deleted with their grace
//
// A pod whose slot is taken and that is not bound is fenced first: its resourceVersion rises, so
// that a Binding planned before fails, whoever sends it; pods without a slot need nothing.
//
// A Job that cannot be suspended keeps no slots: when the API server has refused it often enough
// (Retry::kMostRefusals), its pods are deleted as those of any other; also when they have not been
// told to go for PlanOptions::kill_wait, as somebody resumes the Job each time. What its controller
// makes then is held, and waits. A pod that cannot be fenced is deleted, too.
//
// A pod that is still there PlanOptions::kill_wait after the stop, or after we have deleted it, is
// killed: whoever told it to go, its grace was its user's to say, and might be a year.
//
// What the queue stops for another job (preemption) it may give longer: JobFact.grace_ms is the
// grace of the pods that are deleted here. The pods of a suspended Job are its controller's to
// delete, with their own terminationGracePeriodSeconds: a deletion of ours before would count as a
// failure of the Job, and one after it cannot make the time longer.
//
// A pod has stopped when it has ended or gone, when it is fenced, or when it was told to go and its
// node is lost. JobStopped is said once all have.
#pragma once

#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/plan_context.h"

namespace fluxqueue::binder {

struct HowToStop {
  bool suspends = false;  // the Job is suspended: its controller deletes the pods
  Millis since{0};        // when the stop came to us
};
// True when nothing of the slot runs or can start; else what is still to be done for that is on its
// way.
bool StopSlot(PlanContext& context, const HowToStop& how, int index, BindJob* job);

// REQUIRES: job->placed and job->stopping.
void PlanStop(PlanContext& context, BindJob* job);

}  // namespace fluxqueue::binder
