#include "libs/scheduling/fair_share.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {
namespace {

// What shares are taken of: of each resource the capacity, ÷ what it is billed with.
class Capacity {
 public:
  explicit Capacity(const PassOptions& options) {
    constexpr std::array<double, kShared> kOneNode = {
        64'000, 256.0 * (int64_t{1} << 30), 8.0 * kWholeGpu};
    const bool known = options.capacity[kCpu] > 0;
    for (size_t i = 0; i < kShared; ++i) {
      const double all = known ? static_cast<double>(options.capacity[i]) : kOneNode[i];
      shared_[i] = Billed(all, SharedName(i), options);
    }
    if (!options.has_accounts) return;
    for (const auto& [name, all] : options.capacity.others()) {
      const double billed = Billed(static_cast<double>(all), name, options);
      if (billed > 0) others_.emplace_back(name, billed);
    }
  }

  double Dominant(const std::array<double, kShared>& amounts) const {
    double share = 0;
    for (size_t i = 0; i < kShared; ++i) {
      if (shared_[i] > 0) share = std::max(share, amounts[i] / shared_[i]);
    }
    return share;
  }
  double ShareOf(std::string_view other, double amount) const {
    const auto it = std::lower_bound(
        others_.begin(), others_.end(), other, [](const auto& known, std::string_view wanted) {
          return known.first < wanted;
        });
    return it == others_.end() || it->first != other ? 0 : amount / it->second;
  }
  bool has_others() const { return !others_.empty(); }

 private:
  // 0: it does not count.
  static double Billed(double all, std::string_view name, const PassOptions& options) {
    const auto weight = options.billing.find(name);
    if (weight == options.billing.end()) return all;
    return weight->second > 0 ? all / weight->second : 0;
  }

  std::array<double, kShared> shared_ = {};
  OthersUsed others_;  // by name
};

int64_t AgeOf(const PassOptions& options) {
  return options.now_ms - options.beginning_ms;
}

std::array<double, kShared> UsedOf(const QueueNode& queue,
                                   const Account& account,
                                   const Past& past,
                                   const PassOptions& options) {
  std::array<double, kShared> used;
  for (size_t i = 0; i < kShared; ++i) {
    used[i] = static_cast<double>(account.held[i]) +
              AverageOf(past.used[i], queue.spec.half_life_ms, AgeOf(options));
  }
  return used;
}

OthersUsed OthersOf(const QueueNode& queue,
                    const Account& account,
                    const Past& past,
                    const PassOptions& options) {
  OthersUsed others;
  for (const auto& [name, used] : past.others) {
    others.emplace_back(name, AverageOf(used, queue.spec.half_life_ms, AgeOf(options)));
  }
  for (const auto& [name, held] : account.held.others()) {
    const auto known = std::find_if(
        others.begin(), others.end(), [&name](const auto& one) { return one.first == name; });
    if (known != others.end()) {
      known->second += static_cast<double>(held);
    } else {
      others.emplace_back(name, static_cast<double>(held));
    }
  }
  return others;
}

// With what is planned beside it.
double DominantOf(const Capacity& capacity,
                  std::array<double, kShared> used,
                  const OthersUsed& others,
                  const Resources& planned) {
  for (size_t i = 0; i < kShared; ++i) used[i] += static_cast<double>(planned[i]);
  double share = capacity.Dominant(used);
  if (!capacity.has_others()) return share;
  for (const auto& [name, amount] : others) {
    const auto more = static_cast<double>(planned.Of(name));
    share = std::max(share, capacity.ShareOf(name, amount + more));
  }
  // Those that are in both count for more above.
  for (const auto& [name, amount] : planned.others()) {
    share = std::max(share, capacity.ShareOf(name, static_cast<double>(amount)));
  }
  return share;
}

double GpuSecondsOf(const Past& past) {
  return past.used[kGpu] / kWholeGpu;
}

const Resources& Nothing() {
  static const Resources nothing;
  return nothing;
}

// The first limit on the way up that is against the job. `spent_of`: what of the queue's budgets.
template <typename StandingOf, typename SpentOfQueue>
std::optional<HeldJob> AgainstJob(const Owner& owner,
                                  const WaitingJob& job,
                                  StandingOf standing_of,
                                  SpentOfQueue spent_of) {
  for (const Owner::Rung& rung : owner.rungs) {
    const QueueSpec& spec = rung.queue->spec;
    Account* const total = rung.accounts[static_cast<size_t>(Level::kQueue)];
    auto of_queue = SizeAgainst(spec.most_per_job, spec.least_per_job, *job.amounts);
    if (!of_queue.has_value() && !spec.budgets.empty()) {
      of_queue = BudgetAgainst(spec.budgets, spent_of(*rung.queue, *total), *job.amounts);
    }
    if (of_queue.has_value()) {
      return HeldJob{&job, *std::move(of_queue), Level::kQueue, total, rung.queue};
    }
    for (size_t level = 0; level < 3; ++level) {
      const Limits& limits = spec.limits[level];
      if (limits.none()) continue;
      Account* account = rung.accounts[level];
      auto held = FirstAgainst(limits, standing_of(*rung.queue, *account, limits), *job.amounts);
      if (held.has_value()) {
        return HeldJob{&job, *std::move(held), static_cast<Level>(level), account, rung.queue};
      }
    }
  }
  return std::nullopt;
}

// Without a sum, which may be too large.
bool HasLess(int64_t guaranteed, int64_t held, int64_t planned) {
  return held < guaranteed && planned < guaranteed - held;
}

}  // namespace

std::string HeldJob::Sentence() const {
  return scheduling::Sentence(held, level, account->name, queue->name, queue->spec.half_life_ms);
}

std::optional<HeldJob> HeldBack(const Owner& owner, const WaitingJob& job, int64_t now_ms) {
  const auto past_of = [now_ms](const QueueNode& queue, const Account& account) {
    return QueueTree::PastOf(queue, account, now_ms);
  };
  return AgainstJob(
      owner,
      job,
      [&](const QueueNode& queue, const Account& account, const Limits& limits) {
        const double gpu_seconds =
            limits.gpu_seconds.has_value() ? GpuSecondsOf(past_of(queue, account)) : 0;
        return Standing{account.held, account.running, gpu_seconds, Nothing(), 0};
      },
      [&](const QueueNode& queue, const Account& total) { return past_of(queue, total).spent; });
}

double ShareOf(const QueueNode& queue, const Account& account, const PassOptions& options) {
  const Past past = QueueTree::PastOf(queue, account, options.now_ms);
  return DominantOf(Capacity(options),
                    UsedOf(queue, account, past, options),
                    OthersOf(queue, account, past, options),
                    Nothing());
}

double DominantShare(const Resources& amounts, const Resources& capacity) {
  return DominantOf(Capacity({.capacity = capacity}), {}, {}, amounts);
}

// `asked`: what counts; null: everything.
bool IsBelowGuarantee(const QueueNode& queue,
                      const Resources& planned,
                      const Resources* asked,
                      const PassOptions& options) {
  const Resources& held = queue.total.held;
  bool below = false;
  for (size_t i = 0; i < kShared; ++i) {
    const int64_t guaranteed = queue.spec.guarantee[i];
    if (guaranteed == 0 || (asked != nullptr && (*asked)[i] == 0)) continue;
    const bool less = HasLess(guaranteed, held[i], planned[i]);
    if (options.has_accounts && !less) return false;
    below = below || less;
  }
  if (!options.guarantees_others) return below;
  for (const auto& [name, guaranteed] : queue.spec.guarantee.others()) {
    if (asked != nullptr && asked->Of(name) == 0) continue;
    if (!HasLess(guaranteed, held.Of(name), planned.Of(name))) return false;
    below = true;
  }
  return below;
}

bool IsBelowGuarantee(const QueueNode& queue, const Resources& asked, const PassOptions& options) {
  return IsBelowGuarantee(queue, Nothing(), options.guarantees_all ? nullptr : &asked, options);
}

class Pass::Impl {
 public:
  Impl(QueueTree* tree, const PassOptions& options)
      : options_(options), capacity_(options), pass_(tree->NextPass()) {
    for (const auto& [name, node] : tree->nodes()) {
      if (node->parent == nullptr) AddNode(node.get(), &roots_);
    }
    std::make_heap(roots_.begin(), roots_.end(), LaterNode);
  }

  WaitingJob* Next() { return NextOf(&roots_); }

  void Prefer(const std::string& queue, std::vector<Preferred> jobs) {
    std::reverse(jobs.begin(), jobs.end());
    for (const Preferred& job : jobs) {
      const bool by_users = options_.has_accounts && IsByUsers(*job.owner->queue);
      preferred_[{queue, by_users ? UserOf(*job.owner) : nullptr}].push_back(job);
    }
  }
  void Close(const std::string& queue) { closed_.insert(queue); }
  uint32_t TakeSpare(const Owner& owner,
                     const Resources& has,
                     const Resources& each,
                     uint32_t most) {
    for (const Owner::Rung& rung : owner.rungs) {
      const QueueSpec& spec = rung.queue->spec;
      const Standing of_job{.held = has, .planned = Nothing()};
      most = TimesWithin(spec.most_per_job, of_job, each, most);
      Account& total = *rung.accounts[static_cast<size_t>(Level::kQueue)];
      const bool is_spent =
          !spec.budgets.empty() &&
          BudgetAgainst(spec.budgets, Fresh(*rung.queue, total).spent, each).has_value();
      if (is_spent) most = 0;
      for (size_t level = 0; level < 3; ++level) {
        const Limits& limits = rung.queue->spec.limits[level];
        if (limits.none()) continue;
        Account& account = *rung.accounts[level];
        most = TimesWithin(limits, StandingOf(*rung.queue, account), each, most);
      }
    }
    Plan(owner, each.Part(most, 1));
    return most;
  }
  const std::vector<HeldJob>& held() const { return held_; }
  std::optional<int64_t> due_ms() const { return due_ms_; }

 private:
  // An owner's line, from `head` on.
  struct Line {
    Owner* owner = nullptr;
    WaitingJob* head = nullptr;
  };
  struct User {
    const QueueNode* queue = nullptr;
    Account* account = nullptr;
    double share = 0;         // ÷ weight
    std::vector<Line> lines;  // a heap
  };
  struct Node {
    QueueNode* queue = nullptr;
    bool satisfied = false;      // has what is guaranteed to it, or nothing is
    double share = 0;            // ÷ weight
    uint32_t named = 0;          // of its own
    std::vector<Node> children;  // a heap
    // Of its own jobs, either of these, by the queue's order. Heaps.
    std::vector<Line> lines;
    std::vector<User> users;
  };

  // Heaps give the greatest first: "less" is who comes later.
  static bool LaterLine(const Line& a, const Line& b) {
    return b.head->line_key < a.head->line_key;
  }
  static bool LaterUser(const User& a, const User& b) {
    if (a.share != b.share) return a.share > b.share;
    return LaterLine(a.lines.front(), b.lines.front());
  }
  static bool LaterNode(const Node& a, const Node& b) {
    const auto key = [](const Node& node) {
      const QueueSpec& spec = node.queue->spec;
      return std::tuple(-int64_t{spec.priority}, node.satisfied, node.share, -int64_t{spec.weight});
    };
    const auto of_a = key(a);
    const auto of_b = key(b);
    if (of_a != of_b) return of_a > of_b;
    return a.queue->name > b.queue->name;
  }

  Account::Scratch& Fresh(const QueueNode& queue, Account& account) {
    Account::Scratch& scratch = account.scratch;
    if (scratch.pass == pass_) return scratch;
    const Past past = QueueTree::PastOf(queue, account, options_.now_ms);
    scratch.pass = pass_;
    scratch.used = UsedOf(queue, account, past, options_);
    if (options_.has_accounts) scratch.others = OthersOf(queue, account, past, options_);
    scratch.gpu_seconds = GpuSecondsOf(past);
    scratch.spent = past.spent;
    scratch.planned = {};
    scratch.named = 0;
    scratch.group = 0;
    return scratch;
  }

  double Share(const QueueNode& queue, Account& account) {
    const Account::Scratch& scratch = Fresh(queue, account);
    return DominantOf(capacity_, scratch.used, scratch.others, scratch.planned);
  }
  // ÷ weight.
  double UserShare(const QueueNode& queue, Account& account) {
    return Share(queue, account) / queue.spec.WeightOf(account.name);
  }

  static bool IsByUsers(const QueueNode& queue) { return queue.spec.order == JobOrder::kFairShare; }
  static const Account* UserOf(const Owner& owner) {
    return owner.rungs.front().accounts[static_cast<size_t>(Level::kUser)];
  }

  void Weigh(Node* node) {
    QueueNode& queue = *node->queue;
    node->share = Share(queue, queue.total) / std::max(queue.spec.weight, 1);
    const WaitingJob* next = options_.guarantees_all ? nullptr : Peek(*node);
    const Resources* asked = next == nullptr ? &Nothing() : next->amounts;
    node->satisfied = !IsBelowGuarantee(
        queue, queue.total.scratch.planned, options_.guarantees_all ? nullptr : asked, options_);
  }

  // Which of its jobs would be next, limits aside; null: none.
  const WaitingJob* Peek(const Node& node) const {
    if (!node.children.empty()) return Peek(node.children.front());
    const Account* user = node.users.empty() ? nullptr : node.users.front().account;
    for (const Account* whose : {static_cast<const Account*>(nullptr), user}) {
      if (preferred_.empty()) break;
      const auto preferred = preferred_.find({node.queue->name, whose});
      if (preferred != preferred_.end() && !preferred->second.empty()) {
        return preferred->second.back().job;
      }
    }
    if (user != nullptr) return node.users.front().lines.front().head;
    return node.lines.empty() ? nullptr : node.lines.front().head;
  }

  // Puts the node into *nodes, unless nobody in it or below it stands in line.
  void AddNode(QueueNode* queue, std::vector<Node>* nodes) {
    Node node;
    node.queue = queue;
    for (QueueNode* child : queue->children) AddNode(child, &node.children);
    std::make_heap(node.children.begin(), node.children.end(), LaterNode);
    for (Owner* owner : queue->waiting) AddLine({owner, owner->line.begin()->second}, &node);
    for (User& user : node.users) {
      std::make_heap(user.lines.begin(), user.lines.end(), LaterLine);
    }
    std::make_heap(node.lines.begin(), node.lines.end(), LaterLine);
    std::make_heap(node.users.begin(), node.users.end(), LaterUser);
    if (node.children.empty() && node.lines.empty() && node.users.empty()) return;
    Weigh(&node);
    nodes->push_back(std::move(node));
  }

  void AddLine(Line line, Node* node) {
    if (node->queue->spec.order == JobOrder::kPriority) {
      node->lines.push_back(line);
      return;
    }
    Account* account = line.owner->rungs.front().accounts[static_cast<size_t>(Level::kUser)];
    const double share = UserShare(*node->queue, *account);
    uint32_t& group = account->scratch.group;  // from 1
    if (group == 0) {
      node->users.push_back({node->queue, account, share, {}});
      group = static_cast<uint32_t>(node->users.size());
    }
    node->users[group - 1].lines.push_back(line);
  }

  WaitingJob* NextOf(std::vector<Node>* nodes) {
    while (!nodes->empty()) {
      std::pop_heap(nodes->begin(), nodes->end(), LaterNode);
      Node& node = nodes->back();
      WaitingJob* job = NextOf(&node.children);
      if (job == nullptr) job = NextOfOwn(&node);
      if (job == nullptr) {
        nodes->pop_back();
        continue;
      }
      Weigh(&node);
      std::push_heap(nodes->begin(), nodes->end(), LaterNode);
      return job;
    }
    return nullptr;
  }

  WaitingJob* NextOfOwn(Node* node) {
    const uint32_t depth = node->queue->spec.depth;
    const bool closed = !closed_.empty() && closed_.contains(node->queue->name);
    if ((depth != 0 && node->named == depth) || closed) return nullptr;
    WaitingJob* job = NextPreferred(node->queue->name, nullptr);
    if (job == nullptr) job = NextOfUsers(&node->users);
    if (job == nullptr) job = NextOfLines(&node->lines);
    if (job != nullptr) ++node->named;
    return job;
  }

  // `user`: of those that are preferred at their turn, else null.
  WaitingJob* NextPreferred(const std::string& queue, const Account* user) {
    if (preferred_.empty()) return nullptr;
    const auto it = preferred_.find({queue, user});
    if (it == preferred_.end()) return nullptr;
    for (std::vector<Preferred>& jobs = it->second; !jobs.empty();) {
      const auto [owner, job] = jobs.back();
      jobs.pop_back();
      if (!MayPass(*owner, *job)) continue;
      Name(*owner, *job);
      tried_.insert(job);
      return job;
    }
    return nullptr;
  }

  // Nobody passes the first of his line while a limit is against that one.
  bool MayPass(const Owner& owner, const WaitingJob& job) {
    const WaitingJob& first = *owner.line.begin()->second;
    if (&first != &job && tried_.count(&first) == 0) {
      const auto held = Against(owner, first);
      if (held.has_value() && held->held.StopsItsLine()) return false;
    }
    return !Against(owner, job).has_value();
  }

  WaitingJob* NextOfUsers(std::vector<User>* users) {
    while (!users->empty()) {
      std::pop_heap(users->begin(), users->end(), LaterUser);
      User& user = users->back();
      WaitingJob* job = NextPreferred(user.queue->name, user.account);
      if (job == nullptr) job = NextOfLines(&user.lines);
      if (user.lines.empty()) {
        users->pop_back();
      } else {
        user.share = UserShare(*user.queue, *user.account);
        std::push_heap(users->begin(), users->end(), LaterUser);
      }
      if (job != nullptr) return job;
    }
    return nullptr;
  }

  WaitingJob* NextOfLines(std::vector<Line>* lines) {
    while (!lines->empty()) {
      std::pop_heap(lines->begin(), lines->end(), LaterLine);
      Line& line = lines->back();
      WaitingJob* job = line.head;
      const bool tried = !tried_.empty() && tried_.count(job) > 0;
      std::optional<HeldJob> held;
      if (!tried) held = Against(*line.owner, *job);
      const bool free = !tried && !held.has_value();
      const bool line_goes_on = !held.has_value() || !held->held.StopsItsLine();
      if (free) Name(*line.owner, *job);
      if (held.has_value()) held_.push_back(*std::move(held));
      line.head = line_goes_on ? line.owner->line.After(job->line_key) : nullptr;
      if (line.head == nullptr) {
        lines->pop_back();
      } else {
        std::push_heap(lines->begin(), lines->end(), LaterLine);
      }
      if (free) return job;
    }
    return nullptr;
  }

  Standing StandingOf(const QueueNode& queue, Account& account) {
    const Account::Scratch& scratch = Fresh(queue, account);
    return {account.held, account.running, scratch.gpu_seconds, scratch.planned, scratch.named};
  }

  std::optional<HeldJob> Against(const Owner& owner, const WaitingJob& job) {
    auto held = AgainstJob(
        owner,
        job,
        [this](const QueueNode& queue, Account& account, const Limits&) {
          return StandingOf(queue, account);
        },
        [this](const QueueNode& queue, Account& total) { return Fresh(queue, total).spent; });
    if (held.has_value() && held->held.kind == Held::Kind::kGpuSeconds) NoteDue(*held);
    if (held.has_value() && held->held.kind == Held::Kind::kBudget) {
      NoteDue(NextPeriodStart(held->held.period, options_.now_ms));
    }
    return held;
  }

  void NoteDue(int64_t at_ms) { due_ms_ = std::min(due_ms_.value_or(at_ms), at_ms); }

  // With nothing held u halves until it is below the limit; with something held not before that.
  void NoteDue(const HeldJob& held) {
    const int64_t half_life = held.queue->spec.half_life_ms;
    if (half_life == 0 || held.held.limit <= 0) return;
    const double times = held.account->scratch.gpu_seconds / static_cast<double>(held.held.limit);
    const double wait = std::max(1.0, times) > 1 ? Log2(times) * static_cast<double>(half_life) : 0;
    NoteDue(options_.now_ms + static_cast<int64_t>(std::ceil(wait)) + 1000);
  }

  void Name(const Owner& owner, const WaitingJob& job) {
    for (const Owner::Rung& rung : owner.rungs) {
      for (Account* account : rung.accounts) ++Fresh(*rung.queue, *account).named;
    }
    Plan(owner, *job.amounts);
  }

  void Plan(const Owner& owner, const Resources& amounts) {
    for (const Owner::Rung& rung : owner.rungs) {
      const QueueSpec& spec = rung.queue->spec;
      const bool guarantees = options_.guarantees_others && !spec.guarantee.others().empty();
      for (size_t level = 0; level < 3; ++level) {
        Account::Scratch& scratch = Fresh(*rung.queue, *rung.accounts[level]);
        // The others matter to nothing else.
        if (capacity_.has_others() || guarantees || !spec.limits[level].others.empty()) {
          scratch.planned.Add(amounts);
        } else {
          scratch.planned.AddShared(amounts);
        }
      }
    }
  }

  const PassOptions options_;
  const Capacity capacity_;
  const uint64_t pass_;
  std::vector<Node> roots_;
  // Of a queue, or of a user in it: those still to be tried, last first.
  std::map<std::pair<std::string, const Account*>, std::vector<Preferred>> preferred_;
  std::unordered_set<const WaitingJob*> tried_;  // of them
  std::set<std::string> closed_;
  std::vector<HeldJob> held_;
  std::optional<int64_t> due_ms_;
};

Pass::Pass(QueueTree* tree, const PassOptions& options)
    : impl_(std::make_unique<Impl>(tree, options)) {}
Pass::~Pass() = default;
WaitingJob* Pass::Next() {
  return impl_->Next();
}
void Pass::Prefer(const std::string& queue, std::vector<Preferred> jobs) {
  impl_->Prefer(queue, std::move(jobs));
}
void Pass::Close(const std::string& queue) {
  impl_->Close(queue);
}
uint32_t Pass::TakeSpare(const Owner& owner,
                         const Resources& has,
                         const Resources& each,
                         uint32_t most) {
  return impl_->TakeSpare(owner, has, each, most);
}
const std::vector<HeldJob>& Pass::held() const {
  return impl_->held();
}
std::optional<int64_t> Pass::due_ms() const {
  return impl_->due_ms();
}

}  // namespace fluxqueue::scheduling
