// A job as the queue's API shows it. Pure.
#pragma once

#include <cstdint>

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/queue_core/explanation.h"

namespace fluxqueue::queue {

v1::Job ToMessage(const events::v1::JobFact& fact);

// All but the job.
void FillExplanation(const queue_core::Explanation& explanation, v1::ExplainResponse* response);

google::protobuf::Duration ToDuration(int64_t ms);
google::protobuf::Timestamp ToTimestamp(int64_t ms);

// The job's cycle has answered once (or it never needs one): it runs or has ended, or was refused,
// or waits for something else than its turn.
bool IsDecided(const events::v1::JobFact& fact);

}  // namespace fluxqueue::queue
