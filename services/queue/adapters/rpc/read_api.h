// The calls of the queue's API that any replica can answer from the tables. They block: not for
// gRPC's own threads. Thread-safe.
#pragma once

#include <vector>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/job_store/fact_store.h"
#include "libs/job_store/job_store.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

class ReadApi {
 public:
  // References must outlive the object.
  ReadApi(job_store::FactStore& facts, job_store::JobStore& jobs) : facts_(facts), jobs_(jobs) {}

  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse* response);
  absl::Status GetJob(const v1::GetJobRequest& request, v1::GetJobResponse* response);
  absl::Status ListQueues(const v1::ListQueuesRequest& request, v1::ListQueuesResponse* response);
  absl::Status GetQueue(const v1::GetQueueRequest& request, v1::GetQueueResponse* response);

 private:
  absl::StatusOr<std::vector<v1::QueueInfo>> Queues();

  job_store::FactStore& facts_;
  job_store::JobStore& jobs_;
};

}  // namespace fluxqueue::queue
