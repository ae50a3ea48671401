// The queue's answers as objects of the group visibility.fluxqueue.io. Lists also as a table, which
// kubectl asks for. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "absl/status/status.h"

namespace fluxqueue::visibility {

// One of `answer`'s own shape for programs, or, `as_table`, what kubectl shows; ages count to
// `now_ms`.
std::string JobText(const queue::v1::GetJobResponse& answer, bool as_table, int64_t now_ms);
std::string JobListText(const queue::v1::ListJobsResponse& answer, bool as_table, int64_t now_ms);
std::string QueueText(const queue::v1::QueueInfo& queue, bool as_table);
std::string QueueListText(const queue::v1::ListQueuesResponse& answer, bool as_table);
std::string ExplanationText(const queue::v1::ExplainResponse& answer);
// Of a command that was accepted.
std::string CommandText(const queue::v1::Job& job, bool repeated);

// The `Status` that clients of Kubernetes read, and its code of HTTP.
struct Failure {
  int code = 500;
  std::string text{};
};
Failure FailureOf(const absl::Status& status);

// Of the API server's Accept header: whether a table is wanted.
bool WantsTable(std::string_view accept);

}  // namespace fluxqueue::visibility
