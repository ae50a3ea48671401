#include "services/admission/domain/catalog.h"

#include <algorithm>
#include <utility>

#include "libs/access/queue_limits.h"
#include "libs/base/check.h"
#include "libs/base/clock.h"
#include "libs/kubernetes/labels.h"
#include "libs/model/rules.h"
#include "services/admission/domain/queue_rules.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

// What a FluxQueue leaves unsaid; the CRD has the same defaults.
constexpr int32_t kDefaultWeight = 1;
constexpr uint32_t kDefaultQueueDepth = 1000;
constexpr uint32_t kDefaultReservationDepth = 0;
constexpr std::string_view kDefaultStrategy = "fcfs";
constexpr int64_t kDefaultHalfLifeMs = int64_t{7} * 24 * 3'600'000;
constexpr int64_t kDefaultEnforceGraceMs = 60'000;
constexpr int64_t kSecondsOfAnHour = 3600;
// The year 9999 is over.
constexpr int64_t kLastMs = 253'402'300'800'000;

using Queues = ClusterFacts::ByName<kubernetes::FluxQueue>;

void SetAmounts(const kubernetes::Amounts& amounts,
                google::protobuf::RepeatedPtrField<events::v1::Amount>* out) {
  for (const auto& [resource, amount] : amounts) {
    events::v1::Amount* added = out->Add();
    added->set_resource(resource);
    added->set_amount(amount);
  }
}

// What is not limited is not there at all, so that a queue without limits is said as before.
template <typename Mutable>
void SetLimits(const kubernetes::QueueLimits& from, Mutable mutable_limits) {
  if (from == kubernetes::QueueLimits()) return;
  events::v1::Limits* limits = mutable_limits();
  if (from.running_jobs) limits->set_running_jobs(*from.running_jobs);
  if (from.queued_jobs) limits->set_queued_jobs(*from.queued_jobs);
  if (from.gpu_hours) limits->set_gpu_seconds(*from.gpu_hours * kSecondsOfAnHour);
  SetAmounts(from.amounts, limits->mutable_amounts());
}

events::v1::QueueConfigured::Enforcement EnforcementOf(std::string_view name) {
  if (name == "never") return events::v1::QueueConfigured::ENFORCEMENT_NEVER;
  if (name == "end") return events::v1::QueueConfigured::ENFORCEMENT_END;
  return events::v1::QueueConfigured::ENFORCEMENT_WARN;
}

// The CRD allows no other names.
events::v1::Budget::Period PeriodOf(std::string_view name) {
  if (name == "day") return events::v1::Budget::PERIOD_DAY;
  if (name == "week") return events::v1::Budget::PERIOD_WEEK;
  if (name == "quarter") return events::v1::Budget::PERIOD_QUARTER;
  if (name == "year") return events::v1::Budget::PERIOD_YEAR;
  return events::v1::Budget::PERIOD_MONTH;
}

events::v1::QueueConfigured ConfigOf(const kubernetes::FluxQueue& queue) {
  events::v1::QueueConfigured config;
  config.set_queue(queue.meta.name);
  config.set_weight(std::max(queue.weight.value_or(kDefaultWeight), 1));
  config.set_priority(queue.priority.value_or(0));
  config.set_strategy(queue.strategy.empty() ? std::string(kDefaultStrategy) : queue.strategy);
  config.set_queue_depth(queue.queue_depth.value_or(kDefaultQueueDepth));
  config.set_reservation_depth(queue.reservation_depth.value_or(kDefaultReservationDepth));
  config.set_default_duration_ms(queue.default_duration_ms.value_or(0));
  config.set_max_duration_ms(queue.max_duration_ms.value_or(0));
  config.set_reject_after_ms(queue.reject_after_ms.value_or(0));
  if (queue.reserve_after_ms) config.set_reserve_after_ms(*queue.reserve_after_ms);
  config.set_enforce_duration(EnforcementOf(queue.enforce_duration));
  config.set_enforce_grace_ms(queue.enforce_grace_ms.value_or(kDefaultEnforceGraceMs));
  config.set_bound_undeclared(queue.BoundsUndeclared());
  config.set_parent(queue.parent);
  config.set_order(queue.order);
  SetLimits(queue.limits, [&config] { return config.mutable_limits(); });
  SetLimits(queue.namespace_limits, [&config] { return config.mutable_namespace_limits(); });
  SetLimits(queue.user_limits, [&config] { return config.mutable_user_limits(); });
  SetAmounts(queue.guarantee, config.mutable_guarantee());
  SetAmounts(queue.most_per_job, config.mutable_most_per_job());
  SetAmounts(queue.least_per_job, config.mutable_least_per_job());
  for (const auto& [user, weight] : queue.user_weights) {
    events::v1::UserWeight* added = config.add_user_weights();
    added->set_user(user);
    added->set_weight(weight);
  }
  for (const kubernetes::QueueBudget& budget : queue.budgets) {
    events::v1::Budget* added = config.add_budgets();
    added->set_resource(budget.resource);
    added->set_hours(budget.hours);
    added->set_period(PeriodOf(budget.period));
    added->set_holds(budget.when_spent != "warn");
  }
  config.set_half_life_ms(queue.half_life_ms.value_or(kDefaultHalfLifeMs));
  config.set_aging_ms(queue.aging_ms.value_or(0));
  config.set_predict_durations(queue.predict_durations);
  // Not there at all where it is off, so that such a queue is said as before.
  if (queue.preempts_to_reclaim || queue.preempts_by_priority) {
    config.mutable_preemption()->set_reclaim(queue.preempts_to_reclaim);
    config.mutable_preemption()->set_by_priority(queue.preempts_by_priority);
    config.mutable_preemption()->set_grace_ms(queue.preemption_grace_ms.value_or(0));
  }
  return config;
}

int64_t EndOf(const kubernetes::FluxWindow& window) {
  int64_t end_ms = window.end_ms;
  if (!window.duration_ms) return end_ms;
  // Out of all years.
  if (__builtin_add_overflow(window.start_ms, *window.duration_ms, &end_ms)) return kLastMs + 1;
  return end_ms;
}

events::v1::WindowConfigured ConfigOf(const kubernetes::FluxWindow& window) {
  events::v1::WindowConfigured config;
  config.set_window(window.meta.name);
  config.set_start_ms(window.start_ms);
  config.set_end_ms(EndOf(window));
  *config.mutable_nodes() = {window.nodes.begin(), window.nodes.end()};
  for (const auto& [key, value] : window.node_selector) {
    events::v1::Label* label = config.add_labels();
    label->set_key(key);
    label->set_value(value);
  }
  *config.mutable_namespaces() = {window.namespaces.begin(), window.namespaces.end()};
  return config;
}

// What the FluxQueue says and cannot be; with what is done instead.
void CheckQueue(const kubernetes::FluxQueue& queue,
                const Queues& queues,
                std::vector<std::string>* warnings) {
  const std::string& name = queue.meta.name;
  if (queue.weight.value_or(1) < 1) {
    warnings->push_back(
        fmt::format("FluxQueue {}: spec.weight: {} is below 1 and counts as 1; allowed: 1 to 1000",
                    name,
                    *queue.weight));
  }
  if (queue.EndsDurations() && queue.max_duration_ms.value_or(0) == 0) {
    warnings->push_back(fmt::format(
        "FluxQueue {}: spec.enforceDuration: 'end' beside spec.maxDuration: '0', which is without "
        "limit; allowed: a maxDuration above 0. Until then jobs that declare no duration are never "
        "ended",
        name));
  }
  if (!queue.default_qos.empty() &&
      access::FindQos(queue.default_qos, WayUp(queue, queues)) == nullptr) {
    warnings->push_back(fmt::format(
        "FluxQueue {}: spec.defaultQos: '{}': neither this queue nor one above it has such a class "
        "in spec.qos; allowed: one that is there. Until then jobs that name no class have no "
        "ceiling",
        name,
        queue.default_qos));
  }
  const std::optional<std::string> problem = access::ParentProblem(queue, queues);
  if (!problem) return;
  warnings->push_back(
      fmt::format("FluxQueue {}: spec.parent: '{}': {}. Until then the queue has none, and "
                  "takes no jobs unless it says whom",
                  name,
                  queue.parent,
                  *problem));
}

events::v1::Envelope ForPool(const std::string& pool) {
  events::v1::Envelope envelope;
  envelope.set_pool(pool);
  return envelope;
}

void Read(const std::string& row, google::protobuf::MessageLite* config) {
  CHECK(config->ParseFromString(row), "a row of the catalog, {} bytes", row.size());
}

template <typename Rows, typename Row>
void Describe(const Rows& rows, std::vector<Row>* changed, std::vector<std::string>* deleted) {
  for (const auto& [name, before, now] : rows.Changes()) {
    if (now != nullptr) {
      changed->push_back(*now);
    } else {
      deleted->push_back(name);
    }
  }
}

}  // namespace

Catalog::Catalog(events::v1::PoolConfigured config, int partitions)
    : config_(std::move(config)), partitions_(partitions) {
  CHECK(partitions > 0, "the topic of the pools has {} partitions", partitions);
}

void Catalog::Restore(const std::vector<PoolRow>& pools,
                      const std::vector<QueueRow>& queues,
                      const std::vector<WindowRow>& windows) {
  pools_.Clear();
  queues_.Clear();
  windows_.Clear();
  for (const PoolRow& row : pools) pools_.Restore(row.pool, row);
  for (const QueueRow& row : queues) queues_.Restore(row.queue, row);
  for (const WindowRow& row : windows) windows_.Restore(row.window, row);
}

void Catalog::Reconcile(const ClusterFacts::ByName<kubernetes::FluxQueue>& queues,
                        std::vector<events::v1::Envelope>* messages,
                        std::vector<std::string>* warnings) {
  std::vector<std::string> known;
  for (const auto& [pool, row] : pools_.map()) known.push_back(pool);
  for (const std::string& pool : known) ConfigurePool(pool, messages);
  for (const auto& [name, queue] : queues) {
    CheckQueue(queue, queues, warnings);
    ConfigureQueue(queue, messages, warnings);
  }
  for (auto next = queues_.map().begin(); next != queues_.map().end();) {
    const auto row = next++;
    if (queues.contains(row->first)) continue;
    events::v1::Envelope envelope = ForPool(row->second.pool);
    envelope.mutable_queue_configured()->set_queue(row->first);
    envelope.mutable_queue_configured()->set_deleted(true);
    messages->push_back(std::move(envelope));
    queues_.Erase(std::string(row->first));
  }
}

void Catalog::ConfigurePool(const std::string& pool, std::vector<events::v1::Envelope>* messages) {
  std::string bytes = config_.SerializeAsString();
  const PoolRow* known = pools_.Find(pool);
  if (known != nullptr && known->config == bytes) return;
  const int partition = known != nullptr ? known->partition : EmptiestPartition();
  pools_.Put(pool, PoolRow{pool, partition, std::move(bytes)});
  events::v1::Envelope envelope = ForPool(pool);
  *envelope.mutable_pool_configured() = config_;
  messages->push_back(std::move(envelope));
}

void Catalog::ConfigureQueue(const kubernetes::FluxQueue& queue,
                             std::vector<events::v1::Envelope>* messages,
                             std::vector<std::string>* warnings) {
  const std::string& name = queue.meta.name;
  std::string pool = PoolOfObject(queue);
  const QueueRow* known = queues_.Find(name);
  if (known != nullptr && known->pool != pool) {
    warnings->push_back(fmt::format(
        "FluxQueue {}: spec.pool: '{}' has no effect, it keeps the pool '{}' with which "
        "it was made; delete it and make it again to move it",
        name,
        pool,
        known->pool));
    pool = known->pool;
  }
  events::v1::QueueConfigured config = ConfigOf(queue);
  QueueRow row{name, pool, config.SerializeAsString()};
  if (known != nullptr && *known == row) return;
  ConfigurePool(pool, messages);
  queues_.Put(name, std::move(row));
  events::v1::Envelope envelope = ForPool(pool);
  *envelope.mutable_queue_configured() = std::move(config);
  messages->push_back(std::move(envelope));
}

std::string Catalog::ProblemOf(const kubernetes::FluxWindow& window) const {
  if (window.end_ms == 0 && !window.duration_ms) {
    return "spec.end: it is missing; allowed: spec.end, or spec.duration";
  }
  if (window.end_ms != 0 && window.duration_ms) {
    return fmt::format("spec.end: '{}' beside spec.duration; allowed: one of the two",
                       FormatTime(Millis(window.end_ms)));
  }
  const int64_t end_ms = EndOf(window);
  if (window.start_ms < 0 || end_ms <= window.start_ms || end_ms > kLastMs) {
    return fmt::format(
        "{}: '{}', and spec.start is '{}'; allowed: an end after the start, in the "
        "years 1970 to 9999",
        window.duration_ms ? "spec.duration" : "spec.end",
        window.duration_ms ? fmt::format("{}ms", *window.duration_ms) : FormatTime(Millis(end_ms)),
        FormatTime(Millis(window.start_ms)));
  }
  if (pools_.Has(PoolOfObject(window))) return "";
  std::vector<std::string> pools;
  for (const auto& [pool, row] : pools_.map()) pools.push_back(pool);
  return fmt::format("spec.pool: '{}': no FluxQueue is in that pool; allowed: {}",
                     PoolOfObject(window),
                     pools.empty() ? "none yet" : fmt::format("{}", fmt::join(pools, ", ")));
}

void Catalog::ReconcileWindows(const ClusterFacts::ByName<kubernetes::FluxWindow>& windows,
                               std::vector<events::v1::Envelope>* messages,
                               std::vector<std::string>* warnings) {
  ClusterFacts::ByName<WindowRow> wanted;
  for (const auto& [name, window] : windows) {
    if (const std::string problem = ProblemOf(window); !problem.empty()) {
      warnings->push_back(
          fmt::format("FluxWindow {}: {}. Until then it keeps no node", name, problem));
      continue;
    }
    wanted.emplace(name,
                   WindowRow{name, PoolOfObject(window), ConfigOf(window).SerializeAsString()});
  }
  for (auto next = windows_.map().begin(); next != windows_.map().end();) {
    const auto row = next++;
    const auto still = wanted.find(row->first);
    if (still != wanted.end() && still->second.pool == row->second.pool) continue;
    events::v1::Envelope envelope = ForPool(row->second.pool);
    envelope.mutable_window_configured()->set_window(row->first);
    envelope.mutable_window_configured()->set_deleted(true);
    messages->push_back(std::move(envelope));
    windows_.Erase(std::string(row->first));
  }
  for (const auto& [name, row] : wanted) {
    const WindowRow* known = windows_.Find(name);
    if (known != nullptr && *known == row) continue;
    events::v1::Envelope envelope = ForPool(row.pool);
    *envelope.mutable_window_configured() = ConfigOf(windows.find(name)->second);
    messages->push_back(std::move(envelope));
    windows_.Put(name, row);
  }
}

void Catalog::SayAgain(std::vector<events::v1::Envelope>* messages) const {
  if (!model::HasRules(config_.rules(), model::kAsksForTheLost)) return;
  for (const auto& [name, row] : pools_.map()) {
    Read(row.config, messages->emplace_back(ForPool(name)).mutable_pool_configured());
  }
  for (const auto& [name, row] : queues_.map()) {
    Read(row.config, messages->emplace_back(ForPool(row.pool)).mutable_queue_configured());
  }
  for (const auto& [name, row] : windows_.map()) {
    Read(row.config, messages->emplace_back(ForPool(row.pool)).mutable_window_configured());
  }
}

int Catalog::EmptiestPartition() const {
  std::vector<int> pools(static_cast<size_t>(partitions_), 0);
  for (const auto& [name, row] : pools_.map()) {
    if (row.partition < partitions_) ++pools[static_cast<size_t>(row.partition)];
  }
  return static_cast<int>(std::min_element(pools.begin(), pools.end()) - pools.begin());
}

const std::string* Catalog::PoolOf(std::string_view queue) const {
  const auto found = queues_.map().find(queue);
  return found == queues_.map().end() ? nullptr : &found->second.pool;
}

int Catalog::PartitionOf(std::string_view pool) const {
  const auto found = pools_.map().find(pool);
  CHECK(found != pools_.map().end(), "pool {} has no row", pool);
  return found->second.partition;
}

CatalogChanges Catalog::Changes() const {
  CatalogChanges changes;
  // No pool is ever deleted.
  for (const auto& change : pools_.Changes()) changes.pools.push_back(*change.now);
  Describe(queues_, &changes.queues, &changes.deleted_queues);
  Describe(windows_, &changes.windows, &changes.deleted_windows);
  return changes;
}

void Catalog::Commit() {
  pools_.Commit();
  queues_.Commit();
  windows_.Commit();
}

void Catalog::Rollback() {
  pools_.Rollback();
  queues_.Rollback();
  windows_.Rollback();
}

}  // namespace fluxqueue::admission
