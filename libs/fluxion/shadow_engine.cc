#include "libs/fluxion/shadow_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::fluxion {
namespace {

using graph::AllocationKey;
using graph::Engine;
using graph::Jobspec;
using graph::NodeSpec;
using graph::Outcome;
using graph::OutcomeKind;
using graph::Placement;

// Steps: beyond, the shadow cannot follow.
constexpr size_t kMostWaiting = 20'000;
constexpr std::chrono::seconds kBetweenBeginnings{10};
// Of jobspecs, that are kept.
constexpr size_t kMaxShapes = 4096;
constexpr size_t kNodesNamed = 20;

std::string_view NameOf(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kAllocated:
      return "allocated";
    case OutcomeKind::kReserved:
      return "reserved";
    case OutcomeKind::kBusy:
      return "busy";
    case OutcomeKind::kUnsatisfiable:
      return "unsatisfiable";
  }
  return "";
}

std::string AnswerOf(OutcomeKind kind, int64_t at_s, const Placement* placement) {
  if (kind == OutcomeKind::kReserved) return fmt::format("reserved from {} on", at_s);
  if (placement == nullptr) return std::string(NameOf(kind));
  std::vector<std::string_view> nodes;
  for (const graph::PlacedSlot& slot : placement->slots) nodes.push_back(slot.node);
  const size_t more = nodes.size() > kNodesNamed ? nodes.size() - kNodesNamed : 0;
  nodes.resize(nodes.size() - more);
  return fmt::format("{} on {}{}",
                     NameOf(kind),
                     fmt::join(nodes, ","),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

struct ShadowEngine::Asked {
  graph::Operation operation = graph::Operation::kAllocate;
  AllocationKey key;
  std::shared_ptr<const Jobspec> jobspec;
  int64_t now_s = 0;
  int64_t duration_s = 0;
  int64_t before_s = 0;
  bool anywhere = false;
  OutcomeKind decided = OutcomeKind::kBusy;
  int64_t at_s = 0;
  std::optional<Placement> placement;
};

ShadowEngine::ShadowEngine(std::unique_ptr<Engine> decides, ShadowOptions options)
    : options_(std::move(options)),
      decides_(std::move(decides)),
      begun_(std::chrono::steady_clock::now()),
      queue_{Anew()},
      thread_([this] { Work(); }) {}

ShadowEngine::~ShadowEngine() {
  stopping_ = true;
  const absl::MutexLock lock(&mutex_);
  stop_ = true;
}

// ---- what is done to both

void ShadowEngine::Show(Step step) {
  if (recording_) {
    batch_.push_back(std::move(step));
  } else {
    std::vector<Step> steps;
    steps.push_back(std::move(step));
    Pass(std::move(steps));
  }
}

absl::Status ShadowEngine::SetPolicy(std::string_view policy) {
  RETURN_IF_ERROR(decides_->SetPolicy(policy));
  policy_ = policy;
  Show({[policy = policy_, this]() { return shadow_->SetPolicy(policy); }});
  return absl::OkStatus();
}

absl::Status ShadowEngine::SetLevels(const std::vector<std::string>& levels) {
  RETURN_IF_ERROR(decides_->SetLevels(levels));
  levels_ = levels;
  Show({[levels, this]() { return shadow_->SetLevels(levels); }});
  return absl::OkStatus();
}

void ShadowEngine::Expect(const Jobspec& jobspec, int64_t jobs) {
  // Only `packed` looks at it, which one engine alone has.
  decides_->Expect(jobspec, jobs);
}

void ShadowEngine::SetForecast(std::optional<graph::Workload> forecast) {
  decides_->SetForecast(std::move(forecast));
}

void ShadowEngine::HeedPreferences(bool heeds) {
  decides_->HeedPreferences(heeds);
  heeds_preferences_ = heeds;
  Show({[heeds, this]() {
    shadow_->HeedPreferences(heeds);
    return absl::OkStatus();
  }});
}

absl::Status ShadowEngine::AddNode(NodeSpec node) {
  RETURN_IF_ERROR(decides_->AddNode(node));
  Show({[node = std::move(node), this]() { return shadow_->AddNode(node); }});
  return absl::OkStatus();
}

absl::StatusOr<graph::NodeChange> ShadowEngine::UpdateNode(NodeSpec node) {
  ASSIGN_OR_RETURN(const graph::NodeChange change, decides_->UpdateNode(node));
  if (change.changed) {
    Show({[node = std::move(node), this]() { return shadow_->UpdateNode(node).status(); }});
  }
  return change;
}

absl::StatusOr<std::vector<AllocationKey>> ShadowEngine::RemoveNode(std::string_view name) {
  ASSIGN_OR_RETURN(std::vector<AllocationKey> broken, decides_->RemoveNode(name));
  Show({[name = std::string(name), this]() { return shadow_->RemoveNode(name).status(); }});
  return broken;
}

Outcome ShadowEngine::Match(const graph::MatchRequest& request) {
  const bool allocates = request.operation != graph::Operation::kSatisfiability;
  const bool held = allocates && decides_->Find(request.key) != nullptr;
  const Outcome outcome = decides_->Match(request);
  if (held) return outcome;
  if (allocates) reserved_.erase(request.key);
  if (outcome.kind == OutcomeKind::kReserved) reserved_[request.key] = *outcome.placement;
  Asked asked{request.operation,
              request.key,
              Kept(request.jobspec),
              request.now_s,
              request.duration_s,
              request.before_s,
              request.anywhere,
              outcome.kind,
              outcome.at_s,
              {}};
  if (outcome.placement != nullptr) asked.placement = *outcome.placement;
  Show({[this, asked = std::move(asked)]() { return Ask(asked); }, true});
  return outcome;
}

bool ShadowEngine::Reserve(const AllocationKey& key, const Placement& placement) {
  if (!decides_->Reserve(key, placement)) return false;
  reserved_[key] = placement;
  Show({[this, key, placement]() {
    shadow_->Reserve(key, placement);
    return absl::OkStatus();
  }});
  return true;
}

void ShadowEngine::DropReservation(const AllocationKey& key) {
  decides_->DropReservation(key);
  if (reserved_.erase(key) == 0) return;
  Show({[this, key]() {
    shadow_->DropReservation(key);
    return absl::OkStatus();
  }});
}

Outcome ShadowEngine::Grow(const graph::MatchRequest& request) {
  const Outcome outcome = decides_->Grow(request);
  options_.compared(Comparison::kSkipped, 1);
  if (outcome.placement == nullptr) return outcome;
  Show({[this, key = request.key, placement = *outcome.placement]() {
    shadow_->Release(key);
    return shadow_->Restore(key, placement);
  }});
  return outcome;
}

void ShadowEngine::DropReservations() {
  decides_->DropReservations();
  reserved_.clear();
  ShowReservations();
}

void ShadowEngine::ShowReservations() {
  Show({[reserved = reserved_, this]() {
    shadow_->DropReservations();
    for (const auto& [key, placement] : reserved) shadow_->Reserve(key, placement);
    return absl::OkStatus();
  }});
}

void ShadowEngine::SetClosures(std::vector<graph::Closure> closures) {
  decides_->SetClosures(closures);
  if (closures == closures_) return;
  closures_ = std::move(closures);
  ShowClosures();
}

void ShadowEngine::ShowClosures() {
  Show({[closures = closures_, this]() {
    shadow_->SetClosures(closures);
    return absl::OkStatus();
  }});
}

bool ShadowEngine::Release(const AllocationKey& key) {
  if (!decides_->Release(key)) return false;
  Show({[this, key]() {
    shadow_->Release(key);
    return absl::OkStatus();
  }});
  return true;
}

std::vector<uint32_t> ShadowEngine::ReleaseSlots(const AllocationKey& key,
                                                 const std::vector<uint32_t>& slots) {
  std::vector<uint32_t> released = decides_->ReleaseSlots(key, slots);
  if (!released.empty()) {
    Show({[this, key, released]() {
      shadow_->ReleaseSlots(key, released);
      return absl::OkStatus();
    }});
  }
  return released;
}

absl::Status ShadowEngine::Restore(const AllocationKey& key, const Placement& placement) {
  RETURN_IF_ERROR(decides_->Restore(key, placement));
  Show({[key, placement, this]() { return shadow_->Restore(key, placement); }});
  return absl::OkStatus();
}

void ShadowEngine::Checkpoint() {
  decides_->Checkpoint();
  recording_ = true;
}

void ShadowEngine::Commit() {
  decides_->Commit();
  recording_ = false;
  if (!batch_.empty()) Pass(std::exchange(batch_, {}));
}

void ShadowEngine::Rollback() {
  decides_->Rollback();
  recording_ = false;
  batch_.clear();
  // They are not taken back, and may have been said in the batch.
  ShowClosures();
  ShowReservations();
}

std::shared_ptr<const Jobspec> ShadowEngine::Kept(const Jobspec& jobspec) {
  const std::string name = jobspec.shape + " preferring " + jobspec.preferences.signature;
  const auto known = jobspecs_.find(name);
  if (known != jobspecs_.end()) return known->second;
  if (jobspecs_.size() >= kMaxShapes) jobspecs_.clear();
  return jobspecs_.emplace(name, std::make_shared<const Jobspec>(jobspec)).first->second;
}

// ---- to the shadow

void ShadowEngine::Pass(std::vector<Step> steps) {
  size_t skipped = 0;
  const auto skip = [&skipped](std::vector<Step>* some) {
    skipped += static_cast<size_t>(
        std::count_if(some->begin(), some->end(), [](const Step& step) { return step.asks; }));
    some->clear();
  };
  const auto now = std::chrono::steady_clock::now();
  {
    const absl::MutexLock lock(&mutex_);
    if (behind_ && Idle() && now - begun_ >= kBetweenBeginnings) {
      begun_ = now;
      behind_ = false;
      skip(&steps);
      steps.push_back(Anew());
    }
    if (queue_.size() + steps.size() > kMostWaiting) {
      behind_ = true;
      skip(&queue_);
    }
    if (behind_) skip(&steps);
    std::move(steps.begin(), steps.end(), std::back_inserter(queue_));
  }
  if (skipped > 0) options_.compared(Comparison::kSkipped, skipped);
}

ShadowEngine::Step ShadowEngine::Anew() {
  std::vector<std::pair<AllocationKey, Placement>> held;
  for (const AllocationKey& key : decides_->Keys()) held.emplace_back(key, *decides_->Find(key));
  const auto begin = [this,
                      nodes = decides_->Nodes(),
                      held = std::move(held),
                      policy = policy_,
                      levels = levels_,
                      heeds = heeds_preferences_,
                      closures = closures_,
                      reserved = reserved_]() -> absl::Status {
    ASSIGN_OR_RETURN(shadow_,
                     options_.make([this](const absl::Status& why) { failed_ = why; },
                                   [this] { return stopping_.load(); }));
    RETURN_IF_ERROR(shadow_->SetPolicy(policy));
    RETURN_IF_ERROR(shadow_->SetLevels(levels));
    shadow_->HeedPreferences(heeds);
    shadow_->SetClosures(closures);
    for (const NodeSpec& node : nodes) RETURN_IF_ERROR(shadow_->AddNode(node));
    for (const auto& [key, placement] : held) RETURN_IF_ERROR(shadow_->Restore(key, placement));
    for (const auto& [key, placement] : reserved) shadow_->Reserve(key, placement);
    return absl::OkStatus();
  };
  return {begin};
}

void ShadowEngine::Drain() {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &ShadowEngine::Idle));
}

// ---- the shadow's thread

void ShadowEngine::Work() {
  while (true) {
    std::vector<Step> steps;
    {
      const absl::MutexLock lock(&mutex_);
      working_ = false;
      mutex_.Await(absl::Condition(this, &ShadowEngine::HasWork));
      if (stop_) return;
      working_ = true;
      steps.swap(queue_);
    }
    Run(steps);
  }
}

void ShadowEngine::Run(const std::vector<Step>& steps) {
  for (auto step = steps.begin(); step != steps.end() && !stopping_; ++step) {
    absl::Status status = step->run();
    if (!failed_.ok()) status = std::exchange(failed_, absl::OkStatus());
    if (status.ok()) continue;
    LogError("the shadow engine has failed, and is begun anew in a while",
             {{"pool", options_.pool}, {"why", Message(status)}});
    shadow_.reset();
    auto skipped = std::count_if(step, steps.end(), [](const Step& one) { return one.asks; });
    {
      const absl::MutexLock lock(&mutex_);
      behind_ = true;
      skipped +=
          std::count_if(queue_.begin(), queue_.end(), [](const Step& one) { return one.asks; });
      queue_.clear();
    }
    options_.compared(Comparison::kSkipped, static_cast<size_t>(skipped));
    return;
  }
}

absl::Status ShadowEngine::Ask(const Asked& asked) {
  const Outcome outcome = shadow_->Match({.operation = asked.operation,
                                          .key = asked.key,
                                          .jobspec = *asked.jobspec,
                                          .now_s = asked.now_s,
                                          .duration_s = asked.duration_s,
                                          .before_s = asked.before_s,
                                          .anywhere = asked.anywhere});
  RETURN_IF_ERROR(failed_);
  const Comparison result = Compare(outcome, asked);
  options_.compared(result, 1);
  if (asked.operation == graph::Operation::kSatisfiability) return absl::OkStatus();
  // The same devices, too: later answers depend on them.
  const bool same = outcome.placement == nullptr
                        ? !asked.placement
                        : asked.placement && outcome.placement->slots == asked.placement->slots;
  if (result == Comparison::kEqual && same) return absl::OkStatus();
  if (outcome.kind == OutcomeKind::kAllocated) shadow_->Release(asked.key);
  shadow_->DropReservation(asked.key);
  if (asked.decided == OutcomeKind::kReserved) shadow_->Reserve(asked.key, *asked.placement);
  if (asked.decided != OutcomeKind::kAllocated) return absl::OkStatus();
  return shadow_->Restore(asked.key, *asked.placement);
}

Comparison ShadowEngine::Compare(const Outcome& outcome, const Asked& asked) const {
  const Placement* decided = asked.placement ? &*asked.placement : nullptr;
  const bool same_outcome = outcome.kind == asked.decided && outcome.at_s == asked.at_s;
  if (same_outcome) {
    // Where a reserved job goes is decided when its time has come.
    if (outcome.kind == OutcomeKind::kReserved) return Comparison::kEqual;
    if (decided == nullptr || outcome.placement == nullptr) return Comparison::kEqual;
    const auto on = [](const graph::PlacedSlot& a, const graph::PlacedSlot& b) {
      return a.node == b.node;
    };
    if (std::equal(decided->slots.begin(),
                   decided->slots.end(),
                   outcome.placement->slots.begin(),
                   outcome.placement->slots.end(),
                   on)) {
      return Comparison::kEqual;
    }
  }
  LogWarning("the shadow engine answers another way",
             {{"pool", options_.pool},
              {"job", asked.key.job_id},
              {"attempt", fmt::to_string(asked.key.attempt)},
              {"part", fmt::to_string(asked.key.part)},
              {"now_s", fmt::to_string(asked.now_s)},
              {"decided", AnswerOf(asked.decided, asked.at_s, decided)},
              {"shadow", AnswerOf(outcome.kind, outcome.at_s, outcome.placement)},
              {"asked", asked.jobspec->shape}});
  return same_outcome ? Comparison::kPlacement : Comparison::kOutcome;
}

}  // namespace fluxqueue::fluxion
