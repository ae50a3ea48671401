// What a FluxQueue, and those above it, let a job ask for, and a namespace's jobs come to: when a
// job is made, and when it moves there. Sentences begin with the key, and say what to do.
//
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/access/queue_access.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::access {

struct AskedJob {
  std::string_view user{};  // who made it; empty: not known
  std::string_view space{};
  std::string_view qos{};  // the class that it names; empty: none
  int32_t priority = 0;
  std::optional<int64_t> duration_ms{};  // 0: unlimited; unset: the queue's default
  scheduling::Resources amounts{};       // of all slots
};

// The class of the first that has one of that name; null: there is none.
const kubernetes::QosClass* FindQos(std::string_view name, const Way& way);

// Why it may not run for so long there, or asks for more than its class of QOS allows.
std::optional<std::string> LimitProblem(const AskedJob& asked, const Way& way);

// What jobs that have not ended come to.
struct JobUse {
  int64_t jobs = 0;
  int64_t jobspec_bytes = 0;

  void Add(const JobUse& other) {
    jobs += other.jobs;
    jobspec_bytes += other.jobspec_bytes;
  }
  friend bool operator==(const JobUse&, const JobUse&) = default;
};

// Why the namespace may not have another job, of so many bytes, in this queue and those below it,
// where it uses `used` of them. `before`: of that what counts for the job already.
std::optional<std::string> QuotaProblem(std::string_view space,
                                        int64_t bytes,
                                        const JobUse& before,
                                        const JobUse& used,
                                        const kubernetes::FluxQueue& queue);

}  // namespace fluxqueue::access
