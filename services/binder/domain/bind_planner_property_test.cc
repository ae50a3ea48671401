// Random interleavings of facts, pods, answers, failed commits, takeovers and late calls of former
// owners. After every step:
//   a call is about a slot whose row was committed before;
//   no two unfinished pods are in one slot; no pod is bound outside of its attempt's placement, nor
//   after its attempt was stopped;
//   JobBound and JobStopped are said at most once for an attempt (JobBound again, where slots were
//   vacated), JobStopped only when nothing of it runs;
//   of a slot that was said to be vacated or lost nothing runs or is started any more; none is lost
//   twice.
// In the end, with a cluster that behaves, each job is bound, and all of its pods are where others
// came in place of what it lost; or it is stopped when that was asked.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "services/binder/domain/planner_harness.h"

namespace fluxqueue::binder {
namespace {

using Kind = Call::Kind;
using Outcome = CallResult::Outcome;

// One job of a random kind, the queue that moves it on, and the controller that makes its pods.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), h_({.start_timeout = Millis(20'000)}) {
    slots_ = static_cast<uint32_t>(Pick(4)) + 1;
    completions_ = slots_ + static_cast<uint32_t>(Pick(3));
    kind_ = static_cast<JobKind>(Pick(4));
    if (kind_ == JobKind::kPod) slots_ = completions_ = 1;
    elastic_ = kind_ != JobKind::kPod && Pick(2) == 0;
    if (elastic_) completions_ = slots_ + static_cast<uint32_t>(Pick(8));
    first_slots_ = slots_;
    replaces_ = kind_ != JobKind::kPod && !elastic_ && Pick(4) != 0;
    indexed_ = kind_ != JobKind::kPod && Pick(2) == 0;
    pinned_ = Pick(4) == 0;
    if (kind_ != JobKind::kPod) h_.cluster.suspended["a"] = kind_ == JobKind::kSuspended;
    if (kind_ == JobKind::kPod) MakePods();
    Allocate();
  }

  void Step() {
    switch (Pick(10)) {
      case 0:
      case 1:
        RunBatch();
        break;
      case 2:
        TellSomeEvents();
        break;
      case 3:
      case 4:
        ExecuteOne();
        break;
      case 5:
        AnswerOne();
        break;
      case 6:
        ChangePod();
        break;
      case 7:
        MakePods();
        break;
      case 8:
        h_.now += Millis(int64_t{1} << Pick(13));
        break;
      case 9:
        RareEvent();
        break;
    }
    CheckSlots();
  }

  // No more faults: the job reaches what is wanted of it.
  void Finish() {
    constexpr int kManyRounds = 400;
    h_.cluster.closed_nodes.clear();
    for (int round = 0; round < kManyRounds && !Done(); ++round) {
      MakePods();
      Replace(/*all=*/true);
      for (auto& [name, pod] : std::map(h_.cluster.pods)) {
        if (pod.Released()) h_.cluster.Schedule(name, NodeOf(pod));
        if (pod.deleting) h_.cluster.Remove(name);
      }
      h_.TellEvents();
      RunBatch();
      while (!calls_.empty()) ExecuteOne();
      while (!answers_.empty()) AnswerOne();
      CheckSlots();
      h_.now += Millis(500);
    }
    if (!Done()) Fail("the job does not get where it shall: " + State());
  }

  std::string error;

 private:
  enum class JobKind { kPod, kHeld, kSuspended, kControlled };

  size_t Pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  void Fail(std::string what) {
    if (error.empty()) error = std::move(what);
  }

  void PushFact(events::v1::JobState state) {
    events::v1::JobFact fact = h_.Fact("a", state, slots_, attempt_);
    events::v1::Workload* workload = fact.mutable_workload();
    workload->set_kind(kind_ == JobKind::kPod ? "Pod" : "Job");
    workload->set_completions(completions_);
    workload->set_indexed(indexed_);
    workload->set_suspended(kind_ == JobKind::kSuspended);
    workload->set_controlled(kind_ == JobKind::kControlled);
    if (elastic_) fact.set_placement_hash(slots_);
    if (replaces_) fact.set_placement_hash(slots_ + others_);
    fact.set_replaces_slots(replaces_ && !stopping_);
    for (const uint32_t slot : vacate_) {
      if (!vacated_.contains(slot) && !stopping_) fact.add_vacate(slot);
    }
    h_.log.push_back(fact);
  }
  void Allocate() {
    slots_ = first_slots_;
    vacate_.clear();
    vacated_.clear();
    lost_.clear();
    others_ = 0;
    h_.PlaceJob("a", attempt_, slots_);
    PushFact(events::v1::JOB_STATE_ALLOCATED);
    stopping_ = false;
  }
  // The matcher's row comes before the queue's fact, which may be much later, or never.
  void Grow() {
    const size_t most = completions_ + vacated_.size();
    if (!elastic_ || stopping_ || slots_ >= most) return;
    slots_ += 1 + static_cast<uint32_t>(Pick(most - slots_));
    h_.PlaceJob("a", attempt_, slots_);
    if (Pick(4) != 0) PushFact(events::v1::JOB_STATE_RUNNING);
  }
  // Of a rigid job: others in place of those that it has lost.
  void Replace(bool all) {
    const size_t missing = lost_.size() - others_;
    if (stopping_ || (missing == 0 && !all)) return;
    others_ += missing == 0 ? 0 : all ? missing : 1 + Pick(missing);
    if (missing > 0) Place();
    if (replaces_ && (all ? missing > 0 || Pick(4) == 0 : Pick(4) != 0)) {
      PushFact(events::v1::JOB_STATE_RUNNING);
    }
  }
  void Place() {
    h_.PlaceJob("a", attempt_, slots_ + static_cast<uint32_t>(others_));
    auto& placement = h_.tables.placements.at({"a", attempt_}).placement;
    for (const uint32_t slot : lost_) {
      placement.mutable_slots(static_cast<int>(slot))->set_released(true);
    }
  }
  // It keeps one of its first slots, at least.
  void Vacate() {
    if (!elastic_ || stopping_) return;
    const auto slot = static_cast<uint32_t>(Pick(slots_));
    const auto leaving = std::count_if(
        vacate_.begin(), vacate_.end(), [this](uint32_t one) { return one < first_slots_; });
    if (slot < first_slots_ && leaving + 1 >= first_slots_) return;
    vacate_.insert(slot);
    PushFact(events::v1::JOB_STATE_RUNNING);
  }
  void Stop() {
    if (stopping_) return;
    stopping_ = true;
    PushFact(events::v1::JOB_STATE_STOPPING);
  }
  bool Done() const {
    if (stopping_) return stopped_.contains(attempt_);
    if (done_.size() == completions_) return true;
    if (!bound_.contains(attempt_) || vacated_ != vacate_) return false;
    if (!replaces_) return true;
    return std::all_of(h_.cluster.pods.begin(), h_.cluster.pods.end(), [](const auto& named) {
      const PodFacts& pod = named.second;
      return pod.Bound() || pod.deleting || pod.Ended();
    });
  }
  std::string NodeOf(const PodFacts& pod) const {
    return fmt::format("n{}", pod.slot.has_value() ? pod.slot->slot : 0);
  }

  std::string State() const {
    std::string state = fmt::format(
        "kind {}, {} slots, {} completions ({} done), indexed {}, pinned {}, attempt {}, {}",
        static_cast<int>(kind_),
        slots_,
        completions_,
        done_.size(),
        indexed_,
        pinned_,
        attempt_,
        stopping_ ? "stopping" : "starting");
    if (const BindJob* job = h_.planner->Find("a"); job != nullptr) {
      for (const Slot& slot : job->slots) {
        state += fmt::format("; slot {} {} call {} retry {}",
                             Name(slot.state),
                             slot.pod_name,
                             slot.call,
                             slot.retry.failures);
      }
      state += fmt::format("; failed {} call {} stopping {} retry {}",
                           job->failed,
                           job->call,
                           job->stopping,
                           job->retry.failures);
    }
    for (const auto& [name, pod] : h_.cluster.pods) {
      state += fmt::format("; pod {} node '{}' phase {} deleting {} gated {}",
                           name,
                           pod.node,
                           static_cast<int>(pod.phase),
                           pod.deleting,
                           pod.gated);
    }
    return state;
  }

  // As the Job's controller: never more unfinished pods (terminating ones aside) than slots, nor
  // than completions that are missing.
  void MakePods() {
    if (kind_ == JobKind::kPod) {
      if (pods_made_ == 0) MakePod(0);
      return;
    }
    if (h_.cluster.suspended["a"]) {
      for (const auto& [name, pod] : std::map(h_.cluster.pods)) h_.cluster.Delete(name);
      return;
    }
    for (const auto& [name, pod] : std::map(h_.cluster.pods)) {
      if (done_.contains(pod.index) && !pod.Ended()) h_.cluster.Delete(name);  // no longer needed
    }
    std::set<int> active;
    for (const auto& [name, pod] : h_.cluster.pods) {
      if (!pod.deleting && !pod.Ended()) active.insert(pod.index);
    }
    for (int index = 0; index < static_cast<int>(completions_); ++index) {
      const size_t at_once = elastic_ ? completions_ : slots_;
      if (active.size() >= std::min<size_t>(at_once, completions_ - done_.size())) break;
      if (active.contains(index) || done_.contains(index)) continue;
      MakePod(index);
      active.insert(index);
      if (Pick(2) == 0) break;
    }
  }
  void MakePod(int index) {
    const char* uid = kind_ == JobKind::kPod ? "a" : "";
    h_.cluster.AddPod("a", fmt::format("a-{}", pods_made_++), index, pinned_, uid);
  }

  void ChangePod() {
    if (h_.cluster.pods.empty()) return;
    auto chosen = h_.cluster.pods.begin();
    std::advance(chosen, static_cast<ptrdiff_t>(Pick(h_.cluster.pods.size())));
    PodFacts& pod = chosen->second;
    const std::string name = chosen->first;
    switch (Pick(6)) {
      case 0:
        if (!pod.Ended()) h_.cluster.Touch(pod);
        break;
      case 1:
        if (!pod.Bound() || pod.Ended() || kind_ == JobKind::kPod) break;
        done_.insert(pod.index);  // also one that was told to go
        h_.cluster.End(name, PodFacts::Phase::kSucceeded);
        break;
      case 2:
        if (pod.Bound() && !pod.Ended()) h_.cluster.End(name, PodFacts::Phase::kFailed);
        break;
      case 3:
        if (kind_ == JobKind::kPod) break;
        if (Pick(3) == 0) pod.put_out = "EvictionByEvictionAPI";
        h_.cluster.Delete(name);
        break;
      case 4:
        if (pod.deleting || (pod.Ended() && kind_ != JobKind::kPod)) h_.cluster.Remove(name);
        break;
      default:
        if (pod.Released()) h_.cluster.Schedule(name, NodeOf(pod));
        break;
    }
  }

  void RareEvent() {
    const size_t event = Pick(14);
    if (event == 0) TakeOver();
    if (event == 1) Stop();
    if (event == 2) FailBatch();
    if (event == 12) {
      h_.cluster.closed_nodes[fmt::format("n{}", Pick(slots_ + others_))] = "is cordoned";
    }
    if (event == 13) h_.cluster.closed_nodes.clear();
    if (event >= 10 && event < 12) Grow();
    if (event >= 8 && event < 10) Vacate();
    if (event >= 6 && event < 12) Replace(/*all=*/false);
  }

  // Another replica takes the partition. Calls of the former owner may still be made, much later;
  // their answers reach nobody who waits for them.
  void TakeOver() {
    h_.Restart();
    answers_.clear();
    ++owner_;
  }

  void FailBatch() {
    h_.FailedBatch();
    h_.TellEvents();
  }

  void RunBatch() {
    const size_t said_before = h_.sayings.size();
    // Batch tells all events: keep those that the watch has not come to yet.
    std::deque<FakeCluster::Event> late = std::exchange(h_.cluster.events, {});
    const std::vector<Call> calls = h_.Batch();
    h_.cluster.events = std::move(late);
    for (const Call& call : calls) {
      CheckCommitted(call);
      calls_.emplace_back(owner_, call);
    }
    for (size_t i = said_before; i < h_.sayings.size(); ++i) Hear(h_.sayings[i].envelope);
  }

  void CheckCommitted(const Call& call) {
    if (call.kind != Kind::kBind && call.kind != Kind::kRelease) return;
    const auto row = h_.tables.slots.find({call.job_id, call.attempt, call.slot});
    if (row == h_.tables.slots.end() || row->second.value.pod_uid != call.uid ||
        row->second.value.state != SlotState::kTaken) {
      Fail("a call without its row: " + Describe(call));
    }
  }

  void Hear(const events::v1::Envelope& message) {
    if (message.has_job_bound() && !bound_.insert(message.job_bound().attempt()).second &&
        vacate_.empty()) {
      Fail("JobBound twice");
    }
    if (message.has_bind_failed()) Stop();
    if (message.has_slots_vacated()) HearVacated(message.slots_vacated());
    if (message.has_slots_lost()) HearLost(message.slots_lost());
    if (!message.has_job_stopped()) return;
    if (!stopped_.insert(attempt_).second) Fail("JobStopped twice");
    if (!stopping_) Fail("JobStopped without a stop");
    for (const auto& [name, pod] : h_.cluster.pods) {
      const bool ours = pod.slot.has_value() && pod.slot->attempt == attempt_;
      if (ours && !pod.Ended() && (pod.Bound() || pod.Released())) {
        Fail(fmt::format("JobStopped while {} runs or may start", name));
      }
    }
    if (kind_ == JobKind::kPod || Pick(2) == 0) return;
    ++attempt_;
    PushFact(events::v1::JOB_STATE_PENDING);
    Allocate();
  }

  void HearVacated(const events::v1::SlotsVacated& message) {
    if (message.attempt() != attempt_ || stopping_) return;
    for (const uint32_t slot : message.slots()) {
      if (!vacate_.contains(slot)) Fail(fmt::format("slot {} was not to be vacated", slot));
      vacated_.insert(slot);
    }
    CheckEmpty(vacated_);
  }

  // As the queue does, which gives them back to the matcher at once.
  void HearLost(const events::v1::SlotsLost& message) {
    if (!replaces_) Fail("a slot is lost, and no other is looked for");
    if (message.attempt() != attempt_ || stopping_) return;
    for (const auto& lost : message.slots()) {
      if (!lost_.insert(lost.slot()).second)
        Fail(fmt::format("slot {} is lost twice", lost.slot()));
    }
    CheckEmpty(lost_);
    Place();
  }

  void CheckEmpty(const std::set<uint32_t>& slots) {
    for (const auto& [name, pod] : h_.cluster.pods) {
      const bool here = pod.slot.has_value() && pod.slot->attempt == attempt_ &&
                        slots.contains(static_cast<uint32_t>(pod.slot->slot));
      if (here && !pod.Ended() && (pod.Bound() || pod.Released())) {
        Fail(fmt::format("slot {} is given back and {} runs or may start", pod.slot->slot, name));
      }
    }
  }

  void TellSomeEvents() {
    for (size_t n = Pick(4); n > 0 && !h_.cluster.events.empty(); --n) {
      const FakeCluster::Event event = h_.cluster.events.front();
      h_.cluster.events.pop_front();
      if (event.pod.has_value()) {
        h_.planner->PodSeen(*event.pod);
      } else {
        h_.planner->PodGone(event.uid);
      }
    }
  }

  void ExecuteOne() {
    if (calls_.empty()) return;
    const size_t at = Pick(calls_.size());
    const auto [owner, call] = calls_[at];
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(at));
    const PodFacts before =
        h_.cluster.Pod(call.name) != nullptr ? *h_.cluster.Pod(call.name) : PodFacts{};
    const size_t fault = Pick(8);
    CallResult result{.call = call, .outcome = Outcome::kRetry, .pod = {}, .message = "fault"};
    if (fault != 0) {  // 0: it never gets there
      h_.cluster.completions_left["a"] = completions_ - static_cast<int64_t>(done_.size());
      CallResult done = h_.cluster.Execute(call);
      CheckStart(call, before, done);
      if (fault != 1) result = std::move(done);  // 1: its answer is lost
    }
    if (owner == owner_) answers_.push_back(std::move(result));
  }

  void CheckStart(const Call& call, const PodFacts& before, const CallResult& result) {
    if (result.outcome != Outcome::kDone) return;
    if (call.kind != Kind::kBind && call.kind != Kind::kRelease) return;
    if (stopped_.contains(call.attempt)) Fail("started after JobStopped: " + Describe(call));
    if (call.attempt == attempt_ && vacated_.contains(static_cast<uint32_t>(call.slot))) {
      Fail("started in a vacated slot: " + Describe(call));
    }
    if (call.attempt == attempt_ && lost_.contains(static_cast<uint32_t>(call.slot))) {
      Fail("started in a lost slot: " + Describe(call));
    }
    const auto& placement = h_.tables.placements.at({"a", call.attempt}).placement;
    if (placement.slots(call.slot).node() != call.node) Fail("not its node: " + Describe(call));
    if (before.Bound()) Fail("bound twice: " + Describe(call));
  }

  void AnswerOne() {
    if (answers_.empty()) return;
    const size_t at = Pick(answers_.size());
    h_.planner->Answer(answers_[at]);
    answers_.erase(answers_.begin() + static_cast<ptrdiff_t>(at));
  }

  void CheckSlots() {
    std::map<std::pair<uint32_t, uint32_t>, std::string> seated;
    for (const auto& [name, pod] : h_.cluster.pods) {
      if (pod.Ended() || !pod.slot.has_value()) continue;
      if (!pod.Bound() && !pod.Released()) continue;
      const auto [other, fresh] =
          seated.emplace(std::pair(pod.slot->attempt, pod.slot->slot), name);
      if (!fresh) Fail(fmt::format("{} and {} in slot {}", other->second, name, pod.slot->slot));
    }
  }

  std::minstd_rand random_;
  PlannerHarness h_;
  JobKind kind_ = JobKind::kHeld;
  uint32_t slots_ = 1;
  uint32_t first_slots_ = 1;
  bool elastic_ = false;
  bool replaces_ = false;
  uint32_t completions_ = 1;
  bool indexed_ = false;
  bool pinned_ = false;
  uint32_t attempt_ = 1;
  bool stopping_ = false;
  int pods_made_ = 0;
  std::set<int> done_;         // completions
  std::set<uint32_t> vacate_;  // slots of this attempt
  std::set<uint32_t> vacated_;
  std::set<uint32_t> lost_;
  size_t others_ = 0;  // in place of lost ones
  std::set<uint32_t> bound_;
  std::set<uint32_t> stopped_;
  int owner_ = 0;
  std::vector<std::pair<int, Call>> calls_;
  std::vector<CallResult> answers_;
};

TEST(BindPlannerProperty, AnyInterleavingIsSafeAndGetsThere) {
  const bool passed = rc::check([] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    const auto steps = *rc::gen::inRange(0, 400);
    Simulation simulation(seed);
    for (int i = 0; i < steps && simulation.error.empty(); ++i) simulation.Step();
    simulation.Finish();
    if (!simulation.error.empty())
      RC_FAIL(fmt::format("seed {}, {} steps: {}", seed, steps, simulation.error));
  });
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace fluxqueue::binder
