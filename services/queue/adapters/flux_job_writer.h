// Keeps the FluxJob objects, and writes Events on users' objects, beside the delivery loop and
// never in its way: a fact says which job to show; a few threads read its row and write the object
// as the planner says.
//
// Repeats: a write may happen twice; the second changes nothing. When the API server is away the
// writes back off, and each job waits to be shown as its row has it by then. When pools are gained,
// rows are compared with the objects there are, and what is missing or old is written. Nothing here
// is ever lost for good: rows say all, the objects follow.
//
// Two replicas may take themselves for the owner of a pool for a while. An object is written only
// as it was seen last, and one that shows a later version is left alone.
//
// A comparison reads the objects first, then the rows: of what was made in between the rows say
// all. It asks for the jobs that live, and for those whose object does not show their end; never
// for all that have ended.
//
// Changed, PoolsGained, PoolsLost, Waiting and Moved are thread-safe and quick.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/job_observer.h"
#include "services/queue/domain/flux_job_planner.h"
#include "services/queue/metrics.h"

namespace fluxqueue::queue {

// A FluxJob as it is in the cluster.
struct ShownFluxJob {
  std::string job_id;
  uint64_t version = 0;
  std::string resource_version;
  bool final = false;  // it shows an end that nothing follows
  // Where nothing owns it, so that no garbage collector deletes it.
  std::string space;
  std::string name;
  std::string uid;
};

class FluxJobWriter final : public JobObserver {
 public:
  // References must outlive the writer.
  FluxJobWriter(kubernetes::Client& client,
                FluxJobSource& source,
                QueueMetrics& metrics,
                const Clock& clock,
                FluxJobTimes times);

  void Changed(std::vector<JobSeen> jobs) override;
  void PoolsGained(const std::set<std::string>& pools) override;
  void PoolsLost(const std::set<std::string>& pools) override;
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
    std::string resource_version;
    absl::Status status;
    std::optional<std::chrono::duration<double>> took{};  // to write it
  };

  // Which version of its job an object shows.
  struct ShownVersion {
    uint64_t version = 0;
    std::string resource_version;
  };

  // What there is in the cluster, by the jobs' ids.
  struct Comparison {
    std::unordered_map<std::string, ShownVersion> shown;
    std::unordered_set<std::string> unended;                // whose objects show no end
    std::unordered_map<std::string, ShownFluxJob> orphans;  // that nothing owns
  };

  Millis Now() const;
  // Deletes FluxJobs that nothing owns, once their jobs have ended. `gained`: and compares the
  // others with queue.jobs, as pools were.
  void Reconcile(bool gained);
  absl::Status Compare(bool gained);
  absl::Status ListObjects(Comparison* found);
  void Observe(const events::v1::JobFact& fact,
               const std::unordered_map<std::string, ShownVersion>& shown);
  std::vector<FluxJobWrite> WaitForWork(const std::stop_token& stop);
  void Write(const std::vector<FluxJobWrite>& writes);
  void Show(const FluxJobWrite& write, const FluxJobSource::Job& job, Outcome* outcome);
  // These return the object as it is afterwards. kNotFound: there is nothing more to show.
  absl::StatusOr<std::string> WriteOne(const FluxJobWrite& write, const FluxJobSource::Job& job);
  absl::StatusOr<std::string> Overwrite(const FluxJobWrite& write, const FluxJobSource::Job& job);
  absl::StatusOr<std::string> Patch(const FluxJobWrite& write,
                                    const FluxJobSource::Job& job,
                                    const std::string& resource_version);
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
  std::set<std::string> pools_;                              // that are ours
  bool gained_ = false;                                      // pools, since the last comparison
  Millis compare_at_ = Millis::max();  // the next comparison; at first when pools are gained
  int comparisons_failed_ = 0;         // in a row
  absl::Status last_;
};

}  // namespace fluxqueue::queue
