// A story for tests: the log in, one message after the other, and what the core says to it as
// lines.
//
//   fact <job> v<version> <state> [<reason>] [<slots> of <min>..<max>] [after=<AfterStop>]
//   cycle <id>: <job>/<attempt>[+][*][<<most slots>>][!<victim>/<attempt> …][?<stoppable> …]
//     [@<window> …] …   (+: to grow; *: overdue)
//   release <job>/<attempt> [slots] [ended]
//   poison
//
// Time stands still but for Wait(). Each message is a batch of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/queue_core/queue_core.h"

namespace fluxqueue::queue_core {

inline constexpr char kPool[] = "main";

inline events::v1::Envelope ForPool() {
  events::v1::Envelope message;
  message.set_pool(kPool);
  return message;
}

struct JobOptions {
  std::string kind = "Job";
  uint32_t slots = 1;
  int64_t completions = 1;
  bool recreatable = true;
  uint32_t min_slots = 0;  // elastic
  std::string queue = "default";
  int32_t priority = 0;
  bool hold = false;
  std::string user = "ann";
  std::string space = "team";
  int64_t begin_ms = 0;
  std::optional<int64_t> duration_ms{};
  std::vector<std::string> depends_on{};  // "afterok:a"
  int64_t cpu = 1000;                     // of all slots; 0: amounts are not known
  int64_t gpus = 0;
  int64_t fpgas = 0;
  bool ignores_disruptions = false;
};
inline JobOptions BarePod() {
  return {.kind = "Pod", .recreatable = false};
}

inline events::v1::Envelope Submitted(const std::string& id, const JobOptions& options = {}) {
  events::v1::Envelope message = ForPool();
  auto* job = message.mutable_job_submitted();
  job->set_job_id(id);
  job->mutable_workload()->set_kind(options.kind);
  job->mutable_workload()->set_namespace_(options.space);
  job->mutable_workload()->set_name("name-of-" + id);
  job->mutable_workload()->set_uid(id);
  job->mutable_workload()->set_completions(options.completions);
  job->mutable_workload()->set_recreatable(options.recreatable);
  job->mutable_workload()->set_ignores_disruptions(options.ignores_disruptions);
  job->set_queue(options.queue);
  job->set_priority(options.priority);
  job->set_hold(options.hold);
  job->mutable_spec()->set_revision(1);
  job->mutable_spec()->set_slots(options.slots);
  job->mutable_spec()->set_min_slots(options.min_slots);
  const auto add_amount = [&](const char* resource, int64_t amount) {
    if (amount == 0) return;
    events::v1::Amount* added = job->mutable_spec()->add_amounts();
    added->set_resource(resource);
    added->set_amount(amount);
  };
  add_amount("cpu", options.cpu);
  add_amount("example.com/fpga", options.fpgas);
  add_amount("nvidia.com/gpu", options.gpus);
  job->set_created_ms(123);
  job->set_user(options.user);
  job->set_begin_ms(options.begin_ms);
  if (options.duration_ms.has_value()) job->set_duration_ms(*options.duration_ms);
  for (const std::string& text : options.depends_on) {
    const size_t colon = text.find(':');
    const auto condition = scheduling::FindCondition(text.substr(0, colon));
    events::v1::Dependency* dependency = job->add_depends_on();
    dependency->set_condition(
        static_cast<events::v1::Dependency::Condition>(1 + static_cast<int>(*condition)));
    dependency->set_job(text.substr(colon + 1));
  }
  return message;
}

// Of one that was rejected.
inline events::v1::Envelope HandedInAgain(const std::string& id,
                                          uint64_t after_version,
                                          uint32_t after_attempt,
                                          const JobOptions& options = {}) {
  events::v1::Envelope message = Submitted(id, options);
  message.mutable_job_submitted()->set_after_version(after_version);
  message.mutable_job_submitted()->set_after_attempt(after_attempt);
  return message;
}

inline events::v1::Envelope BeginAt(const std::string& id, int64_t begin_ms) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->set_begin_ms(begin_ms);
  return message;
}
inline events::v1::Envelope Held(const std::string& id, bool hold) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->set_hold(hold);
  return message;
}
inline events::v1::Envelope Cancelled(const std::string& id) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->set_cancel(true);
  return message;
}
inline events::v1::Envelope Moved(const std::string& id, const std::string& queue) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->set_queue(queue);
  return message;
}
inline events::v1::Envelope Prioritised(const std::string& id, int32_t priority) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->set_priority(priority);
  return message;
}
inline events::v1::Envelope Resized(const std::string& id, uint32_t revision, uint32_t slots) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_updated()->set_job_id(id);
  message.mutable_job_updated()->mutable_spec()->set_revision(revision);
  message.mutable_job_updated()->mutable_spec()->set_slots(slots);
  return message;
}
// It can go on: only the number of its slots is another.
inline events::v1::Envelope GoesOnWith(const std::string& id,
                                       uint32_t revision,
                                       uint32_t slots,
                                       int64_t completions) {
  events::v1::Envelope message = ForPool();
  auto* updated = message.mutable_job_updated();
  updated->set_job_id(id);
  updated->mutable_resized()->set_revision(revision);
  updated->mutable_resized()->set_slots(slots);
  events::v1::Amount* cpu = updated->mutable_resized()->add_amounts();
  cpu->set_resource("cpu");
  cpu->set_amount(1000 * slots);
  updated->set_completions(completions);
  return message;
}
inline events::v1::Envelope Withdrawn(const std::string& id) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_withdrawn()->set_job_id(id);
  message.mutable_job_withdrawn()->set_reason("deleted");
  return message;
}
// Commands.
struct ClaimOptions {
  uint32_t slots = 1;
  std::optional<int64_t> duration_ms{};
  std::string queue = "default";
};
inline events::v1::Envelope Claimed(const std::string& id, const ClaimOptions& options = {}) {
  events::v1::Envelope message = ForPool();
  message.mutable_command_accepted()->set_client_id("client of " + id);
  auto* claim = message.mutable_command_accepted()->mutable_submit_claim();
  claim->set_job_id(id);
  claim->set_queue(options.queue);
  if (options.duration_ms.has_value()) claim->set_duration_ms(*options.duration_ms);
  claim->mutable_spec()->set_revision(1);
  claim->mutable_spec()->set_slots(options.slots);
  claim->set_name("claim-" + id);
  claim->set_owner("ann");
  claim->set_created_ms(123);
  return message;
}
inline events::v1::Envelope CancelCommand(const std::string& id) {
  events::v1::Envelope message = ForPool();
  message.mutable_command_accepted()->set_asked_by("ann");
  message.mutable_command_accepted()->mutable_cancel_job()->set_job_id(id);
  return message;
}
inline events::v1::Envelope PriorityCommand(const std::string& id, int32_t priority) {
  events::v1::Envelope message = ForPool();
  auto* command = message.mutable_command_accepted()->mutable_set_priority();
  command->set_job_id(id);
  command->set_priority(priority);
  return message;
}
inline events::v1::Envelope HoldCommand(const std::string& id, bool hold) {
  events::v1::Envelope message = ForPool();
  if (hold) {
    message.mutable_command_accepted()->mutable_hold_job()->set_job_id(id);
  } else {
    message.mutable_command_accepted()->mutable_release_job()->set_job_id(id);
  }
  return message;
}

inline events::v1::Envelope MoveCommand(const std::string& id, const std::string& queue) {
  events::v1::Envelope message = ForPool();
  message.mutable_command_accepted()->mutable_move_job()->set_job_id(id);
  message.mutable_command_accepted()->mutable_move_job()->set_queue(queue);
  return message;
}

inline events::v1::Envelope Abandoned(uint64_t cycle) {
  events::v1::Envelope message = ForPool();
  message.mutable_command_accepted()->mutable_abandon_cycle()->set_cycle_id(cycle);
  return message;
}

inline events::v1::Envelope QueueMade(const std::string& name,
                                      uint32_t depth = 0,
                                      int priority = 0,
                                      const std::string& strategy = "fcfs",
                                      int64_t reject_after_ms = 0) {
  events::v1::Envelope message = ForPool();
  message.mutable_queue_configured()->set_reject_after_ms(reject_after_ms);
  message.mutable_queue_configured()->set_queue(name);
  message.mutable_queue_configured()->set_strategy(strategy);
  message.mutable_queue_configured()->set_queue_depth(depth);
  message.mutable_queue_configured()->set_priority(priority);
  return message;
}

// The queue, as the change makes it.
inline events::v1::Envelope QueueWith(
    const std::function<void(events::v1::QueueConfigured*)>& change,
    const std::string& name = "default") {
  events::v1::Envelope message = QueueMade(name);
  change(message.mutable_queue_configured());
  return message;
}
inline events::v1::Envelope QueueDeleted(const std::string& name) {
  events::v1::Envelope message = ForPool();
  message.mutable_queue_configured()->set_queue(name);
  message.mutable_queue_configured()->set_deleted(true);
  return message;
}
inline events::v1::Envelope WindowSet(const std::string& name,
                                      Millis start,
                                      Millis end,
                                      const std::vector<std::string>& namespaces = {}) {
  events::v1::Envelope message = ForPool();
  auto* window = message.mutable_window_configured();
  window->set_window(name);
  window->set_start_ms(start.count());
  window->set_end_ms(end.count());
  *window->mutable_namespaces() = {namespaces.begin(), namespaces.end()};
  return message;
}
inline events::v1::Envelope WindowDeleted(const std::string& name) {
  events::v1::Envelope message = ForPool();
  message.mutable_window_configured()->set_window(name);
  message.mutable_window_configured()->set_deleted(true);
  return message;
}
// `rules` 0: the latest.
inline events::v1::Envelope PoolConfig(uint32_t max_attempts = 0, uint32_t rules = 0) {
  events::v1::Envelope message = ForPool();
  auto* config = message.mutable_pool_configured();
  config->set_rules(rules);
  if (rules == 1) config->set_unsatisfiable_grace_ms(5000);
  config->set_answer_deadline_ms(2000);
  config->set_retry_min_ms(1000);
  config->set_retry_max_ms(8000);
  config->set_max_attempts(max_attempts);
  return message;
}
inline events::v1::Envelope Tick() {
  events::v1::Envelope message = ForPool();
  message.mutable_tick();
  return message;
}

// An outcome: {"a", 1, KIND_ALLOCATED}.
struct Said {
  std::string job;
  uint32_t attempt = 1;
  events::v1::Outcome::Kind kind = events::v1::Outcome::KIND_ALLOCATED;
  std::string reason = "";
  int64_t at_s = 0;
  uint32_t slots = 0;  // elastic: that it holds now
};
inline constexpr auto kAllocatedKind = events::v1::Outcome::KIND_ALLOCATED;
inline constexpr auto kBusyKind = events::v1::Outcome::KIND_BUSY;
inline constexpr auto kUnsatisfiableKind = events::v1::Outcome::KIND_UNSATISFIABLE;
inline constexpr auto kInvalidKind = events::v1::Outcome::KIND_INVALID;
inline constexpr auto kReservedKind = events::v1::Outcome::KIND_RESERVED;

inline events::v1::Envelope Answered(uint64_t cycle, const std::vector<Said>& outcomes) {
  events::v1::Envelope message = ForPool();
  message.mutable_cycle_answered()->set_cycle_id(cycle);
  for (const Said& said : outcomes) {
    auto* outcome = message.mutable_cycle_answered()->add_outcomes();
    outcome->set_job_id(said.job);
    outcome->set_attempt(said.attempt);
    outcome->set_kind(said.kind);
    outcome->set_reason(said.reason);
    outcome->set_at_s(said.at_s);
    if (said.kind != kAllocatedKind && said.slots == 0) continue;
    outcome->set_slots(said.slots);
    outcome->set_placement_hash(77 + said.slots);
  }
  return message;
}
// Of the first outcome; of attempt 1.
inline events::v1::Envelope WithVictims(events::v1::Envelope answer,
                                        const std::vector<std::string>& victims) {
  for (const std::string& victim : victims) {
    events::v1::AllocationKey* key =
        answer.mutable_cycle_answered()->mutable_outcomes(0)->add_victims();
    key->set_job_id(victim);
    key->set_attempt(1);
  }
  return answer;
}
// Of the first outcome; of attempt 1.
inline events::v1::Envelope WithSlots(events::v1::Envelope answer,
                                      const std::string& id,
                                      const std::vector<uint32_t>& slots) {
  auto* held = answer.mutable_cycle_answered()->mutable_outcomes(0)->add_vacate();
  held->mutable_key()->set_job_id(id);
  held->mutable_key()->set_attempt(1);
  for (const uint32_t slot : slots) held->add_slots(slot);
  return answer;
}
inline events::v1::Envelope Released(const std::string& id,
                                     uint32_t attempt,
                                     bool nothing_held = false) {
  events::v1::Envelope message = ForPool();
  message.mutable_released()->mutable_key()->set_job_id(id);
  message.mutable_released()->mutable_key()->set_attempt(attempt);
  message.mutable_released()->set_nothing_held(nothing_held);
  return message;
}
inline events::v1::Envelope Inventory(bool grew, bool synced) {
  events::v1::Envelope message = ForPool();
  message.mutable_inventory_changed()->set_grew(grew);
  message.mutable_inventory_changed()->set_synced(synced);
  return message;
}
inline events::v1::Envelope NodeGone(const std::string& node,
                                     const std::string& id,
                                     uint32_t attempt) {
  events::v1::Envelope message = ForPool();
  message.mutable_inventory_changed()->set_node(node);
  message.mutable_inventory_changed()->set_synced(true);
  auto* key = message.mutable_inventory_changed()->add_broken();
  key->set_job_id(id);
  key->set_attempt(attempt);
  return message;
}
inline events::v1::Envelope Bound(const std::string& id, uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_bound()->set_job_id(id);
  message.mutable_job_bound()->set_attempt(attempt);
  return message;
}
inline events::v1::Envelope Vacated(const std::string& id,
                                    const std::vector<uint32_t>& slots,
                                    uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_slots_vacated()->set_job_id(id);
  message.mutable_slots_vacated()->set_attempt(attempt);
  for (const uint32_t slot : slots) message.mutable_slots_vacated()->add_slots(slot);
  return message;
}
struct LostOne {
  uint32_t slot = 0;
  std::string node = "n0";
  bool closed = true;
};
inline events::v1::Envelope SlotsLost(const std::string& id,
                                      const std::vector<LostOne>& slots,
                                      uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_slots_lost()->set_job_id(id);
  message.mutable_slots_lost()->set_attempt(attempt);
  for (const LostOne& one : slots) {
    events::v1::SlotsLost::Lost* lost = message.mutable_slots_lost()->add_slots();
    lost->set_slot(one.slot);
    lost->set_node(one.node);
    lost->set_reason(one.closed ? "is cordoned" : "has put its pod out");
    lost->set_closed(one.closed);
  }
  return message;
}
inline events::v1::Envelope BindFailed(const std::string& id, uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_bind_failed()->set_job_id(id);
  message.mutable_bind_failed()->set_attempt(attempt);
  message.mutable_bind_failed()->set_reason("StartTimeout");
  message.mutable_bind_failed()->set_message("no pods came within 60 s");
  return message;
}
inline events::v1::Envelope Stopped(const std::string& id, uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_stopped()->set_job_id(id);
  message.mutable_job_stopped()->set_attempt(attempt);
  return message;
}
inline events::v1::Envelope Started(const std::string& id, uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_started()->set_job_id(id);
  message.mutable_job_started()->set_attempt(attempt);
  message.mutable_job_started()->set_started_ms(456);
  return message;
}
inline constexpr auto kPodSucceeded = events::v1::PodEnded::RESULT_SUCCEEDED;
inline constexpr auto kPodFailed = events::v1::PodEnded::RESULT_FAILED;

inline events::v1::Envelope PodEnded(const std::string& id,
                                     uint32_t slot,
                                     events::v1::PodEnded::Result result = kPodSucceeded,
                                     uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_pod_ended()->set_job_id(id);
  message.mutable_pod_ended()->set_attempt(attempt);
  message.mutable_pod_ended()->set_slot(slot);
  message.mutable_pod_ended()->set_result(result);
  return message;
}
inline constexpr auto kJobSucceeded = events::v1::JobEnded::RESULT_SUCCEEDED;
inline constexpr auto kJobFailed = events::v1::JobEnded::RESULT_FAILED;
inline constexpr auto kJobDeleted = events::v1::JobEnded::RESULT_DELETED;

inline events::v1::Envelope Ended(const std::string& id,
                                  events::v1::JobEnded::Result result = kJobSucceeded) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_ended()->set_job_id(id);
  message.mutable_job_ended()->set_result(result);
  return message;
}
inline events::v1::Envelope NodeLost(const std::string& id, uint32_t attempt = 1) {
  events::v1::Envelope message = ForPool();
  message.mutable_job_node_lost()->set_job_id(id);
  message.mutable_job_node_lost()->set_attempt(attempt);
  message.mutable_job_node_lost()->set_node("node-7");
  return message;
}

// Of Candidate.stoppable and Candidate.lenders.
inline bool HasBit(const std::string& bits, int place) {
  const auto byte = static_cast<size_t>(place) / 8;
  return byte < bits.size() && (bits[byte] >> place % 8 & 1) != 0;
}

inline std::string Describe(const events::v1::Envelope& message) {
  if (message.has_job_fact()) {
    const auto& fact = message.job_fact();
    std::string line = fmt::format("fact {} v{} {}",
                                   fact.job_id(),
                                   fact.version(),
                                   model::Name(static_cast<model::JobState>(fact.state())));
    if (!fact.reason().empty()) line += " " + fact.reason();
    if (fact.max_slots() != 0) {
      line += fmt::format(" {} of {}..{}", fact.slots(), fact.min_slots(), fact.max_slots());
    }
    if (fact.after_stop() == events::v1::JobFact::AFTER_STOP_REQUEUE) line += " after=requeue";
    if (fact.after_stop() == events::v1::JobFact::AFTER_STOP_CANCEL) line += " after=cancel";
    if (fact.after_stop() == events::v1::JobFact::AFTER_STOP_FAIL) line += " after=fail";
    for (const uint32_t slot : fact.vacate()) line += fmt::format(" -{}", slot);
    if (fact.grace_ms() != 0) line += fmt::format(" grace={}", fact.grace_ms());
    return line;
  }
  if (message.has_cycle_requested()) {
    std::string line = fmt::format("cycle {}:", message.cycle_requested().cycle_id());
    for (const auto& candidate : message.cycle_requested().candidates()) {
      line += fmt::format(" {}/{}", candidate.job_id(), candidate.attempt());
      if (candidate.grow()) line += candidate.replace() ? "=" : "+";
      if (candidate.overdue()) line += "*";
      if (candidate.most_slots() != 0) line += fmt::format("<{}>", candidate.most_slots());
      for (const auto& victim : candidate.victims()) {
        line += fmt::format("!{}/{}", victim.job_id(), victim.attempt());
      }
      for (int i = 0; i < message.cycle_requested().stoppable_size(); ++i) {
        if (!HasBit(candidate.stoppable(), i)) continue;
        line += "?" + message.cycle_requested().stoppable(i).key().job_id();
      }
      for (const std::string& window : candidate.windows()) line += "@" + window;
      for (const std::string& node : candidate.closed_nodes()) line += "-" + node;
      for (const std::string& node : candidate.avoided_nodes()) line += "~" + node;
    }
    return line;
  }
  const auto& release = message.release_requested();
  std::string line = fmt::format("release {}/{}", release.key().job_id(), release.key().attempt());
  for (const uint32_t slot : release.slots()) line += fmt::format(" slot {}", slot);
  if (release.job_ended()) line += " ended";
  return line;
}

class Story {
 public:
  using Lines = std::vector<std::string>;

  // A pool with its FluxQueue `default` and all of its nodes.
  Story() {
    Tell(PoolConfig());
    Tell(QueueMade("default"));
    Tell(Inventory(true, true));
  }
  // A pool of which nothing is known.
  explicit Story(std::nullptr_t) {}

  Lines Tell(const events::v1::Envelope& message) {
    Outputs outputs;
    const absl::Status status = core_.Handle(message, now_, &outputs);
    changes_ = core_.TakeChanges();
    core_.Commit();
    stale_ = outputs.stale;
    timings_ = outputs.timings;
    error_ = fluxqueue::Message(status);
    if (!status.ok()) return {"poison"};
    Lines lines;
    for (const auto& fact : outputs.jobs) {
      lines.push_back(queue_core::Describe(fact));
      last_ = fact.job_fact();
    }
    for (const auto& said : outputs.pool) lines.push_back(queue_core::Describe(said));
    return lines;
  }
  void Wait(int64_t ms) { now_ += Millis(ms); }

  // The job is now in the state, by the shortest way; attempt 1.
  void Bring(const std::string& id, model::JobState state, const JobOptions& options = {}) {
    Tell(Submitted(id, options));
    if (state <= model::JobState::kPending) return;
    Tell(Answered(core_.cycle_in_flight(), {{id}}));
    if (state == model::JobState::kAllocated) return;
    Tell(Bound(id));
    if (state == model::JobState::kBound) return;
    Tell(Started(id));
    if (state == model::JobState::kStopping) Tell(NodeLost(id));
  }

  QueueCore& core() { return core_; }
  Millis now() const { return now_; }
  const events::v1::JobFact& last() const { return last_; }
  const Changes& changes() const { return changes_; }
  const std::string& error() const { return error_; }
  uint64_t stale() const { return stale_; }
  const std::vector<Timing>& timings() const { return timings_; }

 private:
  QueueCore core_{kPool};
  Millis now_{1'000'000};
  events::v1::JobFact last_;
  Changes changes_;
  std::string error_;
  uint64_t stale_ = 0;
  std::vector<Timing> timings_;
};

}  // namespace fluxqueue::queue_core
