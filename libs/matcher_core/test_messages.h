// Messages for the tests of the matcher's core, and the tables it would write to, in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Envelope;

// `count`: JSON.
inline std::string JobspecText(const std::string& count,
                               int64_t cpu,
                               const std::string& property = "") {
  return R"({"version":1,"resources":[{"type":"slot","count":)" + count +
         R"(,"label":"pod","with":[{"type":"cpu","count":)" + std::to_string(cpu) +
         R"(}]}],"tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}],)"
         R"("attributes":{"system":{"constraints":{"properties":[)" +
         (property.empty() ? "" : "\"" + property + "\"") + "]}}}}";
}

inline std::string JobspecText(uint32_t slots, int64_t cpu, const std::string& property = "") {
  return JobspecText(std::to_string(slots), cpu, property);
}

// The same jobspec of pods: who they are, their rules, and what they prefer of pods
// (libs/graph/pod_rules.h); empty: none.
inline std::string OfPods(std::string jobspec,
                          const std::string& pod,
                          const std::string& rules = "",
                          const std::string& preferred = "") {
  const std::string pods = rules.empty() ? "" : R"("pods":)" + rules + ",";
  const std::string of_pods = preferred.empty() ? "" : R"(,"pods":)" + preferred;
  jobspec.insert(jobspec.find(R"("constraints")"),
                 R"("job":{"pod":)" + pod + of_pods + "}," + pods);
  return jobspec;
}

// Elastic.
inline std::string ElasticText(uint32_t min, uint32_t max, int64_t cpu) {
  return JobspecText(R"({"min":)" + std::to_string(min) + R"(,"max":)" + std::to_string(max) + "}",
                     cpu);
}

inline Envelope Submitted(const std::string& job, uint32_t slots, const std::string& jobspec) {
  Envelope message;
  auto* submitted = message.mutable_job_submitted();
  submitted->set_job_id(job);
  submitted->mutable_spec()->set_revision(1);
  submitted->mutable_spec()->set_slots(slots);
  submitted->mutable_spec()->set_jobspec(jobspec);
  return message;
}

inline Envelope Submitted(const std::string& job, uint32_t slots, int64_t cpu) {
  return Submitted(job, slots, JobspecText(slots, cpu));
}

inline Envelope Claimed(const std::string& job, uint32_t slots, const std::string& jobspec) {
  Envelope message;
  auto* claim = message.mutable_command_accepted()->mutable_submit_claim();
  claim->set_job_id(job);
  claim->mutable_spec()->set_revision(1);
  claim->mutable_spec()->set_slots(slots);
  claim->mutable_spec()->set_jobspec(jobspec);
  return message;
}

inline Envelope CancelCommand(const std::string& job) {
  Envelope message;
  message.mutable_command_accepted()->mutable_cancel_job()->set_job_id(job);
  return message;
}

inline Envelope Updated(const std::string& job, uint32_t revision, uint32_t slots, int64_t cpu) {
  Envelope message;
  message.mutable_job_updated()->set_job_id(job);
  auto* spec = message.mutable_job_updated()->mutable_spec();
  spec->set_revision(revision);
  spec->set_slots(slots);
  spec->set_jobspec(JobspecText(slots, cpu));
  return message;
}

inline events::v1::Node MakeNode(const std::string& name,
                                 int64_t cpu,
                                 int64_t version = 1,
                                 const std::string& uid = "") {
  events::v1::Node node;
  node.set_name(name);
  node.set_uid(uid.empty() ? "uid-" + name : uid);
  node.set_resource_version(std::to_string(version));
  auto* amount = node.add_allocatable();
  amount->set_resource("cpu");
  amount->set_amount(cpu);
  node.set_ready(true);
  return node;
}

inline Envelope Upserted(events::v1::Node node) {
  Envelope message;
  *message.mutable_node_upserted()->mutable_node() = std::move(node);
  return message;
}

inline Envelope Gone(const std::string& name, const std::string& uid = "") {
  Envelope message;
  message.mutable_node_gone()->set_name(name);
  message.mutable_node_gone()->set_uid(uid.empty() ? "uid-" + name : uid);
  return message;
}

inline Envelope Synced() {
  Envelope message;
  message.mutable_inventory_synced();
  return message;
}

// A leader of half a core and `slots` − 1 workers, all in one zone.
inline std::string GroupsText(uint32_t slots, int64_t cpu) {
  return R"({"version":1,"resources":[{"type":"zone","count":1,"with":[)"
         R"({"type":"slot","count":1,"label":"leader","with":[{"type":"cpu","count":500}]},)"
         R"({"type":"slot","count":)" +
         std::to_string(slots - 1) + R"(,"label":"worker","with":[{"type":"cpu","count":)" +
         std::to_string(cpu) +
         R"(}]}]}],"tasks":[{"command":["pod"],"slot":"worker","count":{"per_slot":1}}]})";
}

inline Envelope Configured(const std::string& policy, const std::vector<std::string>& levels = {}) {
  Envelope message;
  message.mutable_pool_configured()->set_engine("native");
  message.mutable_pool_configured()->set_policy(policy);
  for (const std::string& level : levels) message.mutable_pool_configured()->add_levels(level);
  return message;
}

// Of tests with windows: the log's time when it is so many seconds after the pool's beginning.
inline Millis At(int64_t now_s) {
  return Millis(1'700'000'000'000 + now_s * 1000);
}

// Of all nodes, for maintenance, between those seconds of the pool's time.
inline Envelope Window(const std::string& name, int64_t from_s, int64_t to_s) {
  Envelope message;
  auto* window = message.mutable_window_configured();
  window->set_window(name);
  window->set_start_ms(At(from_s).count());
  window->set_end_ms(At(to_s).count());
  return message;
}

inline Envelope WindowDeleted(const std::string& name) {
  Envelope message;
  message.mutable_window_configured()->set_window(name);
  message.mutable_window_configured()->set_deleted(true);
  return message;
}

inline Envelope Cycle(uint64_t id,
                      const std::vector<std::string>& jobs,
                      bool stop = false,
                      uint32_t attempt = 1) {
  Envelope message;
  auto* cycle = message.mutable_cycle_requested();
  cycle->set_cycle_id(id);
  cycle->set_now_s(static_cast<int64_t>(100 + id));
  cycle->set_version(model::kLatestRules);
  cycle->add_rules()->set_stop_at_first_blocked(stop);
  for (const std::string& job : jobs) {
    auto* candidate = cycle->add_candidates();
    candidate->set_job_id(job);
    candidate->set_attempt(attempt);
    candidate->set_duration_s(60);
  }
  return message;
}

struct Tried {
  std::string job;
  int64_t duration_s = 0;  // 0: unlimited
  bool may_reserve = true;
  std::vector<std::string> windows = {};
  bool grow = false;
  uint32_t most_slots = 0;
  bool overdue = false;
  uint32_t rule = 0;
  int64_t bound_s = 0;
  uint32_t backfill_turn = 0;
  bool enforced = false;
  bool replace = false;
  std::vector<std::string> closed = {};
  std::vector<std::string> avoided = {};
};

// Now is 100 + id, as in Cycle.
inline Envelope Backfill(uint64_t id,
                         const std::vector<Tried>& jobs,
                         uint32_t most_reservations = 1) {
  Envelope message;
  auto* cycle = message.mutable_cycle_requested();
  cycle->set_cycle_id(id);
  cycle->set_now_s(static_cast<int64_t>(100 + id));
  cycle->set_version(model::kLatestRules);
  cycle->add_rules()->set_most_reservations(most_reservations);
  for (const Tried& tried : jobs) {
    auto* candidate = cycle->add_candidates();
    candidate->set_job_id(tried.job);
    candidate->set_attempt(1);
    candidate->set_duration_s(tried.duration_s);
    candidate->set_may_reserve(tried.may_reserve);
    *candidate->mutable_windows() = {tried.windows.begin(), tried.windows.end()};
    candidate->set_grow(tried.grow);
    candidate->set_most_slots(tried.most_slots);
    candidate->set_overdue(tried.overdue);
    candidate->set_rule(tried.rule);
    candidate->set_bound_s(tried.bound_s);
    candidate->set_backfill_turn(tried.backfill_turn);
    candidate->set_enforced(tried.enforced);
    candidate->set_replace(tried.replace);
    *candidate->mutable_closed_nodes() = {tried.closed.begin(), tried.closed.end()};
    *candidate->mutable_avoided_nodes() = {tried.avoided.begin(), tried.avoided.end()};
  }
  return message;
}

// Candidates of two queues: the first of one job after the other, the second of easy backfill.
inline Envelope OfTwoQueues(uint64_t id, const std::vector<Tried>& jobs) {
  Envelope message = Backfill(id, jobs, 0);
  message.mutable_cycle_requested()->mutable_rules(0)->set_stop_at_first_blocked(true);
  message.mutable_cycle_requested()->add_rules()->set_most_reservations(1);
  return message;
}

inline Envelope Release(const std::string& job,
                        const std::vector<uint32_t>& slots = {},
                        bool ended = false,
                        uint32_t attempt = 1) {
  Envelope message;
  auto* release = message.mutable_release_requested();
  release->mutable_key()->set_job_id(job);
  release->mutable_key()->set_attempt(attempt);
  for (const uint32_t slot : slots) release->add_slots(slot);
  release->set_job_ended(ended);
  return message;
}

// The schema `matcher` in memory.
class Tables {
 public:
  void Apply(const Changes& changes) {
    for (const AllocationKey& key : changes.released) allocations_.at(key).released = true;
    for (const AllocationRow& row : changes.allocations) allocations_[row.key] = row;
    for (const std::string& name : changes.nodes_dropped) nodes_.erase(name);
    for (const NodeRow& row : changes.nodes) nodes_[row.name] = row;
    for (const auto& key : changes.specs_dropped) specs_.erase(key);
    for (const SpecRow& row : changes.specs) specs_[{row.job_id, row.part}] = row;
    for (const AllocationKey& key : changes.reservations_dropped) reservations_.erase(key);
    for (const ReservationRow& row : changes.reservations) reservations_[row.key] = row;
    for (const AnswerRow& row : changes.answers) answers_[row.cycle_id] = row;
    answers_.erase(answers_.begin(), answers_.upper_bound(changes.answers_dropped_through));
    if (changes.pool) pool_ = changes.pool;
    if (changes.forecast) forecast_ = changes.forecast;
  }

  Rows All() const {
    Rows rows;
    for (const auto& [key, row] : allocations_) rows.allocations.push_back(row);
    // Not in the order in which they were made.
    for (auto row = nodes_.rbegin(); row != nodes_.rend(); ++row) rows.nodes.push_back(row->second);
    for (const auto& [key, row] : specs_) rows.specs.push_back(row);
    for (const auto& [key, row] : reservations_) rows.reservations.push_back(row);
    for (const auto& [id, row] : answers_) rows.answers.push_back(row);
    rows.pool = pool_;
    rows.forecast = forecast_;
    return rows;
  }

  friend bool operator==(const Tables&, const Tables&) = default;

 private:
  std::map<AllocationKey, AllocationRow> allocations_;
  std::map<std::string, NodeRow> nodes_;
  std::map<std::pair<std::string, uint32_t>, SpecRow> specs_;
  std::map<AllocationKey, ReservationRow> reservations_;
  std::map<uint64_t, AnswerRow> answers_;
  std::optional<std::string> pool_;
  std::optional<std::string> forecast_;
};

}  // namespace fluxqueue::matcher_core
