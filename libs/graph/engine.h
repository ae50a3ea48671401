// The interface of a scheduling graph: which nodes there are, what is held on them, and where the
// next request goes.
//
// An engine is a deterministic state machine. It knows no clock (times are arguments), no thread
// and no I/O, and does not throw; the same calls give the same answers on every machine. Not
// thread-safe: one engine belongs to one thread. What is held is held under the caller's key.
//
// Undo: between Checkpoint() and Commit() every change is recorded, and Rollback() takes all of
// them back, so that Fingerprint() is what it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/closure.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/types.h"
#include "libs/graph/workload.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

enum class Operation {
  kAllocate,                    // now or not: never says unsatisfiable
  kAllocateOrReserve,           // as the next one, and what cannot be now is reserved
  kAllocateWithSatisfiability,  // the same, and tells `busy` from `unsatisfiable`
  kSatisfiability,              // could it ever run here? Holds nothing
};

struct MatchRequest {
  Operation operation = Operation::kAllocateWithSatisfiability;
  AllocationKey key;  // not looked at by kSatisfiability
  const Jobspec& jobspec;
  int64_t now_s = 0;
  int64_t duration_s = 0;  // 0: unlimited
  // Nothing is reserved from then on or later; it is busy instead. 0: whenever it can be.
  int64_t before_s = 0;
  // As in Placement.
  bool corrected = false;
  int64_t bound_s = 0;
  bool enforced = false;
  // Grow: also when the time of what is held is over.
  bool outlasts = false;
  // Whether it fits is what is asked: what the jobspec prefers does not matter.
  bool anywhere = false;
};

enum class OutcomeKind {
  kAllocated,      // held from now on; for kSatisfiability: it could run
  kReserved,       // kept from `at_s` on, until it is dropped
  kBusy,           // not now
  kUnsatisfiable,  // no state of this graph could ever run it
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::kBusy;
  // What the key holds, or has reserved. Valid until the next call that changes the graph; null
  // unless it is one of both.
  const Placement* placement = nullptr;
  int64_t at_s = 0;  // reserved: from then on
  // Busy, and to be reserved: only what is held without an end stands in its way.
  bool waits_for_unending = false;
};

// Of an Explanation's sentence.
enum class Wording {
  kFull,   // all that is wrong, however long
  kShort,  // of a constraint's terms those that the fewest nodes meet; at most kMostSentenceBytes
};
inline constexpr size_t kMostSentenceBytes = 1000;

// Why a jobspec does not fit, counted over all nodes. Costs a look at every node, so it is asked
// for, not given with each refusal.
struct Explanation {
  uint32_t nodes = 0;     // in the graph
  uint32_t matching = 0;  // of these, that meet the constraints and tolerate the taints
  uint32_t up = 0;        // of these, that can be given out now
  uint32_t fitting = 0;   // of these, with room for a slot now
  // How many slots would fit now, below one vertex of the level that is required; and how many
  // would on the matching nodes, all up and empty. Where slots differ, of the group that is short.
  uint64_t slots_now = 0;
  uint64_t slots_ever = 0;
  // The resource that ran out; empty when it was not a resource.
  std::string resource;
  // One sentence for people, such as "nvidia.com/gpu: a slot needs 8, the largest node has 4".
  std::string sentence;
  // For one slot: the node that comes nearest to having room, if that resource is what it lacks.
  std::string nearest;
};

// Some of a resource is held by a job.
struct Holder {
  AllocationKey key;
  int64_t amount = 0;
  int64_t until_s = 0;  // since the pool's beginning; 0: it has no end
};

struct NodeChange {
  bool changed = false;
  // There may be room that was not there: more of a resource, up again, other labels or taints.
  bool grew = false;
};

// Sums over all nodes; `free` over those that can be given out.
struct ResourceUsage {
  std::string resource;
  int64_t total = 0;
  int64_t held = 0;     // by us
  int64_t foreign = 0;  // by others
  int64_t free = 0;
};

struct NodeUsage {
  std::string name;
  bool schedulable = false;
  uint32_t slots = 0;                    // live slots on it
  std::vector<ResourceUsage> resources;  // sorted by name
};

class Engine {
 public:
  virtual ~Engine() = default;

  // InvalidArgument, with the names that are known, for a policy that this engine does not have.
  // What is held stays.
  virtual absl::Status SetPolicy(std::string_view policy) = 0;

  // The levels above the nodes, from the outermost: node labels, or "name=label" (levels.h). Those
  // that no node's label names are not there. InvalidArgument names what is wrong. What is held
  // stays.
  virtual absl::Status SetLevels(const std::vector<std::string>& levels) = 0;

  // So many jobs like this one are known more than before, or fewer: what `packed` keeps GPUs of
  // use for. REQUIRES: not fewer than none.
  virtual void Expect(const Jobspec& jobspec, int64_t jobs) = 0;

  // `packed` goes by this from now on, whatever is known; nothing: by what is known.
  virtual void SetForecast(std::optional<Workload> forecast) = 0;

  // Among the places that a match finds, those on nodes that the jobspec prefers
  // (preferred_placement.h) are taken from now on, as at first; or it is as if it preferred none.
  virtual void HeedPreferences(bool heeds) = 0;

  // FailedPrecondition when the name or the ordinal is taken.
  virtual absl::Status AddNode(NodeSpec node) = 0;
  // Everything but name and ordinal may change, also below what is held: nothing new is given out
  // there until enough was released. NotFound for an unknown name; FailedPrecondition when the
  // ordinal differs.
  virtual absl::StatusOr<NodeChange> UpdateNode(NodeSpec node) = 0;
  // Takes the node out with all that is held on it: those slots count as released. Returns the keys
  // that held any, sorted. NotFound for an unknown name.
  virtual absl::StatusOr<std::vector<AllocationKey>> RemoveNode(std::string_view name) = 0;

  // All slots or none. A key that holds something already is answered with what it holds. Time does
  // not go back: `now_s` is not before that of any earlier match. What should have been given back
  // by then is held all the same, and planned to be given back later (planned_end.h).
  //
  // What is reserved goes to nobody else in its time. What the key has reserved is void when it is
  // matched again.
  //
  // Reservations are no part of the engine's state: no fingerprint has them, and no Rollback knows
  // them. They are to be dropped before nodes, the policy or the levels change.
  virtual Outcome Match(const MatchRequest& request) = 0;
  // More slots for a key that holds some: all that the request's jobspec asks for or none, numbered
  // on behind those that it has, and in its placement from then on. They are held as long as the
  // rest (the request's duration is not looked at), and take nothing of what is reserved. kBusy: no
  // room now; or nothing is held under the key, or slots that ask for something else, or its time
  // is over, unless the request outlasts that. The request's operation does not matter: nothing is
  // reserved.
  virtual Outcome Grow(const MatchRequest& request) = 0;
  // Reserves again what a match has reserved, whether or not it fits by now. False, and nothing is
  // reserved, when a node of it is not there or not up. REQUIRES: the key holds and has reserved
  // nothing.
  virtual bool Reserve(const AllocationKey& key, const Placement& placement) = 0;
  // What the key has reserved, if anything, is void; and what anybody has.
  virtual void DropReservation(const AllocationKey& key) = 0;
  virtual void DropReservations() = 0;
  // From now on these nodes, and no others, get nothing that would be held in the time. What is
  // held there stays, and may overlap it; what could ever run is as before. Follows the nodes as
  // they come and change. Not undone by Rollback, and no part of the Fingerprint: to be said before
  // a match by whoever closes nodes at all.
  virtual void SetClosures(std::vector<Closure> closures) = 0;
  // Who holds something for longer than it said, at `now_s`; sorted.
  virtual std::vector<AllocationKey> Overran(int64_t now_s) const = 0;
  // What stands in the way of `jobspec` now.
  virtual Explanation Explain(const Jobspec& jobspec, Wording wording) const = 0;
  // Who holds the resource that ran out: on the nearest node if there is one, else on all nodes
  // that the job may use. The most first, at most 10. A look at all that is held.
  virtual std::vector<Holder> HoldersOf(const Jobspec& jobspec, const Explanation& why) const = 0;

  // Gives back everything that the key holds, and forgets it. False when it holds nothing.
  virtual bool Release(const AllocationKey& key) = 0;
  // Gives back those of `slots` that the key still holds, and returns them; slots that it does not
  // have are left out. The key stays known until the Release of everything.
  virtual std::vector<uint32_t> ReleaseSlots(const AllocationKey& key,
                                             const std::vector<uint32_t>& slots) = 0;
  // Holds again what a match gave (after a restart), whether or not it fits by now.
  // FailedPrecondition when the key holds something already or a slot's node is unknown.
  virtual absl::Status Restore(const AllocationKey& key, const Placement& placement) = 0;

  // Null when the key is unknown. Valid until the next call that changes the graph.
  virtual const Placement* Find(const AllocationKey& key) const = 0;
  // All that hold something, sorted.
  virtual std::vector<AllocationKey> Keys() const = 0;
  // Those of the job.
  virtual std::vector<AllocationKey> KeysOf(std::string_view job_id) const = 0;

  // In the order of their ordinals.
  virtual std::vector<NodeSpec> Nodes() const = 0;
  // Rises whenever nodes come or go, or what they have, their labels, taints or levels change.
  virtual uint64_t inventory_version() const = 0;
  virtual uint32_t nodes() const = 0;
  virtual uint32_t nodes_up() const = 0;
  virtual uint64_t allocations() const = 0;
  virtual std::vector<ResourceUsage> Usage() const = 0;    // sorted by resource
  virtual std::vector<NodeUsage> UsageByNode() const = 0;  // in the order of the ordinals

  // Begins to record. Not twice.
  virtual void Checkpoint() = 0;
  // Keep what was done since, or take it back; recording ends. Nothing happens without Checkpoint.
  virtual void Commit() = 0;
  virtual void Rollback() = 0;

  // A hash of all state that can show in an answer: equal states have equal fingerprints.
  virtual uint64_t Fingerprint() const = 0;
};

// The engine for Kubernetes' shape (booked_engine.h on cluster_graph.h), with the policy `first`.
std::unique_ptr<Engine> MakeNativeEngine();

}  // namespace fluxqueue::graph
