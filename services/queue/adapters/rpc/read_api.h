// The calls of the queue's API that any replica can answer from the tables. They block: not for
// gRPC's own threads. First a call is judged (call_judge.h). Thread-safe.
#pragma once

#include <vector>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/job_store/fact_store.h"
#include "libs/job_store/job_store.h"
#include "services/queue/adapters/rpc/call_judge.h"
#include "services/queue/adapters/rpc/caller.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

class ReadApi {
 public:
  // References must outlive the object.
  ReadApi(const CallJudge& judge, job_store::FactStore& facts, job_store::JobStore& jobs)
      : judge_(judge), facts_(facts), jobs_(jobs) {}

  absl::Status ListJobs(const Caller& caller,
                        const v1::ListJobsRequest& request,
                        v1::ListJobsResponse* response);
  absl::Status FindJob(const Caller& caller,
                       const v1::FindJobRequest& request,
                       v1::FindJobResponse* response);
  absl::Status GetJob(const Caller& caller,
                      const v1::GetJobRequest& request,
                      v1::GetJobResponse* response);
  absl::Status ListQueues(const Caller& caller,
                          const v1::ListQueuesRequest& request,
                          v1::ListQueuesResponse* response);
  absl::Status GetQueue(const Caller& caller,
                        const v1::GetQueueRequest& request,
                        v1::GetQueueResponse* response);

 private:
  absl::StatusOr<std::vector<v1::QueueInfo>> Queues();

  const CallJudge& judge_;
  job_store::FactStore& facts_;
  job_store::JobStore& jobs_;
};

}  // namespace fluxqueue::queue
