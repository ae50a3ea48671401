#include "libs/queue_core/figures.h"

#include <algorithm>

#include "libs/queue_core/core_impl.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {

using model::JobState;

std::map<std::string, QueueFigures> QueueCore::Impl::Figures() const {
  std::map<std::string, QueueFigures> all;
  for (const auto& [name, node] : book_.tree().nodes()) {
    QueueFigures& figures = all[name];
    figures.held = node->total.held;
    figures.share = scheduling::ShareOf(*node, node->total, view_.PassNow());
    figures.weight = node->spec.weight;
    const auto spent = scheduling::QueueTree::PastOf(*node, node->total, state_.now_ms).spent;
    for (size_t i = 0; i < spent.size(); ++i) {
      figures.budgets.push_back({node->spec.budgets[i], scheduling::HoursOf(spent[i])});
    }
  }
  for (const auto& entry : book_.all()) {
    const Job& job = entry->job;
    QueueFigures& figures = all[job.queue];
    const bool waits = job.state == JobState::kSubmitted || job.state == JobState::kPending;
    if (waits) ++figures.waiting[job.reason];
    const int64_t since_ms = waits ? job.submitted_ms : job.updated_ms;
    int64_t& oldest_ms = figures.oldest_ms.try_emplace(job.state, since_ms).first->second;
    oldest_ms = std::min(oldest_ms, since_ms);
  }
  return all;
}

void QueueCore::Impl::TimeSlip(const Job& job, int64_t later_ms, const events::v1::Slip& slip) {
  Time(Timing::Kind::kSlip, job, state_.now_ms - later_ms);
  out_->timings.back().cause = slip.cause();
}

void QueueCore::Impl::Time(Timing::Kind kind, const Job& job, int64_t since_ms) {
  const Millis took(std::max<int64_t>(0, state_.now_ms - since_ms));
  out_->timings.push_back({.kind = kind,
                           .queue = job.queue,
                           .took = took,
                           .job_id = job.id,
                           .attempt = job.attempt,
                           .end_ms = state_.now_ms});
}

}  // namespace fluxqueue::queue_core
