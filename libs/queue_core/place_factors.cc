#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/queue_core/explain.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {
namespace {

constexpr double kMsPerHour = 3'600'000;

std::string AgingOf(const Job& job, int64_t aging_ms, int64_t now_ms) {
  const int64_t since_ms = std::max(job.submitted_ms, job.begin_ms);
  const auto waited_ms = static_cast<double>(std::max<int64_t>(0, now_ms - since_ms));
  return fmt::format("+{:.2f}: has waited {:.1f} h, and gains 1 in {:.1f} h",
                     waited_ms / static_cast<double>(aging_ms),
                     waited_ms / kMsPerHour,
                     static_cast<double>(aging_ms) / kMsPerHour);
}

void AddBudgets(const scheduling::QueueNode& queue,
                int64_t now_ms,
                std::vector<PlaceFactor>* factors) {
  const auto spent = scheduling::QueueTree::PastOf(queue, queue.total, now_ms).spent;
  for (size_t i = 0; i < spent.size(); ++i) {
    const scheduling::Budget& budget = queue.spec.budgets[i];
    factors->push_back({"queue budget",
                        queue.name,
                        fmt::format("{:.1f} of {} {}-hours of this {}{}",
                                    scheduling::HoursOf(spent[i]),
                                    budget.hours,
                                    budget.resource,
                                    scheduling::PeriodName(budget.period),
                                    budget.holds ? "" : ", which holds no job back")});
  }
}

}  // namespace

std::vector<PlaceFactor> PlaceFactorsOf(const View& view, const Entry& entry) {
  std::vector<PlaceFactor> factors;
  const auto add = [&factors](const char* factor, const std::string& of, std::string value) {
    factors.push_back({factor, of, std::move(value)});
  };
  const scheduling::PassOptions now = view.PassNow();
  const scheduling::Owner& owner = *entry.line_owner;
  for (auto rung = owner.rungs.rbegin(); rung != owner.rungs.rend(); ++rung) {
    const scheduling::QueueNode& queue = *rung->queue;
    add("queue priority", queue.name, fmt::format("{}", queue.spec.priority));
    if (!queue.spec.guarantee.empty()) {
      add("queue guarantee",
          queue.name,
          scheduling::IsBelowGuarantee(queue, *entry.amounts, now)
              ? "holds less: goes before those that have theirs"
              : "has it, of what the job asks for");
    }
    AddBudgets(queue, now.now_ms, &factors);
    const double share = scheduling::ShareOf(queue, queue.total, now);
    const int32_t weight = std::max(1, queue.spec.weight);
    add("queue share",
        queue.name,
        fmt::format("{:.4f}: {:.4f} of the pool, weight {}", share / weight, share, weight));
  }
  const Job& job = entry.job;
  const scheduling::QueueNode& own = *owner.queue;
  if (own.spec.order == scheduling::JobOrder::kFairShare) {
    const auto user = static_cast<size_t>(scheduling::Level::kUser);
    const double share = scheduling::ShareOf(own, *owner.rungs[0].accounts[user], now);
    const int32_t weight = own.spec.WeightOf(owner.user);
    add("user share",
        owner.user,
        fmt::format("{:.4f}: {:.4f} of the pool, weight {}", share / weight, share, weight));
  }
  if (view.StrategyInForce(*entry.in_line_of).is_adaptive) {
    add("strategy", own.name, "adaptive: may try some jobs before the order of the line");
  }
  add("job priority", FullName(job), fmt::format("{}", job.priority));
  if (own.spec.aging_ms > 0) {
    add("waited", FullName(job), AgingOf(job, own.spec.aging_ms, now.now_ms));
  }
  add("submission", FullName(job), fmt::format("number {} of the pool", job.submission));
  return factors;
}

}  // namespace fluxqueue::queue_core
