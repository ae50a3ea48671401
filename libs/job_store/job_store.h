// Jobs as the tables have them, for people: what the command line and the queue's API share. Reads
// only; throws nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/postgres/connection.h"
#include "libs/scheduling/budgets.h"
#include "libs/scheduling/resources.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::job_store {

// Empty: any.
struct JobFilter {
  std::string queue{};
  std::string state{};
  std::string space{};
  std::string user{};
  bool ended = false;  // also those that have
  // Those that were there at some time from `since_ms` on and before `until_ms`.
  int64_t since_ms = 0;
  int64_t until_ms = std::numeric_limits<int64_t>::max();
  // The newest; 0: all.
  int64_t limit = 0;
};

struct Job {
  std::string id{};
  std::string pool{};
  std::string queue{};
  std::string space{};
  std::string name{};
  std::string kind{};
  std::string user{};  // empty: not known
  std::string state{};
  int64_t version = 0;
  int64_t attempt = 0;
  std::string reason{};
  std::string message{};
  int64_t slots = 0;
  int64_t most_slots = 0;  // elastic: to so many it grows; 0: `slots` is all
  int64_t priority = 0;
  int64_t created_ms = 0;
  int64_t start_ms = 0;  // expected, if it has not started
  int64_t updated_ms = 0;
  bool ended = false;
  // Filled by AddPlaces: of the present attempt, in the order of the slots, each once; and its
  // place in line, 0: none.
  std::vector<std::string> nodes{};
  size_t more_nodes = 0;  // that are not among them
  size_t position = 0;

  // "4"; of an elastic job what it holds and the most, "3/8".
  std::string SlotsText() const;
  // "namespace/name"; of a claim the name alone.
  std::string FullName() const { return space.empty() ? name : space + "/" + name; }
};

struct JobEvent {
  int64_t version = 0;
  int64_t time_ms = 0;
  std::string state{};
  int64_t attempt = 0;
  std::string reason{};
  std::string message{};
};

// How many came before the first of them, and are left out.
inline int64_t LeftOut(const std::vector<JobEvent>& events) {
  return events.empty() ? 0 : events.front().version - 1;
}

// What a job was told of its start (queue.promises).
struct Promise {
  int64_t told_ms = 0;
  int64_t start_ms = 0;  // 0: the promise before it was withdrawn
  bool firm = false;
  bool kept = false;    // it was allocated then
  std::string cause{};  // "node", "window" …; empty: it is the first, or earlier
  std::string by{};     // the node, the window, the job's id
};

struct JobSlot {
  int64_t part = 0;
  int64_t slot = 0;
  std::string node{};
  bool released = false;
  std::string pod{};        // empty: none (any more)
  std::string pod_state{};  // of binder.slots
};

// What a queue, with those below it, may use in a period, and has used since that began.
struct BudgetUse {
  scheduling::Budget budget{};
  double used_hours = 0;
};

struct QueueInfo {
  std::string pool{};
  std::string queue{};
  std::string strategy{};
  int64_t priority = 0;
  int64_t weight = 0;
  int64_t depth = 0;
  int64_t default_duration_ms = 0;  // 0: unlimited, both
  int64_t max_duration_ms = 0;
  std::string parent{};
  std::string order{};  // "priority", "fair-share"
  // As set: "user: 4 running, cpu 16; namespace: 100 in line". Empty: none.
  std::string limits{};
  // The same: of all its jobs, of each namespace, of each user.
  events::v1::Limits together{};
  events::v1::Limits of_namespace{};
  events::v1::Limits of_user{};
  std::vector<BudgetUse> budgets{};
  bool exists = false;                    // else jobs wait for it to be made
  std::map<std::string, int64_t> jobs{};  // by state
};

// By pool and queue.
using HeldByQueue = std::map<std::pair<std::string, std::string>, scheduling::Resources>;

class JobStore {
 public:
  // `connections`: calls at once.
  explicit JobStore(const postgres::Options& options, size_t connections = 1);

  // The oldest first. `*total`: how many there are without the limit.
  absl::StatusOr<std::vector<Job>> Jobs(const JobFilter& filter, int64_t* total);
  // With their places: the first `most` in line of each queue, by queue and place, then of the
  // other live jobs the `most` newest.
  absl::StatusOr<std::vector<Job>> Front(size_t most);
  // By id, namespace/name or name; the newest first.
  absl::StatusOr<std::vector<Job>> Find(const std::string& wanted);
  // namespace/name of the newest jobs.
  absl::StatusOr<std::vector<std::string>> Names();
  // Of what AddPlaces adds the nodes alone: one query, whatever is in line.
  absl::Status AddNodes(std::vector<Job>* jobs);
  // Nodes from the matcher's allocations, positions from the queue's own core over the queue's
  // rows.
  absl::Status AddPlaces(std::vector<Job>* jobs);
  // The oldest first; of many the last 500.
  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id);
  // The oldest first; of many the last 100.
  absl::StatusOr<std::vector<Promise>> Promises(const std::string& job_id);
  absl::StatusOr<std::vector<JobSlot>> Slots(const Job& job);
  // What jobs hold, by pool and queue. O(jobs that hold something).
  absl::StatusOr<HeldByQueue> Held();
  // `ended`: count those that have ended too, which reads the whole table.
  absl::StatusOr<std::vector<QueueInfo>> Queues(bool ended = true);

 private:
  postgres::Pool connections_;
};

}  // namespace fluxqueue::job_store
