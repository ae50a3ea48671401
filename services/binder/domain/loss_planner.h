// Slots that their nodes do not give to the next pod: the node is closed (cordoned, tainted), has
// put the pod out that was there (evicted it, or could not run it), or kube-scheduler does not bind
// a pod there that was released to it.
//
// Where the queue looks for others in their place (JobFact.replaces_slots), the slot is lost: the
// pod that took it is fenced, as a Binding may be under way, and SlotsLost says so once nothing
// runs or can start there. That it is lost is in the row of the job by the same batch, so no pod is
// given it any more, also by another replica. Its pod has the slot that comes in its place,
// or any other. Where none comes within PlanOptions::start_timeout, all of the job is placed again.
//
// Elsewhere (elastic jobs, gangs of pods, an older queue) the pod waits for its node as long.
//
// Where nothing else of the job runs and the node is closed, all of it is placed again at once.
#pragma once

#include <optional>

#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/plan_context.h"

namespace fluxqueue::binder {

// An open slot whose node is not known to be closed.
bool HasUsableSlot(const BindJob& job);

// The node of the slot is to be looked at before a pod is started there.
bool MustLook(const PlanContext& context, const BindJob& job, const Slot& slot);

// For a pod that waits in its slot, and does not get it as its node is: what to do about that.
struct Turned {
  std::optional<Call::Kind> call;
};
// Unset: nothing is known against the node.
std::optional<Turned> TurnAway(PlanContext& context, Slot* slot, BindJob* job);

// Says which slots are lost. REQUIRES: it is not stopping, and has not failed.
void PlanLosses(PlanContext& context, BindJob* job);
// A pod that was released, and is not bound for PlanOptions::start_timeout, is deleted, so that its
// slot is lost and the next pod has another. Once all of the job has been bound; before, it fails
// as a whole. The same.
void GiveUpUnbound(PlanContext& context, BindJob* job);
// Gives up where none comes in their place. The same; its pods have been given their slots.
void AwaitOthers(PlanContext& context, BindJob* job);
// The same for a pod that waits though all slots of its Job have served, as when the cluster's
// store was restored from a backup that does not know that a pod had succeeded: its slot was given
// back. All of the job is placed again, if the Job lacks more completions than it has pods with
// slots.
void AwaitDone(PlanContext& context, BindJob* job);

}  // namespace fluxqueue::binder
