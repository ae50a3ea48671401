// For tests of BindPlanner: a cluster, tables and a log in memory, and the loop that joins them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "services/binder/domain/bind_planner.h"

namespace fluxqueue::binder {

inline constexpr std::string_view kTestSpace = "default";

// Pods and Jobs as an API server holds them, with its preconditions.
class FakeCluster {
 public:
  struct Event {
    std::optional<PodFacts> pod;  // unset: gone
    std::string uid;
  };

  // A held pod that waits. `name` doubles as its uid unless one is given.
  PodFacts& AddPod(const std::string& job_id,
                   const std::string& name,
                   int index = -1,
                   bool pinned = false,
                   std::string uid = {});
  PodFacts* Pod(const std::string& name);
  // The pod as it is now becomes news.
  void Touch(PodFacts& pod);
  void End(const std::string& name, PodFacts::Phase phase);
  // As a user or a controller does it: at once if it is not bound.
  void Delete(const std::string& name);
  void Remove(const std::string& name);
  // kube-scheduler binds a released pod.
  void Schedule(const std::string& name, const std::string& node);

  // What the API server and the adapter make of a call.
  CallResult Execute(const Call& call);

  std::map<std::string, PodFacts> pods;   // by name
  std::map<std::string, bool> suspended;  // by Job name, those that exist
  std::map<std::string, bool> suspended_by_us;
  std::map<std::string, int64_t> deadlines;         // of Jobs, in seconds; 0: none was set
  std::map<std::string, int64_t> completions_left;  // by Job name
  std::set<std::string> lost_nodes;
  std::map<std::string, std::string> closed_nodes;  // why
  std::map<std::string, std::string> node_uids;     // by name; of others it makes no difference
  Millis now{0};
  std::deque<Event> events;  // not yet told to the planner

 private:
  CallResult ExecuteOnPod(const Call& call);
  CallResult Start(const Call& call, PodFacts& pod);
  // The node is another than the call names.
  bool IsReplaced(const Call& call) const;

  uint64_t version_ = 100;
};

// binder.jobs, binder.slots, matcher.allocations and matcher.graph_nodes.
struct FakeTables {
  void Apply(const Rows& rows);
  std::vector<SlotRow> SlotsOf(const std::string& job_id) const;

  std::map<std::string, JobRow> jobs;
  std::map<std::tuple<std::string, uint32_t, int>, SlotRow> slots;
  std::map<std::pair<std::string, uint32_t>, PlacementRow> placements;
  std::map<std::string, std::string> node_uids;  // by name
};

// One binder with everything around it. Time stands still until it is told to move.
class PlannerHarness {
 public:
  explicit PlannerHarness(PlanOptions options = {});

  events::v1::JobFact Fact(const std::string& job_id,
                           events::v1::JobState state,
                           uint32_t slots,
                           uint32_t attempt = 1);
  // Slot i on node "n<i>", 1000 millicores each.
  void PlaceJob(const std::string& job_id, uint32_t attempt, uint32_t slots);

  // One batch: what was written to the log since, all cluster events. The calls that the commit let
  // out.
  std::vector<Call> Batch();
  // The same, but the commit fails.
  void FailedBatch();
  // Executes calls and gives their answers to the planner.
  void Execute(const std::vector<Call>& calls);
  // Batches and calls until nothing happens any more (time moves over first retries, not over
  // timeouts).
  void Settle();
  // A new binder on the tables and the log as they are. Calls of the former one are lost.
  void Restart();
  void TellEvents();
  // As after a restore: no row of jobs and slots is there.
  void LoseRows();

  std::vector<std::string> Said(std::string_view type) const;  // "job_bound" → {"a/1", …}
  const Slot& SlotOf(const std::string& job_id, size_t slot) const;

  PlanOptions options;
  FakeCluster cluster;
  FakeTables tables;
  std::deque<events::v1::JobFact> log;  // not yet consumed
  std::vector<Saying> sayings;          // committed
  std::unique_ptr<BindPlanner> planner;
  Millis now{1'000'000};

 private:
  void HandleAndPlan(std::vector<Saying>* said);

  std::map<std::string, uint64_t> versions_;
};

// What the slot of the pod is proven by: the text itself stands for its signature.
std::string ProofTextOf(const PodFacts& pod);
// Holds where a pod shows that text.
ProofCheck TestProofs();

// "bind a-0 n0"
std::string Describe(const Call& call);
std::vector<std::string> Describe(const std::vector<Call>& calls);

}  // namespace fluxqueue::binder
