// The one-word reasons of a job's facts. Programs compare them; the sentence beside is for people.
#pragma once

namespace fluxqueue::queue_core::reason {

// Submitted
inline constexpr char kNoQueue[] = "NoQueue";  // its FluxQueue does not exist
// Pending
inline constexpr char kQueued[] = "Queued";      // in line, not tried yet
inline constexpr char kHeld[] = "Held";          // by its user, or a command
inline constexpr char kBusy[] = "Busy";          // tried: what it wants is in use
inline constexpr char kReserved[] = "Reserved";  // tried: starts at start_ms
inline constexpr char kUnsatisfiable[] =
    "Unsatisfiable";                       // nothing here could run it now; also Rejected
inline constexpr char kRetry[] = "Retry";  // waits before its next attempt
inline constexpr char kJobspecLost[] =
    "JobspecLost";                                   // the matcher lacks it, and is given it again
inline constexpr char kNotYet[] = "NotYet";          // its begin is to come
inline constexpr char kDependency[] = "Dependency";  // others have to end first
inline constexpr char kLimit[] = "Limit";            // a limit of its queue holds it back
// Allocated
inline constexpr char kBackfilled[] = "Backfilled";  // before others that stand ahead of it
// Allocated, Bound, Running
inline constexpr char kGrown[] = "Grown";  // it has more slots than before
// Bound, Running
inline constexpr char kShrinking[] = "Shrinking";  // it is to give slots back for another job
inline constexpr char kShrunk[] = "Shrunk";        // it has fewer slots than before
// Allocated, Bound, Running
inline constexpr char kSlotLost[] = "SlotLost";  // slots are looked for in place of those it lost
inline constexpr char kSlotMissing[] = "SlotMissing";  // no other node has room for them now
inline constexpr char kReplaced[] = "Replaced";  // it has others in place of slots that it lost
// Running
inline constexpr char kOverran[] = "Overran";  // for longer than it may
// Stopping (and Failed, where it is not tried again)
inline constexpr char kBindFailed[] = "BindFailed";
inline constexpr char kNodeLost[] = "NodeLost";
inline constexpr char kPreempted[] = "Preempted";  // for another job
inline constexpr char kResized[] = "Resized";      // its jobspec changed
// Stopping, Cancelled
inline constexpr char kCancelled[] = "Cancelled";  // by its user, or a command
inline constexpr char kWithdrawn[] = "Withdrawn";  // its workload is gone, or no longer ours
inline constexpr char kDeleted[] = "Deleted";      // its workload was deleted
inline constexpr char kDependencyNeverSatisfied[] = "DependencyNeverSatisfied";
// Rejected
inline constexpr char kDependencyCycle[] = "DependencyCycle";  // it would wait for itself
// Succeeded
inline constexpr char kExpired[] = "Expired";  // the time of a claim was over
// Failed, Rejected
inline constexpr char kFailed[] = "Failed";    // the workload says so
inline constexpr char kInvalid[] = "Invalid";  // its jobspec is bad

}  // namespace fluxqueue::queue_core::reason
