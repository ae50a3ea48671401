#include "services/queue/domain/job_message.h"

#include <algorithm>

#include <google/protobuf/util/time_util.h>

#include "libs/base/clock.h"

namespace fluxqueue::queue {

using google::protobuf::util::TimeUtil;

google::protobuf::Duration ToDuration(int64_t ms) {
  constexpr int64_t kMost = TimeUtil::kDurationMaxSeconds * 1000;
  return TimeUtil::MillisecondsToDuration(std::clamp(ms, -kMost, kMost));
}

google::protobuf::Timestamp ToTimestamp(int64_t ms) {
  return TimeUtil::MillisecondsToTimestamp(WritableTime(Millis(ms)).count());
}

v1::Job ToMessage(const events::v1::JobFact& fact) {
  // The two enums have the same numbers.
  static_assert(static_cast<int>(v1::STATE_REJECTED) ==
                static_cast<int>(events::v1::JOB_STATE_REJECTED));
  const events::v1::Workload& workload = fact.workload();
  v1::Job job;
  job.set_id(fact.job_id());
  job.set_pool(fact.pool());
  job.set_queue(fact.queue());
  job.set_kind(workload.kind());
  job.set_namespace_(workload.namespace_());
  job.set_name(workload.name());
  job.set_owner(workload.owner());
  job.set_state(static_cast<v1::State>(fact.state()));
  job.set_reason(fact.reason());
  job.set_message(fact.message());
  job.set_version(fact.version());
  job.set_attempt(fact.attempt());
  job.set_slots(fact.slots());
  job.set_priority(fact.priority());
  *job.mutable_duration() = ToDuration(fact.duration_ms());
  *job.mutable_created() = ToTimestamp(fact.created_ms());
  *job.mutable_updated() = ToTimestamp(fact.time_ms());
  if (fact.start_ms() != 0) *job.mutable_start() = ToTimestamp(fact.start_ms());
  job.set_firm(fact.firm());
  job.set_user(fact.user());
  job.set_max_slots(fact.max_slots());
  return job;
}

void FillExplanation(const queue_core::Explanation& explanation, v1::ExplainResponse* response) {
  response->set_position(static_cast<int64_t>(explanation.position));
  response->set_in_line(static_cast<int64_t>(explanation.in_line));
  for (const events::v1::JobFact& fact : explanation.ahead) {
    *response->add_ahead() = ToMessage(fact);
  }
  for (const std::string& sentence : explanation.why) response->add_why(sentence);
  if (explanation.expected_start_ms != 0) {
    *response->mutable_expected_start() = ToTimestamp(explanation.expected_start_ms);
  }
  response->set_assumption(explanation.assumption);
  for (const std::string& sentence : explanation.sooner) response->add_sooner(sentence);
  for (const queue_core::PlaceFactor& factor : explanation.factors) {
    v1::ExplainResponse::Factor* added = response->add_factors();
    added->set_factor(factor.factor);
    added->set_of(factor.of);
    added->set_value(factor.value);
  }
}

bool IsDecided(const events::v1::JobFact& fact) {
  // Its turn has not come yet.
  return fact.state() != events::v1::JOB_STATE_ALLOCATED &&
         !(fact.state() == events::v1::JOB_STATE_PENDING && fact.reason() == "Queued");
}

}  // namespace fluxqueue::queue
