#include "libs/delivery/outbox.h"

#include <utility>

#include "libs/base/check.h"

namespace fluxqueue::delivery {

void Outbox::AppendToPool(int source, int pool_partition, events::v1::Envelope message) {
  CHECK(!message.pool().empty(), "a message to a pool's log names no pool");
  CHECK(message.event_case() != events::v1::Envelope::EVENT_NOT_SET, "a message without an event");
  messages_.push_back({source, Target::kPool, pool_partition, std::move(message)});
}

void Outbox::AppendToJobs(int source, events::v1::Envelope message) {
  CHECK(message.has_job_fact(), "the jobs topic carries job facts only");
  messages_.push_back({source, Target::kJobs, -1, std::move(message)});
}

}  // namespace fluxqueue::delivery
