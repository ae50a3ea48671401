// The messages by which a pool learns of nodes and jobs, made as the services make them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/setting.h"
#include "libs/trace/trace.h"

namespace fluxqueue::simulation {

// The simulated pool, and the queue that all jobs of a trace stand in where there is one.
inline constexpr std::string_view kPool = "simulation";
inline constexpr std::string_view kQueue = "default";

// Which of so many queues the job stands in, by its user.
size_t QueueOf(const trace::TraceJob& job, size_t queues);
// "queue-1" …; of one queue kQueue.
std::string QueueName(size_t queue, size_t queues);

// What a pool is told before its first job: its configuration, its queue, all nodes.
std::vector<events::v1::Envelope> Beginning(const Machine& machine, const Setting& setting);

// Makes JobSubmitted of trace jobs. The text of a jobspec is built once for each shape: the matcher
// knows equal shapes by equal texts.
class Submissions {
 public:
  // `queues`: how many there are, 1 at least.
  explicit Submissions(const Machine& machine, size_t queues = 1);

  // `duration`: what the queue is told of it; unset: nothing.
  events::v1::Envelope Make(const trace::TraceJob& job, std::optional<Millis> duration, Millis now);

 private:
  using Shape = std::tuple<int64_t, trace::Amounts, std::vector<std::string>>;

  const std::string& JobspecOf(const trace::TraceJob& job);

  const bool counts_pods_;  // the nodes say how many pods they take
  const size_t queues_;
  std::map<Shape, std::string> jobspecs_;
};

}  // namespace fluxqueue::simulation
