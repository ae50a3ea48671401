// The pools as the matcher has committed them last, read from its tables: each look is one
// snapshot, in a transaction that only reads. Any replica can look at any pool, and none keeps the
// matcher waiting.
//
// A picture serves as long as nothing was committed and the second has not ended. Who asks while
// one is made waits for it or for the next one, so that no look is older than its question, and
// however many ask at once, two are made at most.
//
// All functions block: not for gRPC's own threads. NotFound: there is no such pool; DataLoss: what
// the matcher has written does not decode; Unavailable: Postgres is away. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/matcher_rows/matcher_rows.h"
#include "libs/postgres/connection.h"
#include "services/graph/domain/pool_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

class PoolPictures {
 public:
  using View = std::shared_ptr<const PoolView>;
  using TimePoint = std::chrono::steady_clock::time_point;
  // One commit of the matcher.
  using Version = std::pair<int64_t, int64_t>;

  // `dsn`: of Postgres. `connections`: looks at once. `clock` outlives the object.
  PoolPictures(const std::string& dsn, size_t connections, const Clock& clock);

  // All of the pool, not older than `asked`.
  absl::StatusOr<View> Look(const std::string& pool, TimePoint asked);

  struct Held {
    View nodes;  // whatever is held there
    Jobs jobs;   // of those that were picked; one that holds nothing has nothing
  };
  // Their ids; in the snapshot that Find reads.
  using Pick = std::function<std::vector<std::string>(pqxx::transaction_base& tx)>;
  absl::StatusOr<Held> Find(const std::string& pool, const Pick& pick);

  absl::StatusOr<Version> VersionOf(const std::string& pool);

 private:
  struct Whole {
    TimePoint begun{};
    Version version{};
    int64_t second = 0;
    View view;
  };
  struct Nodes {
    int64_t version = 0;
    std::vector<std::string> levels;
    View view;
  };
  struct Pool {
    Nodes NodesNow();
    void Keep(Nodes made);

    std::mutex loading;
    Whole whole;  // guarded by `loading`
    std::mutex mutex;
    Nodes nodes;  // guarded by `mutex`
  };

  // `read` gets the pool's row, in a snapshot.
  using Read = std::function<absl::Status(pqxx::transaction_base& tx, matcher_rows::PoolHead head)>;
  absl::Status InSnapshot(const std::string& pool, const Read& read);
  std::shared_ptr<Pool> Known(const std::string& pool);

  postgres::Pool connections_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Pool>> pools_;  // guarded by mutex_
};

}  // namespace fluxqueue::graph_service
