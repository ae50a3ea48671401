// What the fake API server serves: nodes, and one-pod Jobs that have passed the webhook, with a pod
// each. A pod that is bound runs, and when its time is over succeeds and completes its Job, each as
// a change of its own, as a cluster would show it. FluxJobs and Events are taken and kept.
//
// Made to cost little, since it shares the machine with what is measured: a Job and its pod are a
// few fields, from which the texts are made when somebody asks. So there is no history: a watch
// that begins at a resourceVersion is told what is newer, as it is now; nothing is ever deleted.
// Objects carry no managedFields, which makes them about half as long as a real server's.
//
// Pure: time is an argument. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fluxqueue::bench {

inline constexpr std::string_view kSpace = "bench";
inline constexpr int kNodeCpu = 8;

inline constexpr int64_t kForEver = -1;

// What Jobs ask for, and how long they run.
struct JobShape {
  std::string prefix = "job";  // names are <prefix>-<number>
  int cpu_millis = 100;
  int64_t run_ms = 0;  // kForEver: it never ends
};

// Times of a Job here, in milliseconds since the epoch; 0: not yet.
struct JobTimes {
  std::string uid;
  int64_t created = 0;
  int64_t bound = 0;
  int64_t ended = 0;
};

struct Answer {
  int status = 200;
  std::string body;
};

class FakeCluster {
 public:
  // A change of an object of `plural`: one line of a watch, with its newline.
  using Listener = std::function<void(std::string_view plural, std::string_view line)>;

  FakeCluster(int nodes, int64_t now_ms, Listener listener);

  // One Job and its pod.
  void Submit(const JobShape& shape, int64_t now_ms);

  // Pods whose time is over end.
  void Advance(int64_t now_ms);
  // When the next one is to.
  std::optional<int64_t> NextEnd() const;

  // The requests of Kubernetes' API. `after` is the continue token of a list.
  Answer List(std::string_view plural, std::string_view after, size_t limit) const;
  Answer EmptyList() const;
  Answer Get(std::string_view plural, std::string_view name) const;
  Answer Bind(const std::string& pod, std::string_view body, int64_t now_ms);
  Answer Create(std::string_view plural, std::string_view body);
  Answer Patch(std::string_view plural, const std::string& name, std::string_view body);

  // The lines that a watch from `version` begins with.
  std::string NewerThan(std::string_view plural, uint64_t version) const;
  std::string Bookmark(std::string_view plural) const;

  size_t jobs() const { return jobs_.size(); }
  size_t bound() const { return bound_; }
  size_t complete() const { return complete_; }
  size_t flux_jobs() const { return flux_jobs_.size(); }
  // Of the Jobs whose names begin so.
  std::vector<JobTimes> Times(std::string_view prefix) const;

 private:
  enum class Phase { kPending, kBound, kRunning, kSucceeded };
  struct Job {
    std::string name;
    std::string uid;
    std::string pod_uid;
    size_t shape = 0;  // in shapes_
    int64_t created = 0;
    int64_t bound = 0;
    int64_t ended = 0;
    Phase phase = Phase::kPending;
    std::string node;
    std::string annotations;  // JSON object
    uint64_t job_created_version = 0;
    uint64_t job_version = 0;
    uint64_t pod_created_version = 0;
    uint64_t pod_version = 0;
  };
  // An object that never changes.
  struct Fixed {
    std::string name;
    uint64_t version = 0;
    std::string text;
  };
  // A FluxJob: as it was created, and the merge patches since. Applied when somebody reads it.
  struct FluxJob {
    std::string text;
    std::vector<std::string> patches;
  };

  size_t ShapeIndex(const JobShape& shape);
  void AddNodes(int count, int64_t now_ms);
  std::string JobText(const Job& job) const;
  std::string PodText(const Job& job) const;
  void TellJob(const Job& job, std::string_view type) const;
  void TellPod(const Job& job, std::string_view type) const;
  void Move(Job& job, Phase phase);
  void End(Job& job, int64_t now_ms);
  std::string FluxJobText(const FluxJob& flux_job) const;
  const Job* FindJob(std::string_view name) const;
  // At most `limit` objects of a list, from the `first`th on.
  std::vector<std::string> Items(std::string_view plural, size_t first, size_t limit) const;

  const Listener listener_;
  uint64_t version_ = 0;
  std::map<std::string, std::vector<Fixed>, std::less<>> fixed_;  // by plural
  std::vector<JobShape> shapes_;
  std::vector<Job> jobs_;
  std::unordered_map<std::string, size_t> by_name_;  // index in jobs_
  std::multimap<int64_t, size_t> ends_;              // of those that run, and their index
  std::map<std::string, FluxJob, std::less<>> flux_jobs_;
  size_t bound_ = 0;
  size_t complete_ = 0;
};

}  // namespace fluxqueue::bench
