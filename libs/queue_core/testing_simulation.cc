#include "libs/queue_core/testing_simulation.h"

#include <algorithm>
#include <utility>

#include "libs/model/rules.h"

namespace fluxqueue::queue_core {

using model::JobState;

namespace {

constexpr int64_t kRejectAfterMs = 5000;

}  // namespace

Simulation::Simulation(uint32_t rules) {
  Tell(PoolConfig(/*max_attempts=*/4, rules));
  Tell(QueueMade("default", /*depth=*/4, 0, "fcfs", kRejectAfterMs));
}

void Simulation::Tell(const events::v1::Envelope& message) {
  std::map<std::string, JobState> before;
  for (const std::string& id : ids_) {
    if (const Job* job = core_.Find(id); job != nullptr) before[id] = job->state;
  }
  const uint64_t fingerprint = core_.Fingerprint();
  Outputs outputs;
  const absl::Status status = core_.Handle(message, now_, &outputs);
  log_.push_back({message, now_, !status.ok()});
  if (!status.ok()) {
    RC_ASSERT(IsPoison(status));
    RC_ASSERT(outputs.jobs.empty() && outputs.pool.empty());
    RC_ASSERT(core_.Fingerprint() == fingerprint);
    RC_ASSERT(core_.TakeChanges().empty());
    return;
  }
  core_.Commit();
  matcher_.Read(message);
  if (message.has_cycle_answered()) answered_cycle_ = message.cycle_answered().cycle_id();
  for (const auto& fact : outputs.jobs) CheckFact(fact.job_fact());
  for (const auto& said : outputs.pool) {
    if (said.has_release_requested()) CheckRelease(message, said.release_requested(), before);
    if (said.has_cycle_requested()) {
      // One in flight: the next only after the answer to the last; or the same again.
      const uint64_t id = said.cycle_requested().cycle_id();
      RC_ASSERT(id == last_cycle_ || (id == last_cycle_ + 1 && answered_cycle_ == last_cycle_));
      RC_ASSERT(said.cycle_requested().candidates_size() > 0);
      if (id > last_cycle_) CheckWindows(said.cycle_requested());
      last_cycle_ = id;
    }
    matcher_.Read(said);
  }
  Append(outputs, &said_);
  if (matcher_.silent()) CheckHeld();
}

void Simulation::CheckHeld() const {
  for (const std::string& id : ids_) {
    const Job* job = core_.Find(id);
    const bool goes_on = job != nullptr && model::kHoldingStates.Has(job->state) &&
                         job->state != JobState::kStopping;
    if (!goes_on || IsElastic(*job) || claims_.contains(id)) continue;
    // The world may have said that the pod of a slot has succeeded which the job has not.
    const uint32_t numbers = std::max(job->held_slots, job->slots);
    if (!job->released_slots.empty() && job->released_slots.back() >= numbers) continue;
    RC_ASSERT(matcher_.HeldBy(id, job->attempt) == LiveSlots(*job));
  }
}

void Simulation::CheckFact(const events::v1::JobFact& fact) {
  Seen& seen = seen_[fact.job_id()];
  const auto state = static_cast<JobState>(fact.state());
  RC_ASSERT(fact.version() == seen.version + 1);
  RC_ASSERT(model::CanMove(seen.state, state));
  RC_ASSERT(fact.min_slots() <= fact.max_slots());
  if (fact.max_slots() != 0 && model::kHoldingStates.Has(state)) RC_ASSERT(fact.slots() > 0U);
  if (fact.max_slots() != 0 && !model::kHoldingStates.Has(state)) {
    RC_ASSERT(fact.slots() == fact.max_slots());
  }
  if (fact.reason() == "Grown" && state == seen.state) ++grown_;
  if (fact.reason() == "Replaced" && state == seen.state) ++replaced_;
  if (fact.reason() == "Shrunk" && state == seen.state) {
    // What it keeps is its least, at least; slots of pods that have succeeded are out already.
    RC_ASSERT(fact.slots() >= fact.min_slots());
    ++shrunk_;
  }
  if (fact.reason() == "Preempted" && state == JobState::kStopping &&
      seen.state != JobState::kStopping) {
    RC_ASSERT(fact.after_stop() == events::v1::JobFact::AFTER_STOP_REQUEUE);
    RC_ASSERT(fact.workload().recreatable());
    RC_ASSERT(!claims_.contains(fact.job_id()));
    ++preempted_;
  }
  if (seen.state == JobState::kRejected) {
    RC_ASSERT(fact.attempt() == seen.attempt + 1);
    RC_ASSERT(std::exchange(seen.last_releases, 0) == 1);
    ++handed_in_again_;
  }
  seen.version = fact.version();
  seen.state = state;
  seen.attempt = fact.attempt();
}

void Simulation::CheckRelease(const events::v1::Envelope& cause,
                              const events::v1::ReleaseRequested& release,
                              const std::map<std::string, JobState>& before) {
  const std::string& id = release.key().job_id();
  if (release.job_ended()) {
    // With each full minute it is said again, until it is confirmed.
    seen_[id].last_releases = 1;
    RC_ASSERT(model::IsTerminal(seen_[id].state));
  }
  // What may run is only released when it has stopped or ended; a slot, when its pod has.
  const auto it = before.find(id);
  if (it == before.end() || !model::kHoldingStates.Has(it->second)) return;
  if (cause.has_cycle_answered())
    return;  // an older attempt's, that was never said to be allocated
  if (claims_.contains(id)) {
    // Nothing of it runs: it may end at any time, but only as a whole.
    RC_ASSERT(release.job_ended() && release.slots_size() == 0);
    return;
  }
  const bool some = release.slots_size() > 0;
  const bool free =
      some ? cause.has_pod_ended() || cause.has_slots_vacated() || cause.has_slots_lost()
           : cause.has_job_stopped() || cause.has_job_ended();
  RC_ASSERT(free);
}

void Simulation::Do(const Step& step) {
  const auto& [what, which, how] = step;
  if (what < 6) {
    Submit(how);
  } else if (what < 14) {
    for (int i = 0; i <= how / 2 && !matcher_.silent(); ++i) Tell(matcher_.Next());
  } else if (what >= 48) {
    const size_t back = std::min<size_t>(static_cast<size_t>(which) + 1, ids_.size());
    if (back > 0) LoseSlots(ids_[ids_.size() - back], how);
  } else if (what >= 47) {
    WantSlotsOfAnElasticOne(how);
  } else if (what >= 46) {
    ConfigureWindow(which, how);
  } else if (what >= 45) {
    ConfigureQueue(which, how);
  } else if (what == 44) {
    GiveRoomToGrow(how);
  } else if (what >= 38) {
    SubmitOrdered(which, how);
  } else if (what >= 36) {
    SubmitClaim(how);
  } else if (what >= 30) {
    PoolChanges(what - 30, how);
  } else if (!ids_.empty()) {
    // Mostly of the last few.
    const size_t back = std::min<size_t>(static_cast<size_t>(which), ids_.size() - 1);
    const std::string id = ids_[ids_.size() - 1 - back];
    if (what < 22) {
      WorldSays(what - 14, id, how);
    } else if (what >= 28) {
      Command(what - 28, id, how);
    } else {
      UserSays(what - 22, id, how);
    }
  }
}

void Simulation::Submit(int how) {
  JobOptions options;
  options.slots = how == 7 ? 9 : static_cast<uint32_t>(1 + how % 4);
  options.completions = how % 3 == 0 ? 20 : options.slots;
  options.recreatable = how % 2 == 0;
  options.queue = how == 5 ? "other" : "default";
  options.priority = how == 6 ? 3 : 0;
  options.hold = how == 4;
  if (how == 2 || how == 3) {
    options.min_slots = static_cast<uint32_t>(4 - how);
    options.slots = 6;
    options.completions = 20;
    options.ignores_disruptions = true;
  }
  ids_.push_back(fmt::format("j{}", ids_.size()));
  Tell(Submitted(ids_.back(), options));
}

void Simulation::SubmitOrdered(int which, int how) {
  JobOptions options;
  options.slots = static_cast<uint32_t>(1 + how % 3);
  options.cpu = 500 * (1 + how);
  options.gpus = how % 3;
  options.fpgas = how % 2;
  options.user = which % 2 == 0 ? "ann" : "bob";
  options.space = which % 3 == 0 ? "team" : "other";
  options.queue = which == 5 ? "other" : "default";
  options.priority = how == 1 ? 2 : 0;
  if (which == 4) options.begin_ms = now_.count() + how * 500;
  if (which == 3) {
    options.slots += 3;
    options.min_slots = static_cast<uint32_t>(1 + how % 2);
    options.completions = 4 * how;
    options.ignores_disruptions = which + how > 4;
  }
  static constexpr const char* kConditions[] = {"afterok", "afterany", "afternotok"};
  if (how >= 4 && !ids_.empty()) {
    // One that lives or has ended, the next one, itself, or one that never comes; by id or name.
    const size_t at = ids_.size() - std::min<size_t>(static_cast<size_t>(which), ids_.size());
    const std::string id = fmt::format("j{}", which == 1 ? ids_.size() + 1 : at);
    options.depends_on = {
        fmt::format("{}:{}{}", kConditions[which % 3], how % 2 == 0 ? "" : "name-of-", id)};
    if (how == 7) options.depends_on.push_back("afterany:" + ids_[ids_.size() / 2]);
  }
  ids_.push_back(fmt::format("j{}", ids_.size()));
  Tell(Submitted(ids_.back(), options));
}

void Simulation::GiveRoomToGrow(int how) {
  const auto submit = [this](const JobOptions& options) {
    ids_.push_back(fmt::format("j{}", ids_.size()));
    Tell(Submitted(ids_.back(), options));
    return ids_.back();
  };
  const std::string first = submit({.slots = static_cast<uint32_t>(1 + how % 5)});
  submit({.slots = 6,
          .completions = how == 7 ? 3 : 30,
          .min_slots = 1,
          .cpu = 1200,
          .ignores_disruptions = how % 2 == 0});
  for (int i = 0; i < how && !matcher_.silent(); ++i) Tell(matcher_.Next());
  Tell(Ended(first));
}

void Simulation::WantSlotsOfAnElasticOne(int how) {
  events::v1::Envelope queue = QueueMade("default", 4);
  queue.mutable_queue_configured()->mutable_preemption()->set_by_priority(true);
  queue.mutable_queue_configured()->mutable_preemption()->set_grace_ms(how * 500);
  Tell(queue);
  const std::string id = fmt::format("j{}", ids_.size());
  ids_.push_back(id);
  Tell(Submitted(
      id,
      {.slots = 6, .completions = how == 3 ? 6 : 40, .min_slots = 1, .ignores_disruptions = true}));
  while (!matcher_.silent()) Tell(matcher_.Next());
  const Job* job = core_.Find(id);
  if (job != nullptr && job->state == JobState::kAllocated) Tell(Bound(id, job->attempt));
  ids_.push_back(fmt::format("j{}", ids_.size()));
  Tell(Submitted(ids_.back(), {.slots = static_cast<uint32_t>(1 + how % 4), .priority = 5}));
  while (!matcher_.silent()) Tell(matcher_.Next());
  job = core_.Find(id);
  if (how >= 4 && job != nullptr && !Vacating(*job).empty()) {
    Tell(Vacated(id, Vacating(*job), job->attempt));
  }
}

// Some that it holds, and some that it may not.
void Simulation::LoseSlots(const std::string& id, int how) {
  const Job* job = core_.Find(id);
  const uint32_t attempt = job == nullptr ? 1 : job->attempt;
  const uint32_t last = job == nullptr ? 0 : std::max(job->held_slots, job->slots);
  std::vector<LostOne> slots = {{static_cast<uint32_t>(how % 3), "n0", how % 2 == 0}};
  if (how >= 3) slots.push_back({last - (how == 7 ? 0 : 1), "n1", how == 5});
  Tell(SlotsLost(id, slots, how == 6 ? attempt - 1 : attempt));
}

void Simulation::ConfigureQueue(int which, int how) {
  events::v1::Envelope message = QueueMade(which % 2 == 0 ? "default" : "other", 4);
  auto* queue = message.mutable_queue_configured();
  static constexpr const char* kStrategies[] = {"fcfs", "adaptive", "easy", "adaptive"};
  queue->set_strategy(kStrategies[(which + how) % 4]);
  queue->set_default_duration_ms(how >= 6 ? 0 : how * 900);
  queue->set_reject_after_ms(kRejectAfterMs);
  queue->set_reserve_after_ms(how * 400);
  queue->set_order(how % 2 == 0 ? "fair-share" : "priority");
  queue->set_weight(1 + how % 3);
  queue->set_half_life_ms(how == 3 ? 0 : 4000);
  queue->set_aging_ms(which == 2 ? 1000 : 0);
  queue->set_predict_durations(how >= 4);
  if (how != 2 && which >= 2) {
    queue->mutable_preemption()->set_by_priority(how % 2 == 0 || how == 7);
    queue->mutable_preemption()->set_reclaim(how % 3 != 0);
    queue->mutable_preemption()->set_grace_ms(how * 1000);
    events::v1::Amount* guarantee = queue->add_guarantee();
    guarantee->set_resource("cpu");
    guarantee->set_amount(which * 1000);
  }
  if (how >= 5) queue->set_parent(which % 2 == 0 ? "other" : "default");
  if (how % 2 == 0) {
    events::v1::UserWeight* weight = queue->add_user_weights();
    weight->set_user("ann");
    weight->set_weight(how);
    events::v1::Budget* budget = queue->add_budgets();
    budget->set_resource(how % 4 == 0 ? "gpu" : "example.com/fpga");
    budget->set_period(events::v1::Budget::PERIOD_DAY);
  }
  if (how % 4 == 1) queue->mutable_user_limits()->set_running_jobs(1);
  if (how % 4 == 2) queue->mutable_namespace_limits()->set_queued_jobs(2);
  if (how % 4 == 3) {
    queue->mutable_limits()->set_gpu_seconds(2);
    events::v1::Amount* cpu = queue->mutable_limits()->add_amounts();
    cpu->set_resource("cpu");
    cpu->set_amount(2500);
  }
  Tell(message);
}

void Simulation::ConfigureWindow(int which, int how) {
  const std::string name = fmt::format("w{}", which % 3);
  if (how == 7) {
    windows_.erase(name);
    return Tell(WindowDeleted(name));
  }
  std::vector<std::string> namespaces;
  if (which >= 3) namespaces.emplace_back("other");
  if (how % 2 == 0) namespaces.emplace_back("team");
  // Also some that are over, or end before they begin.
  const Millis start = now_ + Millis(700 * (which - 2));
  const auto message = WindowSet(name, start, start + Millis(900 * (how - 1)), namespaces);
  if (how > 1) windows_[name] = message.window_configured();
  Tell(message);
}

void Simulation::CheckWindows(const events::v1::CycleRequested& cycle) const {
  for (const events::v1::Candidate& candidate : cycle.candidates()) {
    const std::string& space = core_.Find(candidate.job_id())->workload->namespace_();
    std::vector<std::string> wanted;
    for (const auto& [name, window] : windows_) {
      const auto& spaces = window.namespaces();
      const bool names = std::find(spaces.begin(), spaces.end(), space) != spaces.end();
      if (names && window.end_ms() > now_.count()) wanted.push_back(name);
    }
    RC_ASSERT(std::equal(
        wanted.begin(), wanted.end(), candidate.windows().begin(), candidate.windows().end()));
  }
}

void Simulation::SubmitClaim(int how) {
  ClaimOptions options;
  options.slots = how == 7 ? 9 : static_cast<uint32_t>(1 + how % 3);
  if (how % 2 == 0) options.duration_ms = how * 700;
  options.queue = how == 5 ? "other" : "default";
  ids_.push_back(fmt::format("c{}", ids_.size()));
  claims_.insert(ids_.back());
  Tell(Claimed(ids_.back(), options));
}

void Simulation::Command(int what, const std::string& id, int how) {
  if (what == 0 && how == 7) return Tell(MoveCommand(id, "other"));
  if (what == 0) return Tell(how % 3 == 0 ? CancelCommand(id) : PriorityCommand(id, how % 3));
  if (how < 6) return Tell(HoldCommand(id, how % 2 == 0));
  // The same claim again, as long as it is remembered.
  if (claims_.contains(id) && core_.Remembers(id)) Tell(Claimed(id));
}

void Simulation::WorldSays(int what, const std::string& id, int how) {
  const Job* job = core_.Find(id);
  uint32_t attempt = job == nullptr ? 1 : job->attempt;
  if (how == 7) ++attempt;                 // impossible
  if (how == 6 && attempt > 1) --attempt;  // stale
  switch (what) {
    case 0:
      if (job != nullptr && !Vacating(*job).empty()) {
        return Tell(Vacated(id, {static_cast<uint32_t>(how), Vacating(*job).back()}, attempt));
      }
      return Tell(Bound(id, attempt));
    case 1:
      return Tell(BindFailed(id, attempt));
    case 2:
    case 3:
      return Tell(Stopped(id, attempt));
    case 4:
      return Tell(Started(id, attempt));
    case 5:
      return Tell(PodEnded(
          id, static_cast<uint32_t>(how % 3), how == 5 ? kPodFailed : kPodSucceeded, attempt));
    case 6:
      return Tell(Ended(id,
                        how % 3 == 0   ? kJobSucceeded
                        : how % 3 == 1 ? kJobFailed
                                       : kJobDeleted));
    default:
      return Tell(NodeLost(id, attempt));
  }
}

void Simulation::UserSays(int what, const std::string& id, int how) {
  const Job* job = core_.Find(id);
  switch (what) {
    case 0:
      return Tell(Held(id, how % 2 == 0));
    case 1:
      if (how == 7) return Tell(BeginAt(id, now_.count() + 700));
      return Tell(Prioritised(id, how % 3));
    case 2:
      return Tell(Moved(id, how % 2 == 0 ? "default" : "other"));
    case 3:
      if (how >= 4) {
        return Tell(
            GoesOnWith(id,
                       (job == nullptr ? 1 : job->revision) + static_cast<uint32_t>(how % 2),
                       1 + static_cast<uint32_t>(how % 4),
                       how));
      }
      return Tell(Resized(id,
                          (job == nullptr ? 1 : job->revision) + static_cast<uint32_t>(how % 2),
                          1 + static_cast<uint32_t>(how % 4)));
    case 4:
      return Tell(how % 2 == 0 ? Cancelled(id) : Withdrawn(id));
    default:
      // Said twice, while it lives.
      if (job != nullptr) return Tell(Submitted(id, {.slots = job->slots}));
      return HandInAgain(how);
  }
}

// As admission does, which has seen that the job is rejected.
void Simulation::HandInAgain(int how) {
  const auto rejected = std::find_if(ids_.rbegin(), ids_.rend(), [this](const std::string& id) {
    return seen_[id].state == JobState::kRejected && !claims_.contains(id);
  });
  if (rejected == ids_.rend()) return;
  const std::string& id = *rejected;
  const Seen seen = seen_[id];
  JobOptions options;
  options.slots = how >= 6 ? 9 : static_cast<uint32_t>(1 + how % 3);
  if (how == 2) options.depends_on = {"afterok:" + id};
  Tell(HandedInAgain(id, seen.version, seen.attempt, options));
}

void Simulation::PoolChanges(int what, int how) {
  switch (what) {
    case 0:
      return Tell(how % 2 == 0 ? QueueMade("other", 0, how) : QueueDeleted("other"));
    case 1:
      return Tell(how == 0 ? QueueDeleted("default") : QueueMade("default", 4));
    case 2:
      now_ += Millis(300 * (1 << how));
      return Tell(Tick());
    case 3:
      return matcher_.Sync(how % 2 == 0);
    case 4:
      return matcher_.Break();
    default:
      if (how >= 6) {
        // Whom the cycle names, and who chooses among them, changes between them.
        return Tell(PoolConfig(/*max_attempts=*/4, static_cast<uint32_t>(how - 4)));
      }
      now_ += Millis(how);
  }
}

void Simulation::Finish() {
  for (int round = 0; round < 3; ++round) {
    while (!matcher_.silent()) Tell(matcher_.Next());
    for (const std::string& id : ids_) {
      if (core_.Find(id) != nullptr) Tell(claims_.contains(id) ? CancelCommand(id) : Ended(id));
    }
  }
  for (const auto& [id, seen] : seen_) {
    RC_ASSERT(model::IsTerminal(seen.state));
    RC_ASSERT(seen.last_releases == 1);
  }
  RC_ASSERT(core_.size() == 0U);
  RC_ASSERT(core_.Counts().empty());
  RC_ASSERT(core_.cycle_in_flight() == 0U);
  // A look at what slots that were to be given back have become.
  if (const std::optional<Millis> last = core_.NextDeadline()) {
    now_ = std::max(now_, *last);
    Tell(Tick());
  }
  RC_ASSERT(!core_.NextDeadline().has_value());
  RC_ASSERT(matcher_.holds_nothing());
  // Nor does the row remember anybody.
  Outputs outputs;
  RC_ASSERT(core_.Handle(Tick(), now_, &outputs).ok());
  queue::v1::PoolRow row;
  RC_ASSERT(row.ParseFromString(core_.TakeChanges().pool));
  RC_ASSERT(row.ended_size() == 0);
  core_.Rollback();
}

}  // namespace fluxqueue::queue_core
