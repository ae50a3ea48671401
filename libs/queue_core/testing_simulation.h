// A random pool for property tests: steps drawn by rapidcheck are turned into messages, a small
// matcher answers in the order of the log but late, and the world says what it likes, also what is
// stale or impossible. Everything the core read and said is recorded, and checked as it is said.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/model/job_of.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/queue_core.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {

// Counts slots, and nothing else.
class FakeMatcher {
 public:
  explicit FakeMatcher(uint32_t capacity) : capacity_(capacity) {}

  void Read(const events::v1::Envelope& message) {
    if (message.has_pool_configured()) {
      ends_cycles_ = message.pool_configured().rules() == 1;
    } else if (message.has_job_submitted()) {
      Know(message.job_submitted().job_id(), message.job_submitted().spec());
    } else if (model::SpecOf(message.job_updated()) != nullptr) {
      const auto& spec = *model::SpecOf(message.job_updated());
      const auto known = revisions_.find(message.job_updated().job_id());
      const bool is_new = known == revisions_.end() || spec.revision() > known->second;
      if (is_new) Know(message.job_updated().job_id(), spec);
    } else if (message.command_accepted().has_submit_claim()) {
      const auto& claim = message.command_accepted().submit_claim();
      slots_[claim.job_id()] = claim.spec().slots();
    } else if (message.has_cycle_requested()) {
      Answer(message.cycle_requested());
    } else if (message.has_release_requested()) {
      Release(message.release_requested());
    }
  }
  void Sync(bool grew) {
    synced_ = true;
    said_.push_back(Inventory(grew, true));
    // Cpus, by which an adaptive queue's sizes are made anew, or not.
    static constexpr int64_t kCpu[] = {6000, 6300, 3000, 9000};
    events::v1::Amount* fpgas = said_.back().mutable_inventory_changed()->add_capacity();
    fpgas->set_resource("example.com/fpga");
    fpgas->set_amount(4);
    events::v1::Amount* cpu = said_.back().mutable_inventory_changed()->add_capacity();
    cpu->set_resource("cpu");
    cpu->set_amount(kCpu[syncs_++ % 4]);
  }
  // The first holder loses a node.
  void Break() {
    if (!held_.empty())
      said_.push_back(NodeGone("n", held_.begin()->first.first, held_.begin()->first.second));
  }
  bool silent() const { return said_.empty(); }
  events::v1::Envelope Next() {
    events::v1::Envelope next = std::move(said_.front());
    said_.pop_front();
    return next;
  }
  bool holds_nothing() const { return held_.empty(); }
  size_t HeldBy(const std::string& id, uint32_t attempt) const {
    const auto held = held_.find({id, attempt});
    return held == held_.end() ? 0 : held->second.size();
  }

 private:
  using Key = std::pair<std::string, uint32_t>;

  void Know(const std::string& id, const events::v1::PartSpec& spec) {
    revisions_[id] = spec.revision();
    slots_[id] = spec.slots();
    min_slots_[id] = spec.min_slots();
  }
  // So many slots from here on, numbered behind those that it has had; how many these are then.
  uint32_t Hold(const Key& key, uint32_t slots) {
    used_ += slots;
    uint32_t& numbered = numbered_[key];
    for (; slots > 0; --slots) held_[key].insert(numbered++);
    return numbered;
  }
  uint32_t MostOf(const events::v1::Candidate& candidate) const {
    const uint32_t slots = slots_.at(candidate.job_id());
    RC_ASSERT(candidate.most_slots() <= slots);
    return candidate.most_slots() == 0 ? slots : candidate.most_slots();
  }
  Said Grow(const events::v1::Candidate& candidate) {
    const Key key{candidate.job_id(), candidate.attempt()};
    const auto held = held_.find(key);
    if (held == held_.end()) return {key.first, key.second, kBusyKind, "holds nothing"};
    const uint32_t has = static_cast<uint32_t>(held->second.size());
    const uint32_t most = MostOf(candidate);
    const uint32_t more = std::min(most > has ? most - has : 0, capacity_ - used_);
    if (more == 0) return {key.first, key.second, kBusyKind, "full"};
    return {key.first, key.second, kAllocatedKind, "", 0, Hold(key, more)};
  }

  // As many as it had before it lost some; those that have come are numbered behind them.
  Said Replace(const events::v1::Candidate& candidate) {
    const Key key{candidate.job_id(), candidate.attempt()};
    const auto held = held_.find(key);
    const uint32_t has = held == held_.end() ? 0 : static_cast<uint32_t>(held->second.size());
    RC_ASSERT(candidate.grow() && has < candidate.most_slots() && numbered_.contains(key));
    RC_ASSERT(candidate.most_slots() <= slots_.at(candidate.job_id()));
    const uint32_t more = std::min(candidate.most_slots() - has, capacity_ - used_);
    if (more == 0) return {key.first, key.second, kBusyKind, "full"};
    return {key.first, key.second, kAllocatedKind, "", 0, Hold(key, more)};
  }

  void Answer(const events::v1::CycleRequested& cycle) {
    if (cycle.cycle_id() <= last_cycle_) return;  // the stored answer is on its way
    last_cycle_ = cycle.cycle_id();
    std::vector<Said> outcomes;
    std::vector<events::v1::AllocationKey> victims;
    std::vector<events::v1::HeldSlots> vacate;
    size_t preemptor = 0;
    std::set<uint32_t> stopped;  // rules
    bool grows = false;
    size_t replaced = 0;
    for (const auto& candidate : cycle.candidates()) {
      if (candidate.replace()) {
        RC_ASSERT(replaced == outcomes.size());  // before all others
        outcomes.push_back(Replace(candidate));
        ++replaced;
        continue;
      }
      if (stopped.contains(candidate.rule())) continue;
      // Behind all who wait.
      RC_ASSERT(candidate.grow() || !grows);
      grows = candidate.grow();
      if (grows) {
        outcomes.push_back(Grow(candidate));
        continue;
      }
      const uint32_t min = min_slots_[candidate.job_id()];
      const uint32_t slots = min == 0 ? slots_[candidate.job_id()] : min;
      const Key key{candidate.job_id(), candidate.attempt()};
      RC_ASSERT(held_.count(key) == 0U);
      if (slots > capacity_) {
        outcomes.push_back({key.first, key.second, kUnsatisfiableKind, "too large"});
      } else if (used_ + slots > capacity_) {
        outcomes.push_back({key.first, key.second, kBusyKind, "full"});
        if (victims.empty() && vacate.empty()) {
          vacate = Spared(cycle, candidate, used_ + slots - capacity_);
          if (vacate.empty()) victims = Victims(cycle, candidate, slots);
          preemptor = outcomes.size() - 1;
        }
        if (ends_cycles_) break;
        const auto& rule = cycle.rules(static_cast<int>(candidate.rule()));
        if (rule.stop_at_first_blocked()) stopped.insert(candidate.rule());
      } else {
        const uint32_t most = min == 0 ? slots : std::min(MostOf(candidate), capacity_ - used_);
        RC_ASSERT(most >= slots);
        const uint32_t held = Hold(key, most);
        outcomes.push_back({key.first, key.second, kAllocatedKind, "", 0, min == 0 ? 0 : held});
      }
    }
    said_.push_back(Answered(cycle.cycle_id(), outcomes));
    auto* answer = said_.back().mutable_cycle_answered();
    for (auto& victim : victims) {
      *answer->mutable_outcomes(static_cast<int>(preemptor))->add_victims() = std::move(victim);
    }
    for (auto& held : vacate) {
      *answer->mutable_outcomes(static_cast<int>(preemptor))->add_vacate() = std::move(held);
    }
  }

  static std::vector<events::v1::AllocationKey> Named(const events::v1::CycleRequested& cycle,
                                                      const events::v1::Candidate& candidate) {
    std::vector<events::v1::AllocationKey> named(candidate.victims().begin(),
                                                 candidate.victims().end());
    for (int i = 0; i < cycle.stoppable_size(); ++i) {
      if (HasBit(candidate.stoppable(), i)) named.push_back(cycle.stoppable(i).key());
    }
    return named;
  }

  // The first ones named without which there would be room; none: there never would.
  std::vector<events::v1::AllocationKey> Victims(const events::v1::CycleRequested& cycle,
                                                 const events::v1::Candidate& candidate,
                                                 uint32_t slots) const {
    std::vector<events::v1::AllocationKey> victims;
    uint32_t used = used_;
    for (const auto& victim : Named(cycle, candidate)) {
      const auto held = held_.find({victim.job_id(), victim.attempt()});
      if (held == held_.end()) continue;
      victims.push_back(victim);
      used -= static_cast<uint32_t>(held->second.size());
      if (used + slots <= capacity_) return victims;
    }
    return {};
  }

  // Slots that elastic jobs can spare, so that as many are free as are lacking; none: there are
  // not so many.
  std::vector<events::v1::HeldSlots> Spared(const events::v1::CycleRequested& cycle,
                                            const events::v1::Candidate& candidate,
                                            uint32_t lacking) const {
    std::vector<events::v1::HeldSlots> spared;
    for (int i = 0; i < cycle.stoppable_size() && lacking > 0; ++i) {
      const auto& one = cycle.stoppable(i);
      const auto held = held_.find({one.key().job_id(), one.key().attempt()});
      if (held == held_.end() || !HasBit(candidate.stoppable(), i)) continue;
      events::v1::HeldSlots slots;
      *slots.mutable_key() = one.key();
      for (auto slot = held->second.rbegin(); slot != held->second.rend(); ++slot) {
        const auto& leaving = one.vacating();
        const bool leaves = std::find(leaving.begin(), leaving.end(), *slot) != leaving.end();
        if (leaves || lacking == 0) continue;
        if (slots.slots_size() == static_cast<int>(one.spare_slots())) break;
        slots.mutable_slots()->Add(*slot);
        --lacking;
      }
      std::sort(slots.mutable_slots()->begin(), slots.mutable_slots()->end());
      if (!slots.slots().empty()) spared.push_back(std::move(slots));
    }
    return lacking == 0 ? spared : std::vector<events::v1::HeldSlots>{};
  }

  void Release(const events::v1::ReleaseRequested& release) {
    const Key key{release.key().job_id(), release.key().attempt()};
    std::set<uint32_t>& held = held_[key];
    const bool nothing = held.empty();
    if (release.slots_size() == 0) {
      used_ -= static_cast<uint32_t>(held.size());
      held.clear();
    }
    for (const uint32_t slot : release.slots()) used_ -= static_cast<uint32_t>(held.erase(slot));
    if (held.empty()) held_.erase(key);
    if (release.slots_size() == 0) numbered_.erase(key);
    said_.push_back(Released(key.first, key.second, nothing));
    *said_.back().mutable_released()->mutable_slots() = release.slots();
  }

  uint32_t capacity_;
  uint32_t used_ = 0;
  bool synced_ = false;
  bool ends_cycles_ = false;  // rules 1
  size_t syncs_ = 0;
  uint64_t last_cycle_ = 0;
  std::map<std::string, uint32_t> revisions_;
  std::map<std::string, uint32_t> slots_;
  std::map<std::string, uint32_t> min_slots_;
  std::map<Key, uint32_t> numbered_;
  std::map<Key, std::set<uint32_t>> held_;
  std::deque<events::v1::Envelope> said_;
};

// What the tables of the schema `queue` would hold.
class FakeTables {
 public:
  void Write(const Changes& changes) {
    if (changes.empty()) return;
    pool_ = changes.pool;
    std::set<std::string> seen;
    for (const JobChange& job : changes.jobs) {
      RC_ASSERT(seen.insert(job.job_id).second);
      RC_ASSERT((job.ending != 0) == model::IsTerminal(job.state));
      JobRow& row = jobs_[job.job_id];
      endings_.erase(row.ending);
      row = {job.state, job.row, job.ending};
      if (job.ending != 0) RC_ASSERT(endings_.emplace(job.ending, job.row).second);
    }
    std::set<std::string> ended;
    for (const AttemptRecord& attempt : changes.attempts) {
      // Each attempt once, and its end is the job's or a requeue.
      RC_ASSERT(attempts_.insert({attempt.job_id, attempt.attempt}).second);
      if (attempt.outcome != kRequeued) ended.insert(attempt.job_id);
      RC_ASSERT(attempt.waited_ms >= 0 && attempt.cpu_seconds >= 0);
      if (!attempt.start_ms.has_value()) RC_ASSERT(attempt.cpu_seconds == 0);
    }
    for (const JobChange& job : changes.jobs) {
      // One that lives has ended in this batch only to be handed in again.
      RC_ASSERT(ended.contains(job.job_id) || !model::IsTerminal(job.state));
    }
    for (const UsageChange& usage : changes.usage) {
      if (usage.deleted) {
        usage_.erase({usage.kind, usage.name});
      } else {
        usage_[{usage.kind, usage.name}] = usage.row;
      }
    }
    for (const JobEvent& event : changes.events) {
      RC_ASSERT(events_.insert({event.job_id, event.version}).second);
    }
    for (const QueueChange& queue : changes.queues) {
      if (queue.deleted) {
        queues_.erase(queue.queue);
      } else {
        queues_[queue.queue] = queue.row;
      }
    }
    for (const CycleRequest& cycle : changes.cycles_requested) {
      cycles_[cycle.cycle_id] = cycle.requested;
    }
    for (const uint64_t id : changes.cycles_answered) cycles_.erase(id);
  }
  Rows Read() const {
    Rows rows;
    rows.pool = pool_;
    for (const auto& [id, job] : jobs_) {
      if (!model::IsTerminal(job.state)) rows.jobs.push_back(job.row);
    }
    for (const auto& [name, row] : queues_) rows.queues.push_back(row);
    for (const auto& [id, row] : cycles_) rows.cycles_unanswered.push_back(row);
    for (const auto& [number, row] : endings_) rows.endings.push_back(row);
    for (const auto& [key, row] : usage_) rows.usage.push_back(row);
    return rows;
  }

 private:
  struct JobRow {
    model::JobState state = model::JobState::kNone;
    std::string row;
    uint64_t ending = 0;
  };

  std::string pool_;
  std::map<std::string, JobRow> jobs_;
  std::map<std::string, std::string> queues_;
  std::map<uint64_t, std::string> cycles_;
  std::map<uint64_t, std::string> endings_;
  std::map<std::pair<std::string, std::string>, std::string> usage_;
  std::set<std::pair<std::string, uint64_t>> events_;
  std::set<std::pair<std::string, uint32_t>> attempts_;
};

// The outputs as bytes, in order.
inline void Append(const Outputs& outputs, std::vector<std::string>* bytes) {
  for (const auto& fact : outputs.jobs) bytes->push_back(fact.SerializeAsString());
  for (const auto& said : outputs.pool) bytes->push_back(said.SerializeAsString());
}

using Step = std::tuple<int, int, int>;  // what, which job, how

inline rc::Gen<std::vector<Step>> Steps() {
  return rc::gen::resize(
      250,
      rc::gen::container<std::vector<Step>>(
          rc::gen::tuple(rc::gen::inRange(0, 56), rc::gen::inRange(0, 6), rc::gen::inRange(0, 8))));
}

class Simulation {
 public:
  // By these rules (libs/model/rules.h).
  explicit Simulation(uint32_t rules);
  void Do(const Step& step);
  // Lets the matcher speak, ends every job, and checks that nothing is left.
  void Finish();

  struct Record {
    events::v1::Envelope message;
    Millis now;
    bool poison = false;
  };
  const std::vector<Record>& log() const { return log_; }
  const std::vector<std::string>& said() const { return said_; }
  int preempted() const { return preempted_; }
  int grown() const { return grown_; }
  int shrunk() const { return shrunk_; }
  int replaced() const { return replaced_; }
  int handed_in_again() const { return handed_in_again_; }

 private:
  struct Seen {
    uint64_t version = 0;
    model::JobState state = model::JobState::kNone;
    uint32_t attempt = 0;
    int last_releases = 0;
  };

  void Tell(const events::v1::Envelope& message);
  void CheckFact(const events::v1::JobFact& fact);
  // What the matcher has said is heard: both know how much is held.
  void CheckHeld() const;
  void CheckRelease(const events::v1::Envelope& cause,
                    const events::v1::ReleaseRequested& release,
                    const std::map<std::string, model::JobState>& before);
  void Submit(int how);
  // With a user, a begin, and others that it depends on.
  void SubmitOrdered(int which, int how);
  // One that ends, and an elastic one behind it.
  void GiveRoomToGrow(int how);
  // One that holds what is left, and one behind it that goes first.
  void WantSlotsOfAnElasticOne(int how);
  void LoseSlots(const std::string& id, int how);
  void ConfigureQueue(int which, int how);
  void ConfigureWindow(int which, int how);
  // Each candidate names the windows that name its namespace and are not over.
  void CheckWindows(const events::v1::CycleRequested& cycle) const;
  void WorldSays(int what, const std::string& id, int how);
  void UserSays(int what, const std::string& id, int how);
  // The last one that was rejected.
  void HandInAgain(int how);
  void PoolChanges(int what, int how);
  void Command(int what, const std::string& id, int how);
  void SubmitClaim(int how);

  QueueCore core_{kPool};
  FakeMatcher matcher_{6};
  Millis now_{5000};
  std::vector<std::string> ids_;
  std::set<std::string> claims_;  // of ids_
  std::map<std::string, events::v1::WindowConfigured> windows_;
  std::map<std::string, Seen> seen_;
  int preempted_ = 0;  // jobs stopped for others
  int grown_ = 0;      // times that a job has got more
  int shrunk_ = 0;     // times that a job has given slots back for another
  int replaced_ = 0;   // times that a job has others in place of slots that it lost
  int handed_in_again_ = 0;
  uint64_t last_cycle_ = 0;
  uint64_t answered_cycle_ = 0;
  std::vector<Record> log_;
  std::vector<std::string> said_;
};

}  // namespace fluxqueue::queue_core
