// The queue's core and the matcher's core over one log in memory, each reading it at its own pace,
// with a random world around them: jobs come and are cancelled, nodes come and go, bindings fail,
// answers are lost, pods end, slots are lost, nodes are kept for a time; users share, are limited,
// and stop each other's jobs. At the end every job has ended, nothing is held, nothing is
// remembered, no node was ever given more than it has, and none to whom it was closed. No firm
// promise has moved without a cause that such a promise may move for.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/queue_core/queue_core.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue {
namespace {

using events::v1::Envelope;
using model::JobState;

constexpr int64_t kNodeCpu = 4000;
constexpr int64_t kRejectAfterMs = 5000;

class Pool {
 public:
  explicit Pool(uint32_t seed) : random_(seed) {
    Envelope config = queue_core::PoolConfig(/*max_attempts=*/5);
    config.mutable_pool_configured()->set_engine("native");
    config.mutable_pool_configured()->set_policy("first");
    Append(config);
    binds_ = Roll(2) == 0;
    for (const char* queue : {"default", "other"}) Append(NewQueue(queue));
    for (int i = 0; i < 3; ++i) Append(matcher_core::Upserted(NewNode(i)));
    Append(matcher_core::Synced());
  }

  void Step() {
    switch (Roll(12)) {
      case 0:
        return Submit();
      case 11:
        return WantSlotsOfAnElasticOne();
      case 1:
        return ChangeNode();
      case 2:
        return UserSays();
      case 3:
      case 4:
        return WorldSays();
      case 5:
        return Wait(Roll(1000));
      case 6:
      case 7:
        return ReadByMatcher();
      case 8:
        return ConfigureWindow();
      default:
        return ReadByQueue();
    }
  }

  bool passed() const { return passed_; }

  // The world calms down: all is read, and what lives runs to its end.
  void Finish() {
    for (int i = 0; i < 3; ++i) Append(matcher_core::Upserted(NewNode(i)));
    for (int round = 0; round < 2000 && !(Read() && queue_.size() == 0); ++round) {
      CheckAgreed();
      CheckEachLineIsTried();
      for (const std::string& id : ids_) Help(id);
      Wait(1000);
    }
    Read();
    for (const std::string& id : ids_) {
      const queue_core::Job* job = queue_.Find(id);
      if (job == nullptr) continue;
      RC_LOG() << fmt::format("{} in queue {} is {} {}: {}\n",
                              id,
                              job->queue,
                              model::Name(job->state),
                              job->reason,
                              job->message);
    }
    RC_ASSERT(queue_.size() == 0U);
    RC_ASSERT(queue_.cycle_in_flight() == 0U);
    RC_ASSERT(matcher_.engine().allocations() == 0U);
    RC_ASSERT(matcher_.jobs() == 0U);
    for (const std::string& id : ids_) RC_ASSERT(model::IsTerminal(last_[id]));
  }

  // That were seen while they held more than at their start.
  int grown() const { return grown_; }
  // How often a job was asked to give slots back.
  int shrunk() const { return shrunk_; }
  // How often a job had others in place of slots that it had lost.
  int replaced() const { return replaced_; }
  // How often the first of a line was seen to have its answer.
  int tried() const { return tried_; }
  // How many versions of jobs promised a firm start, and how many moved one later.
  int firm() const { return firm_; }
  int moved() const { return moved_; }

 private:
  uint32_t Roll(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void Append(Envelope message) {
    message.set_pool(queue_core::kPool);
    log_.push_back(std::move(message));
  }

  Envelope NewQueue(const std::string& name) {
    static constexpr const char* kStrategies[] = {"fcfs", "easy", "conservative", "adaptive"};
    Envelope made = queue_core::QueueMade(
        name, 1 + Roll(8), static_cast<int>(Roll(2)), kStrategies[Roll(4)], kRejectAfterMs);
    events::v1::QueueConfigured* queue = made.mutable_queue_configured();
    queue->set_reserve_after_ms(1000 * Roll(4));
    if (Roll(3) == 0) {
      queue->set_order("fair-share");
      events::v1::UserWeight* weight = queue->add_user_weights();
      weight->set_user("ann");
      weight->set_weight(1 + static_cast<int32_t>(Roll(3)));
    }
    queue->mutable_preemption()->set_by_priority(Roll(3) == 0);
    queue->mutable_preemption()->set_reclaim(Roll(3) == 0);
    if (Roll(3) == 0) {
      events::v1::Amount* guarantee = queue->add_guarantee();
      guarantee->set_resource("cpu");
      guarantee->set_amount(kNodeCpu);
      guarantee = queue->add_guarantee();
      guarantee->set_resource("google.com/tpu");
      guarantee->set_amount(1 + Roll(4));
    }
    if (binds_) {
      queue->set_enforce_duration(events::v1::QueueConfigured::ENFORCEMENT_END);
      return made;
    }
    queue->set_predict_durations(Roll(2) == 0);
    queue->set_default_duration_ms(3000 * Roll(3));
    if (Roll(3) == 0) queue->mutable_user_limits()->set_running_jobs(1 + Roll(3));
    return made;
  }

  // Time passes. Kubernetes ends those whose time is over.
  void Wait(uint32_t ms) {
    now_ += Millis(ms);
    for (const std::string& id : ids_) {
      const queue_core::Job* job = queue_.Find(id);
      if (job == nullptr || job->ends_after_ms == 0 || job->allocated_ms == 0) continue;
      if (now_.count() > job->allocated_ms + job->ends_after_ms) Append(queue_core::Ended(id));
    }
    Append(queue_core::Tick());
  }

  // A firm promise moves for these causes alone.
  void CheckPromise(const events::v1::JobFact& fact) {
    using events::v1::Slip;
    const int64_t promised_ms = std::exchange(promised_[fact.job_id()], 0);
    const bool waits = fact.state() == events::v1::JOB_STATE_PENDING;
    if (waits && fact.firm()) promised_[fact.job_id()] = fact.start_ms();
    firm_ += waits && fact.firm() ? 1 : 0;
    if (promised_ms == 0 || !waits) return;
    const bool later = fact.reason() != "Reserved" || fact.start_ms() > promised_ms;
    if (!later) return;
    ++moved_;
    const Slip::Cause cause = fact.slip().cause();
    RC_LOG() << fmt::format("{} moved from {} to {}: {}\n",
                            fact.job_id(),
                            promised_ms,
                            fact.start_ms(),
                            fact.message());
    // A job for which others are stopped counts on them, and they may take their time.
    RC_ASSERT(cause == Slip::CAUSE_NODE || cause == Slip::CAUSE_WINDOW ||
              cause == Slip::CAUSE_AHEAD || cause == Slip::CAUSE_COMMAND ||
              (cause == Slip::CAUSE_OVERRUN && stops_.contains(fact.job_id())));
  }

  events::v1::Node NewNode(int i) {
    return matcher_core::MakeNode(
        fmt::format("n{}", i), kNodeCpu, ++version_, fmt::format("uid-{}-{}", i, generation_[i]));
  }

  void Submit() {
    const std::string id = fmt::format("j{}", ids_.size());
    const bool elastic = Roll(3) == 0;
    const uint32_t min = elastic ? 1 + Roll(3) : 0;
    const uint32_t slots = elastic ? min + Roll(12) : 1 + Roll(4);
    Envelope message = queue_core::Submitted(id,
                                             {.slots = slots,
                                              .completions = slots + (elastic ? Roll(8) : 0),
                                              .recreatable = Roll(3) > 0,
                                              .min_slots = min,
                                              .queue = Roll(3) == 0 ? "other" : "default",
                                              .priority = static_cast<int32_t>(Roll(3)),
                                              .user = Roll(2) == 0 ? "ann" : "bob",
                                              .space = Roll(2) == 0 ? "team" : "other",
                                              .ignores_disruptions = Roll(3) > 0});
    // To the queue alone: nodes have as many as are asked for.
    events::v1::Amount* tpus = message.mutable_job_submitted()->mutable_spec()->add_amounts();
    tpus->set_resource("google.com/tpu");
    tpus->set_amount(slots * Roll(2));
    if (Roll(3) > 0) message.mutable_job_submitted()->set_duration_ms(1000 * Roll(20));
    // Now and then one that is larger than any node.
    const int64_t cpu = Roll(12) == 0 ? 2 * kNodeCpu : 500 * (1 + Roll(4));
    message.mutable_job_submitted()->mutable_spec()->set_jobspec(
        elastic ? matcher_core::ElasticText(min, slots, cpu)
                : matcher_core::JobspecText(slots, cpu));
    ids_.push_back(id);
    Append(message);
  }

  // One that holds most of the pool and runs, and one behind it that goes first.
  void WantSlotsOfAnElasticOne() {
    const std::string id = fmt::format("j{}", ids_.size());
    const uint32_t slots = 4 + Roll(8);
    Envelope elastic = queue_core::Submitted(
        id, {.slots = slots, .completions = 100, .min_slots = 1, .ignores_disruptions = true});
    elastic.mutable_job_submitted()->mutable_spec()->set_jobspec(
        matcher_core::ElasticText(1, slots, 1000));
    ids_.push_back(id);
    Append(elastic);
    Read();
    const queue_core::Job* job = queue_.Find(id);
    if (job != nullptr && job->state == JobState::kAllocated) {
      Append(queue_core::Bound(id, job->attempt));
    }
    const std::string urgent = fmt::format("j{}", ids_.size());
    Envelope message = queue_core::Submitted(urgent, {.slots = 1 + Roll(2), .priority = 9});
    message.mutable_job_submitted()->mutable_spec()->set_jobspec(
        matcher_core::JobspecText(message.job_submitted().spec().slots(), 1000));
    ids_.push_back(urgent);
    Append(message);
  }

  void ChangeNode() {
    const int i = static_cast<int>(Roll(3));
    if (Roll(2) == 0) {
      Append(
          matcher_core::Gone(fmt::format("n{}", i), fmt::format("uid-{}-{}", i, generation_[i])));
      ++generation_[i];
    } else {
      Append(matcher_core::Upserted(NewNode(i)));
    }
  }

  void ConfigureWindow() {
    const std::string name = fmt::format("w{}", Roll(2));
    if (Roll(4) == 0) return Append(queue_core::WindowDeleted(name));
    const Millis start = now_ + Millis(500 * Roll(20)) - Millis(2000);
    const std::vector<std::string> namespaces(Roll(2), "team");
    Envelope message =
        queue_core::WindowSet(name, start, start + Millis(1 + 700 * Roll(20)), namespaces);
    if (Roll(2) == 0) {
      message.mutable_window_configured()->add_nodes(fmt::format("n{}", Roll(3)));
    }
    Append(message);
  }

  // Of what was given out: no window that is not over keeps its nodes from it. (The queue may have
  // named one before it read that it is another's now.)
  void CheckWindows(const events::v1::CycleRequested& request,
                    const events::v1::CycleAnswered& answered) {
    // It may be said again, when there are others.
    if (std::exchange(answered_, answered.cycle_id()) == answered.cycle_id()) return;
    auto next = request.candidates().begin();
    for (const events::v1::Outcome& outcome : answered.outcomes()) {
      // Those whose line had stopped are absent.
      while (next->job_id() != outcome.job_id()) ++next;
      const events::v1::Candidate& candidate = *next++;
      if (outcome.kind() != events::v1::Outcome::KIND_ALLOCATED) continue;
      const auto& open = candidate.windows();
      const graph::Placement* placement =
          matcher_.engine().Find({outcome.job_id(), outcome.attempt(), outcome.part()});
      const int64_t at_ms = matcher_.beginning().count() + placement->start_s * 1000;
      // What it held before windows were set it keeps.
      uint32_t& held = slots_[outcome.job_id()];
      const auto first_new = candidate.grow() ? held : 0U;
      held = static_cast<uint32_t>(placement->slots.size());
      for (const graph::PlacedSlot& slot : std::span(placement->slots).subspan(first_new)) {
        for (const auto& [name, window] : windows_) {
          const auto& nodes = window.nodes();
          const bool keeps = nodes.empty() || nodes[0] == slot.node;
          const bool names = std::find(open.begin(), open.end(), name) != open.end();
          if (!keeps || names || window.end_ms() <= now_.count()) continue;
          RC_ASSERT(placement->duration_s > 0);
          RC_ASSERT(at_ms + placement->duration_s * 1000 <= window.start_ms());
          passed_ = true;
        }
      }
    }
  }

  void UserSays() {
    if (ids_.empty()) return;
    const std::string& id = ids_[Roll(static_cast<uint32_t>(ids_.size()))];
    switch (Roll(7)) {
      case 6:
        return AbandonCycle();
      case 0:
        return Append(queue_core::Cancelled(id));
      case 1:
        return Append(queue_core::Withdrawn(id));
      case 2:
        return Append(queue_core::Prioritised(id, static_cast<int32_t>(Roll(3))));
      case 3: {
        const queue_core::Job* job = queue_.Find(id);
        if (job == nullptr) return;
        Envelope message = queue_core::Resized(id, job->revision + 1, job->slots);
        message.mutable_job_updated()->mutable_spec()->set_jobspec(
            matcher_core::JobspecText(job->slots, 500));
        return Append(message);
      }
      default:
        return Append(queue_core::Held(id, Roll(2) == 0));
    }
  }

  // As if its answer could not be kept.
  void AbandonCycle() {
    if (queue_.cycle_in_flight() == 0) return;
    Append(queue_core::Abandoned(queue_.cycle_in_flight()));
    for (const events::v1::Candidate& candidate : asked_.candidates()) {
      if (candidate.grow()) grown_unheard_.insert(candidate.job_id());
    }
  }

  // What binder and cleanup could say about a job as the queue knows it.
  void WorldSays() {
    if (ids_.empty()) return;
    const std::string& id = ids_[Roll(static_cast<uint32_t>(ids_.size()))];
    const queue_core::Job* job = queue_.Find(id);
    if (job == nullptr || !model::kHoldingStates.Has(job->state)) return;
    if (job->state == JobState::kStopping) return Append(queue_core::Stopped(id, job->attempt));
    if (const auto slots = queue_core::Vacating(*job); !slots.empty() && Roll(2) == 0) {
      const auto first = slots.begin() + Roll(static_cast<uint32_t>(slots.size()));
      return Append(queue_core::Vacated(id, {first, slots.end()}, job->attempt));
    }
    switch (Roll(8)) {
      case 7:
        return LoseSlot(id, *job);
      case 0:
        return Append(queue_core::BindFailed(id, job->attempt));
      case 1:
        return Append(queue_core::NodeLost(id, job->attempt));
      case 2:
        return Append(queue_core::Ended(id));
      case 3:
        return Append(queue_core::Started(id, job->attempt));
      case 4:
      case 5:
        return Append(
            queue_core::PodEnded(id, Roll(job->slots), queue_core::kPodSucceeded, job->attempt));
      default:
        return Append(queue_core::Bound(id, job->attempt));
    }
  }

  // Its node is closed or not, and the matcher may hear of that or not.
  void LoseSlot(const std::string& id, const queue_core::Job& job) {
    const graph::Placement* held = matcher_.engine().Find({id, job.attempt, 0});
    if (held == nullptr) return;
    const graph::PlacedSlot& slot = held->slots[Roll(static_cast<uint32_t>(held->slots.size()))];
    const bool closed = Roll(2) == 0;
    Append(queue_core::SlotsLost(id, {{slot.slot, slot.node, closed}}, job.attempt));
    if (!closed || Roll(2) == 0) return;
    events::v1::Node node = NewNode(slot.node[1] - '0');
    node.set_unschedulable(true);
    Append(matcher_core::Upserted(std::move(node)));
  }

  // All is read: what the queue says that a job holds is what the matcher holds for it.
  void CheckAgreed() {
    for (const std::string& id : ids_) {
      const queue_core::Job* job = queue_.Find(id);
      if (job == nullptr || !model::kHoldingStates.Has(job->state)) continue;
      if (job->state == JobState::kStopping || grown_unheard_.contains(id)) continue;
      const graph::Placement* held = matcher_.engine().Find({id, job->attempt, 0});
      RC_ASSERT(held != nullptr);
      RC_ASSERT(held->slots.size() == (job->held_slots == 0 ? job->slots : job->held_slots));
      const auto live = std::count_if(held->slots.begin(),
                                      held->slots.end(),
                                      [](const graph::PlacedSlot& slot) { return !slot.released; });
      RC_ASSERT(live == queue_core::LiveSlots(*job));
      const uint32_t slots = queue_core::SlotsOf(*job);
      RC_ASSERT(job->min_slots <= slots && slots <= job->slots);
      grown_ += job->grown ? 1 : 0;
    }
  }

  // All is read: no queue keeps another from being tried. The first of each line has its answer.
  void CheckEachLineIsTried() {
    if (queue_.cycle_in_flight() != 0) return;
    for (const std::string& id : ids_) {
      // The first of an adaptive queue's line need not be the one that is tried first.
      const queue_core::Job* job = queue_.Find(id);
      if (job == nullptr || queue_.Position(id) != 1) continue;
      if (queue_.FindQueue(job->queue)->strategy() == "adaptive") continue;
      // Who has come to the front in this moment may be tried in the next.
      const bool untried = job->reason == "Queued";
      untried_[id] = untried ? untried_[id] + 1 : 0;
      // Where users take turns, all jobs of another may have theirs first.
      const bool by_user = queue_.FindQueue(job->queue)->order() == "fair-share";
      RC_ASSERT(untried_[id] < 30 + (by_user ? static_cast<int>(ids_.size()) : 0));
      tried_ += untried ? 0 : 1;
    }
  }

  // One step towards the end.
  void Help(const std::string& id) {
    const queue_core::Job* job = queue_.Find(id);
    if (job == nullptr) return;
    if (job->hold) Append(queue_core::Held(id, false));
    if (job->state == JobState::kStopping) return Append(queue_core::Stopped(id, job->attempt));
    if (model::kHoldingStates.Has(job->state)) Append(queue_core::Ended(id));
  }

  bool Read() {
    while (queue_at_ < log_.size() || matcher_at_ < log_.size()) {
      ReadByMatcher();
      ReadByQueue();
    }
    return true;
  }

  void ReadByQueue() {
    for (uint32_t i = Roll(4) + 1; i > 0 && queue_at_ < log_.size(); --i) {
      const Envelope message = log_[queue_at_++];
      queue_core::Outputs outputs;
      const absl::Status status = queue_.Handle(message, now_, &outputs);
      if (!status.ok()) RC_LOG() << Message(status) << "\n";
      RC_ASSERT(status.ok());  // nothing that was said here is impossible
      queue_.Commit();
      for (const Envelope& fact : outputs.jobs) {
        CheckPromise(fact.job_fact());
        shrunk_ += fact.job_fact().reason() == "Shrinking" ? 1 : 0;
        replaced_ += fact.job_fact().reason() == "Replaced" ? 1 : 0;
        last_[fact.job_fact().job_id()] = static_cast<JobState>(fact.job_fact().state());
      }
      for (const Envelope& said : outputs.pool) {
        if (said.has_cycle_requested()) asked_ = said.cycle_requested();
        Append(said);
      }
    }
  }

  void ReadByMatcher() {
    for (uint32_t i = Roll(4) + 1; i > 0 && matcher_at_ < log_.size(); --i) {
      const Envelope message = log_[matcher_at_++];
      std::vector<Envelope> out;
      const absl::Status status = matcher_.Handle(message, now_, &out);
      if (!status.ok()) RC_LOG() << Message(status) << "\n";
      RC_ASSERT(status.ok());
      matcher_.Commit();
      if (message.has_window_configured()) {
        const auto& window = message.window_configured();
        windows_.erase(window.window());
        if (!window.deleted()) windows_[window.window()] = window;
      }
      for (const Envelope& said : out) {
        if (said.has_cycle_answered()) {
          CheckWindows(message.cycle_requested(), said.cycle_answered());
          for (const events::v1::Outcome& outcome : said.cycle_answered().outcomes()) {
            if (outcome.victims_size() > 0 || outcome.vacate_size() > 0) {
              stops_.insert(outcome.job_id());
            }
          }
        }
        Append(said);
      }
      for (const graph::NodeUsage& node : matcher_.engine().UsageByNode()) {
        for (const graph::ResourceUsage& usage : node.resources) {
          RC_ASSERT(usage.held <= usage.total);
        }
      }
    }
  }

  std::minstd_rand random_;
  queue_core::QueueCore queue_{queue_core::kPool};
  matcher_core::MatcherCore matcher_{queue_core::kPool};
  Millis now_{1'000'000};
  std::vector<Envelope> log_;
  size_t queue_at_ = 0;
  size_t matcher_at_ = 0;
  std::map<int, int> generation_;
  int64_t version_ = 0;
  std::vector<std::string> ids_;
  std::map<std::string, JobState> last_;
  std::map<std::string, events::v1::WindowConfigured> windows_;  // that the matcher has read
  std::map<std::string, uint32_t> slots_;  // given to each job, at its last answer
  uint64_t answered_ = 0;                  // the last cycle
  bool passed_ = false;                    // something was given out that ends before a window
  int grown_ = 0;
  int shrunk_ = 0;
  int replaced_ = 0;
  int tried_ = 0;
  bool binds_ = false;                            // every queue ends its jobs in time
  std::map<std::string, int64_t> promised_ = {};  // firmly, by job; 0: not
  std::set<std::string> stops_ = {};              // for whom others have been stopped
  events::v1::CycleRequested asked_;              // the last
  std::set<std::string> grown_unheard_;           // may be: they grew in a cycle that was abandoned
  int firm_ = 0;
  int moved_ = 0;
  std::map<std::string, int> untried_;  // for how many seconds, at the front of a line
};

RC_GTEST_PROP(CoresTest, EveryJobEndsAndNothingIsHeld, ()) {
  Pool pool(*rc::gen::arbitrary<uint32_t>());
  const int steps = *rc::gen::inRange(0, 400);
  for (int i = 0; i < steps; ++i) pool.Step();
  pool.Finish();
  RC_CLASSIFY(pool.passed(), "something ended before a window");
  RC_CLASSIFY(pool.grown() > 0, "an elastic job has grown");
  RC_CLASSIFY(pool.shrunk() > 0, "an elastic job has given slots back");
  RC_CLASSIFY(pool.replaced() > 0, "a job had others in place of slots that it had lost");
  RC_CLASSIFY(pool.firm() > 0, "a firm promise was made");
  RC_CLASSIFY(pool.moved() > 0, "a firm promise moved later");
  RC_CLASSIFY(pool.tried() > 0, "the first of a line waited with its answer");
}

}  // namespace
}  // namespace fluxqueue
