#include "libs/queue_core/adaptive_queues.h"

#include <algorithm>
#include <utility>

#include "libs/base/int128.h"
#include "libs/model/job_state.h"

#include "fmt/format.h"

namespace fluxqueue::queue_core {
namespace {

using queue::v1::UsageRow;
using scheduling::kShared;
using scheduling::kWholePool;
using scheduling::Resources;
using scheduling::VirtualJob;

void ToRow(const scheduling::Scale& scale, queue::v1::AdaptiveRow::Scale* row) {
  row->set_ran(scale.ran);
  row->set_estimated(scale.estimated);
}

scheduling::Scale FromRow(const queue::v1::AdaptiveRow::Scale& row) {
  return {.ran = row.ran(), .estimated = row.estimated()};
}

UsageRow ToRow(const std::string& queue, const VirtualJob& job) {
  UsageRow row;
  queue::v1::VirtualJobRow* kept = row.mutable_virtual_job();
  kept->set_queue(queue);
  kept->set_submission(job.key.submission);
  kept->set_rank(job.key.rank);
  kept->set_size(job.size);
  kept->set_estimate_ms(job.estimate_ms);
  kept->set_since_ms(job.since_ms);
  kept->set_waits(job.waits);
  kept->set_started_ms(job.started_ms);
  kept->set_run_ms(job.run_ms);
  kept->set_virtual_start_ms(job.virtual_start_ms);
  kept->set_planned_end_ms(job.planned_end_ms);
  kept->set_virtual_end_ms(job.virtual_end_ms);
  kept->set_over(job.over);
  kept->set_price_ms(job.price_ms);
  return row;
}

VirtualJob FromRow(const queue::v1::VirtualJobRow& row) {
  VirtualJob job;
  job.key = {row.rank(), row.submission()};
  job.size = row.size();
  job.estimate_ms = row.estimate_ms();
  job.since_ms = row.since_ms();
  job.waits = row.waits();
  job.started_ms = row.started_ms();
  job.run_ms = row.run_ms();
  job.virtual_start_ms = row.virtual_start_ms();
  job.planned_end_ms = row.planned_end_ms();
  job.virtual_end_ms = row.virtual_end_ms();
  job.over = row.over();
  job.price_ms = row.price_ms();
  return job;
}

UsageRow ToRow(const std::string& queue,
               const scheduling::Adaptive& rule,
               const Resources& sized_by) {
  UsageRow row;
  queue::v1::AdaptiveRow* kept = row.mutable_adaptive();
  kept->set_queue(queue);
  const scheduling::VirtualState& machine = rule.machine().state();
  kept->set_now_ms(machine.now_ms);
  kept->set_due(machine.due);
  kept->set_capacity(machine.capacity);
  ToRow(machine.predicted, kept->mutable_predicted());
  ToRow(machine.planned, kept->mutable_planned());
  *kept->mutable_sized_by() = ToAmounts(sized_by);
  const scheduling::Accuracy& accuracy = rule.state().accuracy;
  kept->set_hindsight(rule.state().hindsight);
  kept->set_shut(rule.state().shut);
  kept->set_estimated(accuracy.estimated);
  kept->set_ran(accuracy.ran);
  kept->set_error(accuracy.error);
  kept->set_scaled_error(accuracy.scaled_error);
  kept->set_ends(accuracy.ends);
  kept->set_raw(accuracy.raw);
  kept->set_scaled(accuracy.scaled);
  const auto& work = rule.state().histogram.work();
  const auto last = std::find_if(work.rbegin(), work.rend(), [](int64_t w) { return w != 0; });
  kept->mutable_work()->Add(work.begin(), last.base());
  return row;
}

scheduling::Adaptive::State StateOf(const queue::v1::AdaptiveRow& row) {
  scheduling::Adaptive::State state;
  state.on = true;
  state.hindsight = row.hindsight();
  state.shut = row.shut();
  state.accuracy = {.estimated = row.estimated(),
                    .ran = row.ran(),
                    .error = row.error(),
                    .scaled_error = row.scaled_error(),
                    .ends = row.ends(),
                    .raw = row.raw(),
                    .scaled = row.scaled()};
  const size_t buckets = std::min<size_t>(row.work_size(), scheduling::WorkHistogram::kBuckets);
  for (size_t i = 0; i < buckets; ++i) {
    state.histogram.Set(i, row.work(static_cast<int>(i)));
  }
  return state;
}

UsageRow ToRow(const std::string& queue,
               const std::string& user,
               const scheduling::Reliability::Record& record) {
  UsageRow row;
  queue::v1::ReliabilityRow* kept = row.mutable_reliability();
  kept->set_queue(queue);
  kept->set_user(user);
  kept->set_ratio(record.ratio);
  kept->set_deviation(record.deviation);
  kept->set_runs(record.runs);
  kept->set_learnt(record.learnt);
  return row;
}

UsageChange JobChangeOf(const std::string& queue, uint64_t submission, const VirtualJob* job) {
  return {.kind = "virtual",
          .name = fmt::format("{}/{}", queue, submission),
          .deleted = job == nullptr,
          .row = job != nullptr ? ToRow(queue, *job).SerializeAsString() : ""};
}

// The least of the quotients, in parts of kWholePool; unset where it is far from one.
std::optional<int64_t> CapacityBeside(const Resources& now, const Resources& sized_by) {
  constexpr int64_t kEighth = kWholePool / 8;
  int64_t least = kWholePool + kEighth;
  for (size_t i = 0; i < kShared; ++i) {
    if ((now[i] == 0) != (sized_by[i] == 0)) return std::nullopt;
    if (now[i] == 0) continue;
    const Int128 quotient = static_cast<Int128>(now[i]) * kWholePool / sized_by[i];
    if (quotient < kWholePool - kEighth || quotient > kWholePool + kEighth) return std::nullopt;
    least = std::min(least, static_cast<int64_t>(quotient));
  }
  // Nothing is known of either.
  return least == kWholePool + kEighth ? kWholePool : least;
}

}  // namespace

const scheduling::Adaptive* AdaptiveQueues::Find(const std::string& queue) const {
  const auto it = queues_.find(queue);
  return it == queues_.end() || !it->second.rule.on() ? nullptr : &it->second.rule;
}

scheduling::Adaptive* AdaptiveQueues::Find(const std::string& queue) {
  return const_cast<scheduling::Adaptive*>(std::as_const(*this).Find(queue));
}

bool AdaptiveQueues::Turn(const std::string& name, bool on, const Resources& capacity) {
  const auto it = queues_.find(name);
  if (it == queues_.end() && !on) return false;
  AdaptiveQueue& queue = it == queues_.end() ? queues_[name] : it->second;
  if (queue.rule.on() == on) return false;
  queue.rule.Turn(on);
  if (!queue.sized_by_before.has_value()) queue.sized_by_before = queue.sized_by;
  queue.sized_by = capacity;
  return on;
}

void AdaptiveQueues::Follow(const Entry& entry, int64_t estimate_ms, int64_t now_ms) {
  for (auto& [name, queue] : queues_) {
    if (!queue.rule.on()) continue;
    if (name == entry.job.queue) {
      FollowIn(&queue, entry, estimate_ms, now_ms);
    } else {
      queue.rule.Leave(entry.job.submission, now_ms);  // it may have been there
    }
  }
}

void AdaptiveQueues::GiveUpPlace(const Job& job, int64_t now_ms) {
  scheduling::Adaptive* rule = Find(job.queue);
  if (rule != nullptr) rule->Leave(job.submission, now_ms);
}

void AdaptiveQueues::FollowIn(AdaptiveQueue* queue,
                              const Entry& entry,
                              int64_t estimate_ms,
                              int64_t now_ms) {
  const Job& job = entry.job;
  scheduling::Adaptive& rule = queue->rule;
  if (model::IsTerminal(job.state)) {
    rule.End(job.submission, now_ms, *job.user, job.state == model::JobState::kSucceeded);
    return;
  }
  const int64_t size = scheduling::SizeOf(*job.amounts, queue->sized_by);
  if (entry.in_line_of != nullptr) {
    rule.Wait(entry.line_key, size, estimate_ms, now_ms, *job.user);
  } else if (model::kHoldingStates.Has(job.state)) {
    const bool ran_before = job.state == model::JobState::kRunning && job.start_ms > 0;
    const int64_t started_ms = ran_before ? std::min(job.start_ms, now_ms) : now_ms;
    rule.Start({0, job.submission}, size, estimate_ms, started_ms, now_ms);
  } else {
    rule.Leave(job.submission, now_ms);
  }
}

void AdaptiveQueues::SetCapacity(const Resources& capacity, const JobBook& book, int64_t now_ms) {
  for (auto& [name, queue] : queues_) {
    if (!queue.rule.on()) continue;
    const std::optional<int64_t> beside = CapacityBeside(capacity, queue.sized_by);
    queue.rule.SetCapacity(beside.value_or(kWholePool), now_ms);
    if (beside.has_value()) continue;
    if (!queue.sized_by_before.has_value()) queue.sized_by_before = queue.sized_by;
    queue.sized_by = capacity;
    for (const Entry* entry : book.Jobs()) {
      if (entry->job.queue != name) continue;
      queue.rule.Resize(entry->job.submission, scheduling::SizeOf(*entry->job.amounts, capacity));
    }
  }
}

void AdaptiveQueues::SetHindsight(bool hindsight) {
  for (auto& [name, queue] : queues_) {
    if (queue.rule.on()) queue.rule.SetHindsight(hindsight);
  }
}

// --------------------------------------------------------------------------------------- the batch

void AdaptiveQueues::DropOff() {
  for (auto it = queues_.begin(); it != queues_.end();) {
    it = it->second.rule.on() ? std::next(it) : queues_.erase(it);
  }
}

void AdaptiveQueues::Commit() {
  for (auto& [name, queue] : queues_) {
    queue.rule.Commit();
    queue.sized_by_before.reset();
  }
  DropOff();
}

void AdaptiveQueues::Rollback() {
  for (auto& [name, queue] : queues_) {
    queue.rule.Rollback();
    if (queue.sized_by_before.has_value()) queue.sized_by = *std::move(queue.sized_by_before);
    queue.sized_by_before.reset();
  }
  DropOff();
}

void AdaptiveQueues::Describe(Changes* changes) const {
  for (const auto& [name, queue] : queues_) {
    const scheduling::Adaptive& rule = queue.rule;
    if (!rule.changed() && !queue.sized_by_before.has_value()) continue;
    changes->usage.push_back(
        {.kind = "adaptive",
         .name = name,
         .deleted = !rule.on(),
         .row = rule.on() ? ToRow(name, rule, queue.sized_by).SerializeAsString() : ""});
    for (const auto& [submission, before, now] : rule.machine().Changes()) {
      changes->usage.push_back(JobChangeOf(name, submission, now));
    }
    for (const auto& [user, before, now] : rule.reliability().Changes()) {
      changes->usage.push_back(
          {.kind = "reliability",
           .name = fmt::format("{}/{}", name, user),
           .deleted = now == nullptr,
           .row = now != nullptr ? ToRow(name, user, *now).SerializeAsString() : ""});
    }
  }
}

std::vector<std::string> AdaptiveQueues::Rows() const {
  std::vector<std::string> rows;
  for (const auto& [name, queue] : queues_) {
    if (!queue.rule.on()) continue;
    rows.push_back(ToRow(name, queue.rule, queue.sized_by).SerializeAsString());
    rows.push_back(fmt::format("{} used", queue.rule.machine().used()));
    for (const auto& [submission, job] : queue.rule.machine().All()) {
      rows.push_back(ToRow(name, job).SerializeAsString());
    }
    for (const auto& [user, record] : queue.rule.reliability().records()) {
      rows.push_back(ToRow(name, user, record).SerializeAsString());
    }
  }
  return rows;
}

// ----------------------------------------------------------------------------------------- restore

void AdaptiveQueues::Clear() {
  queues_.clear();
}

bool AdaptiveQueues::AddRow(const UsageRow& row) {
  if (row.has_virtual_job()) {
    queues_[row.virtual_job().queue()].rule.Set(FromRow(row.virtual_job()));
    return true;
  }
  if (row.has_reliability()) {
    const queue::v1::ReliabilityRow& kept = row.reliability();
    queues_[kept.queue()].rule.Set(kept.user(),
                                   {.ratio = kept.ratio(),
                                    .deviation = kept.deviation(),
                                    .runs = kept.runs(),
                                    .learnt = kept.learnt()});
    return true;
  }
  if (!row.has_adaptive()) return false;
  const queue::v1::AdaptiveRow& kept = row.adaptive();
  AdaptiveQueue& queue = queues_[kept.queue()];
  queue.sized_by = ToResources(kept.sized_by());
  queue.rule.Set(StateOf(kept),
                 {.now_ms = kept.now_ms(),
                  .due = kept.due(),
                  .capacity = kept.capacity(),
                  .predicted = FromRow(kept.predicted()),
                  .planned = FromRow(kept.planned()),
                  .hindsight = kept.hindsight()});
  return true;
}

}  // namespace fluxqueue::queue_core
