// What the invariants are checked on: the rows of the services, the cluster, and the jobs topic, as
// plain values. The rows are of one moment (one transaction); the cluster was listed before them,
// the topic read before them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/types.h"
#include "libs/kubernetes/labels.h"

namespace fluxqueue::verify {

using graph::AllocationKey;

// queue.jobs
struct JobRow {
  std::string id{};
  std::string pool{};
  std::string space{};
  std::string name{};
  std::string kind{};
  std::string state{};
  uint64_t version = 0;
  uint32_t attempt = 0;
  uint32_t slots = 0;
  uint32_t most_slots = 0;  // elastic; 0: it is not
  uint32_t held_slots = 0;  // as the queue knows, where it has been given others; or 0
  uint64_t placement_hash = 0;
};

// queue.job_events of one job.
struct EventTrail {
  uint64_t count = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t ended = 0;  // the first version with a terminal state that has no exit here; 0: none
  std::string last_state{};
};

// The jobs topic of one job (FactLog::Trail).
struct TopicTrail {
  uint64_t last = 0;
  std::vector<std::string> faults{};
};

// matcher.allocations
struct AllocationRow {
  AllocationKey key{};
  std::string pool{};
  events::v1::Placement placement{};
  bool decodes = true;
  uint64_t placement_hash = 0;
  bool released = false;
};

// matcher.graph_nodes
struct NodeRow {
  std::string pool{};
  events::v1::Node node{};
  bool present = true;
};

// matcher.specs
struct SpecRow {
  std::string job_id{};
  uint32_t part = 0;
  uint32_t revision = 0;
  uint32_t slots = 0;
};

// binder.slots
struct SlotRow {
  AllocationKey key{};
  uint32_t slot = 0;
  std::string node{};
  std::string pod_uid{};
  std::string pod{};  // namespace/name
  std::string state{};
  bool bound_once = false;
};

// admission.workloads, submitted and not withdrawn.
struct WorkloadRow {
  std::string job_id{};
  std::string kind{};
  std::string space{};
  std::string name{};
};

// A pod with our hold.
struct PodView {
  std::string uid{};
  std::string name{};  // namespace/name
  std::string node{};  // empty: not bound
  std::string job_id{};
  std::optional<kubernetes::SlotName> slot{};  // our allocation annotation
  bool ended = false;
  bool deleting = false;
};

// A Job or bare pod with our hold.
struct ObjectView {
  std::string name{};  // namespace/name
  bool ended = false;
};

struct Cluster {
  std::vector<PodView> pods{};
  std::map<std::string, ObjectView> objects{};  // by uid
  std::map<std::string, bool> nodes{};          // by name; whether it is ready
};

struct Snapshot {
  std::map<std::string, JobRow> jobs{};  // by id
  std::map<std::string, EventTrail> events{};
  std::map<AllocationKey, AllocationRow> allocations{};
  std::vector<NodeRow> nodes{};
  std::vector<SpecRow> specs{};
  std::vector<SlotRow> slots{};
  std::vector<WorkloadRow> workloads{};
  std::map<std::string, TopicTrail> topic{};
  bool topic_cut = false;  // its beginning is no longer kept: old jobs may be missing
  std::vector<std::string> unreadable{};  // records of the jobs topic
  uint64_t topic_lost = 0;                // facts that were said, and that the topic has lost
  std::optional<Cluster> cluster{};       // unset: not looked at
};

// What is used of a node, by resource.
struct NodeUse {
  std::map<std::string, int64_t> ours{};
  std::map<std::string, uint32_t> jobs{};  // live slots, by job id
};

// Of all live slots, by (pool, node).
std::map<std::pair<std::string, std::string>, NodeUse> UseByNode(const Snapshot& snapshot);

}  // namespace fluxqueue::verify
