// What a FluxQueue must be and allow for a workload to enter it. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "services/admission/domain/cluster_facts.h"

namespace fluxqueue::admission {

// The sentence for a FluxQueue that is not there; names those that are.
std::string NoSuchQueue(std::string_view name,
                        const ClusterFacts::ByName<kubernetes::FluxQueue>& queues);

using QueuesByName = ClusterFacts::ByName<kubernetes::FluxQueue>;

// A job, as far as a queue judges it.
struct Asked {
  const events::v1::JobSubmitted& submission;
  std::string_view space;
  std::string_view user;  // who made it; empty: not known
  std::string_view qos;   // the class that it names; empty: none
};

// Why the queue does not take the job: it is no member's, may not run for so long, or asks for more
// than its class of QOS allows. Unset: it takes it.
std::optional<std::string> JobProblem(const Asked& asked,
                                      const kubernetes::FluxQueue& queue,
                                      const QueuesByName& queues);

// The queue and those above it, as far as they are there; each once.
std::vector<const kubernetes::FluxQueue*> WayUp(const kubernetes::FluxQueue& queue,
                                                const QueuesByName& queues);
// The class of the queue, or else of the first above it that has one of that name; null: there is
// none.
const kubernetes::QosClass* FindQos(std::string_view name,
                                    const kubernetes::FluxQueue& queue,
                                    const QueuesByName& queues);

}  // namespace fluxqueue::admission
