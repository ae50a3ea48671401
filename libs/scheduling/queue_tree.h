// The queues of a pool as a tree, who holds and has used what in each of them, and the jobs that
// stand in line.
//
// A queue without a parent is a root. One whose parent does not exist is a root until it does; of
// queues that are each other's parents each is a root, so no walk upwards is without end.
//
// An owner is one user's jobs of one namespace in one queue: its line, and what it holds. Accounts
// keep the sums: at each queue from the owner's up to the root there is one of the queue, one of
// the namespace and one of the user. What is held are whole numbers, and follows from the jobs;
// what was used (usage.h) is history: it is what Pasts() gives to be kept, and SetPast() takes
// back. A past of which nothing is left (NothingFrom) is forgotten, once somebody's job starts or
// ends, or a queue is configured.
//
// Costs: O(depth · log(accounts)) for what a job changes; O(owners) when a queue comes, goes or
// gets another parent, and then only the pasts change of those accounts whose sums do.
//
// Thread-compatible. Owners and accounts live as long as the tree, at their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/scheduling/limits.h"
#include "libs/scheduling/resources.h"
#include "libs/scheduling/usage.h"
#include "libs/scheduling/waiting_list.h"

namespace fluxqueue::scheduling {

enum class JobOrder {
  kPriority,   // rank, then submission
  kFairShare,  // the user with the smallest share first; of one user by rank, then submission
};

// The order of that name ("" is "priority"); unset: there is none.
std::optional<JobOrder> FindJobOrder(std::string_view name);
std::string JobOrderNames();  // for messages

struct QueueSpec {
  std::string parent;  // empty: a root
  int32_t priority = 0;
  int32_t weight = 1;  // below 1 counts as 1
  JobOrder order = JobOrder::kPriority;
  Resources guarantee;
  Limits limits[3];  // by Level
  // Of one job. Amounts only.
  Limits most_per_job;
  Resources least_per_job;
  std::map<std::string, int32_t, std::less<>> user_weights;  // of others: 1
  std::vector<Budget> budgets;  // of its jobs and those of the queues below it
  int64_t half_life_ms = 0;
  int64_t aging_ms = 0;
  uint32_t depth = 0;  // of its own jobs a pass names so many; 0: all

  // Of a user's share in it, and below 1 of none.
  int32_t WeightOf(std::string_view user) const;

  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

// What a line knows of a job. The caller's jobs derive from it.
struct WaitingJob {
  OrderKey line_key;
  const Resources* amounts = nullptr;  // never null while it stands in line
};

struct QueueNode;

struct Account {
  Level level = Level::kQueue;
  std::string name;  // the namespace's or user's; empty for the queue's
  Resources held;
  uint32_t running = 0;
  Past past;              // at 0: none
  int64_t forget_ms = 0;  // when nothing is left of it; 0: it holds something, or has no past

  // Belongs to the pass under way (fair_share.h).
  struct Scratch {
    uint64_t pass = 0;
    // Held, and used on the average before.
    std::array<double, kShared> used = {};
    OthersUsed others;
    double gpu_seconds = 0;
    std::vector<Spent> spent;
    Resources planned;
    uint32_t named = 0;
    uint32_t group = 0;
  };
  Scratch scratch;
};

struct Owner {
  QueueNode* queue = nullptr;
  std::string user;
  std::string space;
  WaitingList<WaitingJob> line;
  Resources held;
  uint32_t running = 0;

  // From its queue up to the root.
  struct Rung {
    QueueNode* queue;
    Account* accounts[3];  // by Level
  };
  std::vector<Rung> rungs;
  // Its place in QueueNode::waiting, while its line is not empty.
  size_t waiting_at = 0;
};

struct QueueNode {
  std::string name;
  bool configured = false;
  bool counts_others = false;  // as the tree
  QueueSpec spec;
  QueueNode* parent = nullptr;
  std::vector<QueueNode*> children;  // by name
  Account total;
  std::map<std::string, Account, std::less<>> accounts[3];  // by Level; none for kQueue
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Owner>> owners;  // user, namespace
  std::vector<Owner*> waiting;  // those with a line, in no order
};

// True when, below the point where the ways up of both queues meet, the first one's branch has the
// higher priority: then its jobs go first whatever their shares.
bool PrecedesByPriority(const Owner& first, const Owner& second);

// A past to be kept; at 0: to be kept no more.
struct PastRow {
  std::string queue;
  Level level = Level::kQueue;
  std::string name;
  Past past;

  friend bool operator==(const PastRow&, const PastRow&) = default;
};

class QueueTree {
 public:
  // Unset: the queue is not configured (any more). It keeps its jobs, as a root, and is no parent.
  void Configure(const std::string& queue, std::optional<QueueSpec> spec, int64_t now_ms);
  // What was used of resources that are no cpu, memory or gpu is counted from now on, or not.
  void CountOthers(bool counts);
  QueueNode& Node(const std::string& queue);  // made when it is not known
  const std::map<std::string, std::unique_ptr<QueueNode>>& nodes() const { return nodes_; }

  // Why the parent of this queue does not count; empty: it does, or there is none.
  std::string ParentProblem(const std::string& queue) const;

  Owner* OwnerOf(const std::string& queue, const std::string& user, const std::string& space);

  void Wait(Owner* owner, OrderKey key, WaitingJob* job);
  void NoLongerWait(Owner* owner, OrderKey key);
  // A job of the owner holds these from now on, or no longer.
  void Hold(Owner* owner, const Resources& amounts, int64_t now_ms) {
    Change(owner, amounts, now_ms, true);
  }
  void GiveBack(Owner* owner, const Resources& amounts, int64_t now_ms) {
    Change(owner, amounts, now_ms, false);
  }

  // As it would be at that time, with what is held now.
  static Past PastOf(const QueueNode& queue, const Account& account, int64_t now_ms) {
    const UsageRules rules = {
        .half_life_ms = queue.spec.half_life_ms,
        .counts_others = queue.counts_others,
        .budgets = account.level == Level::kQueue ? &queue.spec.budgets : nullptr};
    return BroughtForward(account.past, account.held, now_ms, rules);
  }

  // ---------------------------------------------------------------------------------- the batch
  // Pasts that changed since the last Commit, in the order of queue, level and name.
  std::vector<PastRow> ChangedPasts() const;
  // All that there are.
  std::vector<PastRow> Pasts() const;
  void SetPast(const PastRow& row);
  void Commit() { before_.clear(); }
  // The pasts as they were at the last Commit. Configurations, lines and what is held are the
  // caller's to put back, before.
  void RestorePasts();

  void Clear();
  uint64_t NextPass() { return ++pass_; }

 private:
  struct Before {
    QueueNode* queue;
    Past past;
  };

  void Change(Owner* owner, const Resources& amounts, int64_t now_ms, bool holds);
  void Advance(QueueNode* queue, Account* account, int64_t now_ms);
  void Relink(int64_t now_ms);
  // Those of whose pasts nothing is left by now have none any more.
  void Forget(int64_t now_ms);
  // To be called when its past, what it holds or the half-life has changed.
  void PlanToForget(QueueNode* queue, Account* account);
  void LinkOwner(Owner* owner);
  QueueNode* ParentOf(const QueueNode& node) const;
  static Account* AccountOf(QueueNode* queue, Level level, const std::string& name);

  std::map<std::string, std::unique_ptr<QueueNode>> nodes_;
  std::unordered_map<Account*, Before> before_;
  // By Account::forget_ms.
  std::map<std::pair<int64_t, Account*>, QueueNode*> to_forget_;
  uint64_t pass_ = 0;
  bool counts_others_ = false;
};

}  // namespace fluxqueue::scheduling
