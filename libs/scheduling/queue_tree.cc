#include "libs/scheduling/queue_tree.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {
namespace {

template <typename Each>
void ForEachAccount(QueueNode& node, Each each) {
  each(node.total);
  for (auto& accounts : node.accounts) {
    for (auto& [name, account] : accounts) each(account);
  }
}

PastRow RowOf(const QueueNode& queue, const Account& account) {
  return {queue.name, account.level, account.name, account.past};
}

}  // namespace

std::optional<JobOrder> FindJobOrder(std::string_view name) {
  if (name.empty() || name == "priority") return JobOrder::kPriority;
  if (name == "fair-share") return JobOrder::kFairShare;
  return std::nullopt;
}

int32_t QueueSpec::WeightOf(std::string_view user) const {
  const auto known = user_weights.find(user);
  return known == user_weights.end() ? 1 : std::max(known->second, 1);
}

std::string JobOrderNames() {
  return "priority, fair-share";
}

bool PrecedesByPriority(const Owner& first, const Owner& second) {
  const auto [a, b] =
      std::mismatch(first.rungs.rbegin(),
                    first.rungs.rend(),
                    second.rungs.rbegin(),
                    second.rungs.rend(),
                    [](const Owner::Rung& x, const Owner::Rung& y) { return x.queue == y.queue; });
  if (a == first.rungs.rend() || b == second.rungs.rend()) return false;
  return a->queue->spec.priority > b->queue->spec.priority;
}

QueueNode& QueueTree::Node(const std::string& queue) {
  std::unique_ptr<QueueNode>& node = nodes_[queue];
  if (node == nullptr) {
    node = std::make_unique<QueueNode>();
    node->name = queue;
    node->counts_others = counts_others_;
  }
  return *node;
}

QueueNode* QueueTree::ParentOf(const QueueNode& node) const {
  const auto find = [this](const std::string& name) -> QueueNode* {
    const auto it = name.empty() ? nodes_.end() : nodes_.find(name);
    return it == nodes_.end() || !it->second->configured ? nullptr : it->second.get();
  };
  // Does the way up come back to it? It may also end in a cycle of which it is no part.
  std::set<const QueueNode*> seen;
  for (QueueNode* at = find(node.spec.parent); at != nullptr && seen.insert(at).second;
       at = find(at->spec.parent)) {
    if (at == &node) return nullptr;
  }
  return find(node.spec.parent);
}

std::string QueueTree::ParentProblem(const std::string& queue) const {
  const auto it = nodes_.find(queue);
  if (it == nodes_.end() || it->second->spec.parent.empty()) return "";
  const QueueNode& node = *it->second;
  if (node.parent != nullptr) return "";
  const auto parent = nodes_.find(node.spec.parent);
  return parent != nodes_.end() && parent->second->configured
             ? fmt::format("its parent {} is below it: each queue of the cycle is a root",
                           node.spec.parent)
             : fmt::format("its parent {} does not exist in the pool: it is a root until it does",
                           node.spec.parent);
}

void QueueTree::Configure(const std::string& queue, std::optional<QueueSpec> spec, int64_t now_ms) {
  QueueNode& node = Node(queue);
  const bool configured = spec.has_value();
  QueueSpec next = configured ? *std::move(spec) : QueueSpec();
  if (configured == node.configured && next == node.spec) return;
  Forget(now_ms);
  const bool counts_otherwise =
      next.half_life_ms != node.spec.half_life_ms || next.budgets != node.spec.budgets;
  // Until now another half-life held, and other budgets.
  ForEachAccount(node, [&](Account& account) {
    if (counts_otherwise && account.past.at_ms != 0) Advance(&node, &account, now_ms);
  });
  const bool moves = configured != node.configured || next.parent != node.spec.parent;
  node.configured = configured;
  node.spec = std::move(next);
  if (moves) Relink(now_ms);
  ForEachAccount(node, [&](Account& account) { PlanToForget(&node, &account); });
}

void QueueTree::CountOthers(bool counts) {
  counts_others_ = counts;
  for (auto& [name, node] : nodes_) node->counts_others = counts;
}

void QueueTree::Relink(int64_t now_ms) {
  for (auto& [name, node] : nodes_) node->children.clear();
  for (auto& [name, node] : nodes_) {
    node->parent = ParentOf(*node);
    if (node->parent != nullptr) node->parent->children.push_back(node.get());
  }
  struct Sum {
    Resources held;
    uint32_t running = 0;
  };
  std::unordered_map<Account*, Sum> sums;
  for (auto& [name, node] : nodes_) {
    for (auto& [key, owner] : node->owners) {
      LinkOwner(owner.get());
      if (owner->running == 0) continue;
      for (const Owner::Rung& rung : owner->rungs) {
        for (Account* account : rung.accounts) {
          Sum& sum = sums[account];
          sum.held.Add(owner->held);
          sum.running += owner->running;
        }
      }
    }
  }
  for (auto& [name, node] : nodes_) {
    ForEachAccount(*node, [&](Account& account) {
      const auto found = sums.find(&account);
      const Sum sum = found == sums.end() ? Sum() : found->second;
      if (sum.running == account.running && sum.held == account.held) return;
      // Until now it held what it did.
      Advance(node.get(), &account, now_ms);
      account.held = sum.held;
      account.running = sum.running;
      PlanToForget(node.get(), &account);
    });
  }
}

void QueueTree::Forget(int64_t now_ms) {
  while (!to_forget_.empty() && to_forget_.begin()->first.first <= now_ms) {
    Account* account = to_forget_.begin()->first.second;
    QueueNode* queue = to_forget_.begin()->second;
    before_.try_emplace(account, Before{queue, account->past});
    account->past = {};
    PlanToForget(queue, account);
  }
}

void QueueTree::PlanToForget(QueueNode* queue, Account* account) {
  if (account->forget_ms != 0) to_forget_.erase({account->forget_ms, account});
  const bool fades = account->past.at_ms != 0 && account->running == 0;
  account->forget_ms = fades ? NothingFrom(account->past, queue->spec.half_life_ms) : 0;
  if (account->forget_ms != 0) to_forget_.emplace(std::pair(account->forget_ms, account), queue);
}

Account* QueueTree::AccountOf(QueueNode* queue, Level level, const std::string& name) {
  if (level == Level::kQueue) return &queue->total;
  const auto [it, made] = queue->accounts[static_cast<size_t>(level)].try_emplace(name);
  if (made) {
    it->second.level = level;
    it->second.name = name;
  }
  return &it->second;
}

void QueueTree::LinkOwner(Owner* owner) {
  owner->rungs.clear();
  for (QueueNode* at = owner->queue; at != nullptr; at = at->parent) {
    owner->rungs.push_back({at,
                            {AccountOf(at, Level::kQueue, ""),
                             AccountOf(at, Level::kNamespace, owner->space),
                             AccountOf(at, Level::kUser, owner->user)}});
  }
}

Owner* QueueTree::OwnerOf(const std::string& queue,
                          const std::string& user,
                          const std::string& space) {
  QueueNode& node = Node(queue);
  std::unique_ptr<Owner>& owner = node.owners[{user, space}];
  if (owner == nullptr) {
    owner = std::make_unique<Owner>();
    owner->queue = &node;
    owner->user = user;
    owner->space = space;
    LinkOwner(owner.get());
  }
  return owner.get();
}

void QueueTree::Wait(Owner* owner, OrderKey key, WaitingJob* job) {
  CHECK(job->amounts != nullptr, "submission {} has no amounts", key.submission);
  std::vector<Owner*>& waiting = owner->queue->waiting;
  if (owner->line.empty()) {
    owner->waiting_at = waiting.size();
    waiting.push_back(owner);
  }
  owner->line.Insert(key, job);
}

void QueueTree::NoLongerWait(Owner* owner, OrderKey key) {
  owner->line.Erase(key);
  if (!owner->line.empty()) return;
  std::vector<Owner*>& waiting = owner->queue->waiting;
  Owner* const last = waiting.back();
  waiting[owner->waiting_at] = last;
  last->waiting_at = owner->waiting_at;
  waiting.pop_back();
}

void QueueTree::Advance(QueueNode* queue, Account* account, int64_t now_ms) {
  if (now_ms <= account->past.at_ms) return;
  before_.try_emplace(account, Before{queue, account->past});
  account->past = PastOf(*queue, *account, now_ms);
}

void QueueTree::Change(Owner* owner, const Resources& amounts, int64_t now_ms, bool holds) {
  Forget(now_ms);
  const auto change = [&](Resources& held, uint32_t& running) {
    if (holds) {
      held.Add(amounts);
      ++running;
    } else {
      held.Remove(amounts);
      --running;
    }
  };
  change(owner->held, owner->running);
  for (const Owner::Rung& rung : owner->rungs) {
    for (Account* account : rung.accounts) {
      Advance(rung.queue, account, now_ms);
      change(account->held, account->running);
      PlanToForget(rung.queue, account);
    }
  }
}

std::vector<PastRow> QueueTree::ChangedPasts() const {
  std::vector<PastRow> rows;
  for (const auto& [account, before] : before_) {
    if (account->past != before.past) rows.push_back(RowOf(*before.queue, *account));
  }
  std::sort(rows.begin(), rows.end(), [](const PastRow& a, const PastRow& b) {
    return std::tie(a.queue, a.level, a.name) < std::tie(b.queue, b.level, b.name);
  });
  return rows;
}

std::vector<PastRow> QueueTree::Pasts() const {
  std::vector<PastRow> rows;
  for (const auto& [name, node] : nodes_) {
    ForEachAccount(*node, [&](const Account& account) {
      if (account.past.at_ms != 0) rows.push_back(RowOf(*node, account));
    });
  }
  return rows;
}

void QueueTree::SetPast(const PastRow& row) {
  QueueNode& queue = Node(row.queue);
  Account* account = AccountOf(&queue, row.level, row.name);
  account->past = row.past;
  PlanToForget(&queue, account);
}

void QueueTree::RestorePasts() {
  for (const auto& [account, before] : before_) {
    account->past = before.past;
    PlanToForget(before.queue, account);
  }
  before_.clear();
}

void QueueTree::Clear() {
  nodes_.clear();
  before_.clear();
  to_forget_.clear();
}

}  // namespace fluxqueue::scheduling
