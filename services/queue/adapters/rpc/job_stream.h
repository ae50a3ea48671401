// One WatchJobs call: it is judged; then the live jobs of the pool from the tables, page by page as
// fast as the client reads, and the changes from the feed, which wait in a buffer of bounded size.
//
// A change may be committed while a page is read, so the two are told apart by their versions: what
// is not newer than what was said last is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/job_store/fact_store.h"
#include "libs/rpc/worker_pool.h"
#include "services/queue/adapters/fact_feed.h"
#include "services/queue/adapters/rpc/call_judge.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

// What the caller may see of what he asks for; waits.
using Admit = std::function<absl::StatusOr<JobScope>()>;

// Thread-safe.
class JobStream final : public grpc::ServerWriteReactor<v1::WatchJobsResponse>,
                        public FactWatcher,
                        public std::enable_shared_from_this<JobStream> {
 public:
  // References must outlive the call. It lives until gRPC is done with it and nobody holds it.
  // `admit` is called on a thread of `judges`.
  static std::shared_ptr<JobStream> Start(const std::string& pool,
                                          Admit admit,
                                          rpc::WorkerPool& judges,
                                          job_store::FactStore& facts,
                                          FactFeed& feed,
                                          rpc::WorkerPool& workers);

  void Changed(const events::v1::JobFact& fact) override;
  void End(const absl::Status& why) override;

 private:
  // Of a job, last.
  struct Said {
    uint64_t version = 0;
    bool left = false;  // the queue, and with it what may be seen
  };

  JobStream(std::string pool,
            job_store::FactStore& facts,
            FactFeed& feed,
            rpc::WorkerPool& workers);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // As far as he may see.
  void Begin(const Admit& admit);
  // Called with mutex_ held, the first three.
  bool InQueue(const events::v1::JobFact& fact) const;
  bool Wanted(const events::v1::JobFact& fact) const;
  void Add(const events::v1::JobFact& fact);
  // The next thing to do, done without the lock.
  void Pump();
  void ReadPage();

  const std::string pool_;
  job_store::FactStore& facts_;
  FactFeed& feed_;
  rpc::WorkerPool& workers_;

  std::mutex mutex_;
  JobScope scope_;  // guarded by mutex_, as what follows
  std::deque<v1::WatchJobsResponse> said_;
  std::unordered_map<std::string, Said> jobs_;
  std::string page_end_;
  bool begun_ = false;
  bool reading_ = false;
  bool listed_ = false;
  bool writing_ = false;
  bool finished_ = false;
  std::optional<absl::Status> end_;
  v1::WatchJobsResponse current_;
  std::shared_ptr<JobStream> self_;  // until OnDone
};

}  // namespace fluxqueue::queue
