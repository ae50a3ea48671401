// Keeps the FluxJob objects, and writes Events on users' objects, beside the delivery loop and
// never in its way: facts come in through a queue, a few threads write them as the planner says.
//
// Repeats: a write may happen twice; the second changes nothing. When the API server is away the
// writes back off and the latest fact of each job waits. When pools are gained, rows are compared
// with the objects there are, and what is missing or old is written. Nothing here is ever lost for
// good: rows say all, the objects follow.
//
// Changed, PoolsGained, Waiting and Moved are thread-safe and quick.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/job_observer.h"
#include "services/queue/domain/flux_job_planner.h"
#include "services/queue/metrics.h"

namespace fluxqueue::queue {

class FluxJobWriter final : public JobObserver {
 public:
  // References must outlive the writer.
  FluxJobWriter(kubernetes::Client& client,
                FluxJobSource& source,
                QueueMetrics& metrics,
                const Clock& clock,
                FluxJobTimes times);

  void Changed(std::vector<JobSeen> jobs) override;
  void PoolsGained() override;
  std::vector<std::string> Waiting() override;
  void Moved(const std::vector<std::pair<std::string, int64_t>>& positions) override;

  // Writes until `stop`. To be run by several threads.
  absl::Status Run(const std::stop_token& stop);
  // OK, or why the last write or comparison did not go through.
  absl::Status Ready() const;
  size_t backlog() const;

 private:
  struct Outcome {
    std::string job_id;
    uint64_t version = 0;
    absl::Status status;
  };

  Millis Now() const;
  // Deletes FluxJobs that nothing owns, once their jobs have ended. `gained`: and compares the
  // others with queue.jobs, as pools were.
  void Reconcile(bool gained);
  std::vector<FluxJobWrite> WaitForWork(const std::stop_token& stop);
  void Write(const std::vector<FluxJobWrite>& writes);
  absl::Status WriteOne(const FluxJobWrite& write, const FluxJobDetails& details);
  absl::Status CreateOrPatch(const FluxJobWrite& write, const FluxJobDetails& details);
  void WriteEvent(const std::string& space, const std::string& event);
  void Settle(const Outcome& outcome);

  kubernetes::Client& client_;
  FluxJobSource& source_;
  QueueMetrics& metrics_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  FluxJobPlanner planner_;                                   // guarded by mutex_, as all below
  std::vector<std::pair<std::string, std::string>> events_;  // namespace, object
  bool gained_ = false;                                      // pools, since the last comparison
  Millis compare_at_ = Millis::max();  // the next comparison; at first when pools are gained
  int comparisons_failed_ = 0;         // in a row
  absl::Status last_;
};

}  // namespace fluxqueue::queue
