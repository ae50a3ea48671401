// What a FluxQueue must be and allow for a workload to enter it. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/access/queue_access.h"
#include "services/admission/domain/cluster_facts.h"
#include "services/admission/domain/usage.h"

namespace fluxqueue::admission {

// The sentence for a FluxQueue that is not there; names those that are.
std::string NoSuchQueue(std::string_view name,
                        const ClusterFacts::ByName<kubernetes::FluxQueue>& queues);

using access::PoolOfObject;
using access::QueuesByName;
using access::WayUp;

// A job, as far as a queue judges it.
struct Asked {
  const events::v1::JobSubmitted& submission;
  const kubernetes::Namespace& space;
  std::string_view user;              // who made it; empty: not known
  std::vector<std::string> groups{};  // of who made it himself, as the API server says
  std::string_view qos;               // the class that it names; empty: none
  std::string_view admitted_to{};     // the queue that its maker may submit to
  // Of a job that is in the queue: it may keep what it has.
  std::optional<int32_t> priority_before{};
  // What is counted for it already, and in which queue.
  Usage counted{};
  std::string_view counted_in{};
};

// Why the jobspec is too long for a message of the log; unset: it is not.
std::optional<std::string> JobspecProblem(const events::v1::PartSpec& spec, size_t max_bytes);

// Why the queue does not take the job: it is not for this namespace, no member's, its maker may not
// submit, it wants a higher place than the queue gives, may not run for so long, or asks for more
// than its class of QOS allows. Unset: it takes it.
std::optional<std::string> JobProblem(const Asked& asked,
                                      const kubernetes::FluxQueue& queue,
                                      const QueuesByName& queues);
// Why there is no room for it among what its namespace has in the queue: this passes. Unset: there
// is.
std::optional<std::string> QuotaProblem(const Asked& asked,
                                        const kubernetes::FluxQueue& queue,
                                        const QueuesByName& queues,
                                        const UsageBySpace& usage);

// Whether jobs of the queue may be stopped for others, as far as preemption in the FluxQueues of
// its pool and its place among them tell (libs/scheduling/victims.h).
bool MayBeStopped(const kubernetes::FluxQueue& queue, const QueuesByName& queues);

}  // namespace fluxqueue::admission
