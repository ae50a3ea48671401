#include "libs/matcher_core/matcher_core.h"

#include <algorithm>
#include <set>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/levels.h"
#include "libs/graph/planned_end.h"
#include "libs/matcher_core/answer_size.h"
#include "libs/matcher_core/batch.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/host_ports.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"
#include "libs/matcher_core/windows.h"
#include "libs/model/job_of.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Envelope;
using events::v1::InventoryChanged;
using events::v1::PartSpec;
using events::v1::PoolConfigured;
using events::v1::Released;
using events::v1::ReleaseRequested;
using events::v1::WindowConfigured;

bool AsksForTheLost(const matcher::v1::PoolState& state) {
  return model::HasRules(state.config().rules(), model::kAsksForTheLost);
}

// What is reserved on the node can be had there as before: it has the same properties, and nothing
// less.
bool KeepsPromises(const std::string& before_bytes,
                   const events::v1::Node& now,
                   const matcher::v1::PoolState& state) {
  events::v1::Node before;
  CHECK(before.ParseFromString(before_bytes), "node {}", now.name());
  const graph::NodeSpec was = ToNodeSpec(before, 0, state.host_ports());
  const graph::NodeSpec is = ToNodeSpec(now, 0, state.host_ports());
  if (!is.schedulable || is.labels != was.labels || is.taints != was.taints) return false;
  const auto has_no_less = [](const graph::Amounts& more, const graph::Amounts& less) {
    return std::all_of(less.begin(), less.end(), [&more](const graph::Amount& needed) {
      return std::any_of(more.begin(), more.end(), [&needed](const graph::Amount& amount) {
        return amount.resource == needed.resource && amount.amount >= needed.amount;
      });
    });
  };
  return has_no_less(is.resources, was.resources) && has_no_less(was.foreign, is.foreign);
}

// It is given back as planned.
bool IsOverAt(const graph::Placement& placement, int64_t now_s) {
  return placement.duration_s > 0 && graph::PlannedEnd(placement, now_s - 1) <= now_s;
}

// When the pool's time began: `now_s` before the log's time, or a little earlier. A request stands
// a little later in the log than the time that it names: the least is the nearest.
void LearnBeginning(Millis now, int64_t now_s, matcher::v1::PoolState* state) {
  const int64_t beginning_ms = (now - std::chrono::seconds(now_s)).count();
  if (state->beginning_ms() != 0 && state->beginning_ms() <= beginning_ms) return;
  state->set_beginning_ms(beginning_ms);
}

}  // namespace

MatcherCore::MatcherCore(std::string pool, graph::MakeEngine make_engine)
    : pool_(std::move(pool)),
      make_engine_(std::move(make_engine)),
      engine_(graph::MakeNativeEngine()) {}

MatcherCore::~MatcherCore() = default;

graph::EngineKind MatcherCore::engine_kind() const {
  return KindOf(state_.config());
}

std::vector<graph::Closure> MatcherCore::Closures(const std::vector<std::string>& open,
                                                  int64_t now_s) const {
  return matcher_core::Closures(state_, open, now_s);
}

// ---- messages

bool MatcherCore::Reads(Envelope::EventCase type) {
  switch (type) {
    case Envelope::kJobSubmitted:
    case Envelope::kJobUpdated:
    case Envelope::kJobWithdrawn:
    case Envelope::kCommandAccepted:
    case Envelope::kPoolConfigured:
    case Envelope::kWindowConfigured:
    case Envelope::kNodeUpserted:
    case Envelope::kNodeGone:
    case Envelope::kInventorySynced:
    case Envelope::kCycleRequested:
    case Envelope::kReleaseRequested:
      return true;
    default:  // Another service's business.
      return false;
  }
}

absl::Status MatcherCore::Handle(const Envelope& message, Millis now, std::vector<Envelope>* out) {
  if (!Reads(message.event_case())) return absl::OkStatus();
  BeginBatch();
  const auto say = [this, now, out]() {
    Envelope& envelope = out->emplace_back();
    envelope.set_pool(pool_);
    envelope.set_time_ms(now.count());
    return &envelope;
  };
  const auto say_inventory = [&say](std::optional<InventoryChanged> changed) {
    if (changed) *say()->mutable_inventory_changed() = *std::move(changed);
    return absl::OkStatus();
  };
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
      return HandleArrival(message.job_submitted().job_id(),
                           message.job_submitted().spec(),
                           message.job_submitted().workload().namespace_(),
                           now);
    case Envelope::kJobUpdated: {
      const std::string& job_id = message.job_updated().job_id();
      const PartSpec* spec = model::SpecOf(message.job_updated());
      if (spec == nullptr) return absl::OkStatus();
      // Of a job that is over nothing is kept, whatever is still said of it.
      const bool forgets = model::HasRules(state_.config().rules(), model::kForgetsLateJobspecs);
      if (forgets && !specs_.Has(SpecKey(job_id, spec->part()))) return absl::OkStatus();
      return HandleSpec(job_id, *spec);
    }
    case Envelope::kJobWithdrawn:
      HandleWithdrawn(message.job_withdrawn().job_id());
      return absl::OkStatus();
    case Envelope::kCommandAccepted: {
      const events::v1::CommandAccepted& accepted = message.command_accepted();
      if (!accepted.has_submit_claim()) return absl::OkStatus();
      const events::v1::SubmitClaim& claim = accepted.submit_claim();
      return HandleArrival(claim.job_id(), claim.spec(), /*tenant=*/"", now);
    }
    case Envelope::kPoolConfigured:
      return HandlePool(message.pool_configured(), now);
    case Envelope::kWindowConfigured:
      return HandleWindow(message.window_configured());
    case Envelope::kNodeUpserted: {
      ASSIGN_OR_RETURN(auto changed, HandleNode(message.node_upserted().node()));
      return say_inventory(std::move(changed));
    }
    case Envelope::kNodeGone:
      return say_inventory(HandleNodeGone(message.node_gone()));
    case Envelope::kInventorySynced:
      return say_inventory(HandleSynced());
    case Envelope::kCycleRequested: {
      ASSIGN_OR_RETURN(auto answer, HandleCycle(message.cycle_requested(), now));
      if (answer) *say()->mutable_cycle_answered() = *std::move(answer);
      return absl::OkStatus();
    }
    case Envelope::kReleaseRequested: {
      ASSIGN_OR_RETURN(Released released, HandleRelease(message.release_requested(), now));
      *say()->mutable_released() = std::move(released);
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();
  }
}

absl::Status MatcherCore::HandleSpec(const std::string& job_id, const PartSpec& part) {
  if (job_id.empty()) return InvalidArgument("a jobspec without a job id");
  const SpecKey key(job_id, part.part());
  const Spec* known = specs_.Find(key);
  if (known != nullptr && known->revision >= part.revision()) return absl::OkStatus();
  PutSpec(key, MakeSpec(part.revision(), part.slots(), part.jobspec()));
  promises_.LoseOf(job_id, engine_.get());
  LearnHostPorts(*specs_.Find(key));
  return absl::OkStatus();
}

absl::Status MatcherCore::HandleArrival(const std::string& job_id,
                                        const PartSpec& part,
                                        const std::string& tenant,
                                        Millis now) {
  const SpecKey key(job_id, part.part());
  const bool known = specs_.Has(key);
  RETURN_IF_ERROR(HandleSpec(job_id, part));
  const Spec& spec = *specs_.Find(key);
  if (!known && spec.jobspec != nullptr) {
    forecast_.Arrive(state_.config(), tenant, *spec.jobspec, now, engine_.get());
  }
  return absl::OkStatus();
}

// The queue, which has it cancelled, says so too; but not of one that it has never taken.
void MatcherCore::HandleWithdrawn(const std::string& job_id) {
  if (!model::HasRules(state_.config().rules(), model::kForgetsWithdrawn)) return;
  if (engine_->KeysOf(job_id).empty()) Forget(job_id);
}

void MatcherCore::Forget(const std::string& job_id) {
  promises_.LoseOf(job_id, engine_.get());
  auto next = specs_.map().lower_bound(SpecKey(job_id, 0));
  while (next != specs_.map().end() && next->first.first == job_id) {
    PutSpec(SpecKey((next++)->first), std::nullopt);
  }
}

absl::Status MatcherCore::HandlePool(const PoolConfigured& config, Millis now) {
  if (config.rules() > model::kLatestRules) {
    return InvalidArgument("pool {}: rules {} are unknown to this build, which knows up to {}",
                           pool_,
                           config.rules(),
                           model::kLatestRules);
  }
  const std::string where = fmt::format("pool {}", pool_);
  const std::vector<std::string> levels(config.levels().begin(), config.levels().end());
  RETURN_IF_ERROR(Annotate(graph::ParseLevels(levels).status(), where));
  // It is said again and again, should the log have lost it.
  if (AsksForTheLost(state_) && config.SerializeAsString() == state_.config().SerializeAsString()) {
    return absl::OkStatus();
  }
  promises_.PutAway(engine_.get());
  if (KindOf(config) != KindOf(state_.config())) {
    RETURN_IF_ERROR(Annotate(ChangeEngine(config), where));
  } else {
    RETURN_IF_ERROR(Annotate(Configure(config, engine_.get()), where));
  }
  RETURN_IF_ERROR(Annotate(engine_->SetLevels(levels), where));
  forecast_.Configure(state_.config(), config, specs_, now, engine_.get());
  *state_.mutable_config() = config;
  for (const auto& [key, spec] : specs_.map()) LearnHostPorts(spec);
  return absl::OkStatus();
}

void MatcherCore::LearnHostPorts(const Spec& spec) {
  if (!model::HasRules(state_.config().rules(), model::kPodRules)) return;
  const std::optional<std::set<std::string>> ports = MoreHostPorts(state_, spec, specs_);
  if (!ports) return;
  promises_.PutAway(engine_.get());
  state_.mutable_host_ports()->Assign(ports->begin(), ports->end());
  for (const auto& [name, node] : nodes_.map()) {
    if (!node.present) continue;
    events::v1::Node said;
    CHECK(said.ParseFromString(node.bytes), "node {}", name);
    const auto change = engine_->UpdateNode(ToNodeSpec(said, node.ordinal, state_.host_ports()));
    CHECK(change.ok(), "{}", Message(change.status()));
  }
}

absl::Status MatcherCore::ChangeEngine(const PoolConfigured& config) {
  ASSIGN_OR_RETURN(std::unique_ptr<graph::Engine> other, make_engine_(KindOf(config)));
  RETURN_IF_ERROR(Configure(config, other.get()));
  RETURN_IF_ERROR(graph::Copy(*engine_, other.get()));
  for (const auto& [key, spec] : specs_.map()) {
    if (spec.jobspec != nullptr) other->Expect(*spec.jobspec, 1);
  }
  other->Checkpoint();
  engine_.swap(other);
  if (batch_->engine_before == nullptr) batch_->engine_before = std::move(other);
  return absl::OkStatus();
}

absl::Status MatcherCore::HandleWindow(const WindowConfigured& window) {
  RETURN_IF_ERROR(CheckWindow(window));
  if (AsksForTheLost(state_) && IsSet(window, state_)) return absl::OkStatus();
  // Promises know other windows. All are made again, in the order of the line.
  promises_.PutAway(engine_.get());
  promises_.LoseAll(SlipBy(events::v1::Slip::CAUSE_WINDOW, window.window()));
  SetWindow(window, &state_);
  return absl::OkStatus();
}

// ---- nodes

absl::StatusOr<std::optional<InventoryChanged>> MatcherCore::HandleNode(
    const events::v1::Node& node) {
  if (node.name().empty() || node.uid().empty()) {
    return InvalidArgument(
        "a node without a name or a uid (name \"{}\", uid \"{}\")", node.name(), node.uid());
  }
  const KnownNode* known = nodes_.Find(node.name());
  const bool same = known != nullptr && known->uid == node.uid();
  KnownNode next{.uid = node.uid(),
                 .ordinal = same ? known->ordinal : 0,
                 .bytes = node.SerializeAsString(),
                 .resource_version = node.resource_version(),
                 .present = true};
  if (same && IsOlder(next.resource_version, known->resource_version)) return std::nullopt;
  if (same && known->present && known->bytes == next.bytes) return std::nullopt;

  promises_.PutAway(engine_.get());
  state_.set_room_came(true);
  InventoryChanged changed;
  const uint32_t up_before = engine_->nodes_up();
  const uint32_t nodes_before = engine_->nodes();
  const bool present = known != nullptr && known->present;
  if (present && !same) RemoveNode(node.name(), &changed);
  if (!same) {
    next.ordinal = state_.next_ordinal();
    state_.set_next_ordinal(next.ordinal + 1);
  }
  if (present && same) {
    if (!KeepsPromises(known->bytes, node, state_)) promises_.LoseOn(node.name());
    absl::StatusOr<graph::NodeChange> change =
        engine_->UpdateNode(ToNodeSpec(node, next.ordinal, state_.host_ports()));
    CHECK(change.ok(), "{}", Message(change.status()));
    changed.set_grew(change->grew);
  } else {
    graph::NodeSpec spec = ToNodeSpec(node, next.ordinal, state_.host_ports());
    changed.set_grew(spec.schedulable);
    const absl::Status added = engine_->AddNode(std::move(spec));
    CHECK(added.ok(), "{}", Message(added));
  }
  nodes_.Put(node.name(), std::move(next));
  const bool matters = changed.grew() || changed.broken_size() > 0 ||
                       engine_->nodes() != nodes_before || engine_->nodes_up() != up_before;
  if (!matters) return std::nullopt;
  return Inventory(node.name(), std::move(changed));
}

std::optional<InventoryChanged> MatcherCore::HandleNodeGone(const events::v1::NodeGone& gone) {
  const KnownNode* known = nodes_.Find(gone.name());
  if (known == nullptr || !known->present || known->uid != gone.uid()) {
    return std::nullopt;
  }
  promises_.PutAway(engine_.get());
  InventoryChanged changed;
  RemoveNode(gone.name(), &changed);
  nodes_.ForgetGone(kGoneNodesKept);
  return Inventory(gone.name(), std::move(changed));
}

std::optional<InventoryChanged> MatcherCore::HandleSynced() {
  if (state_.synced()) return std::nullopt;
  state_.set_synced(true);
  // What was busy because nothing was certain may now be told the truth.
  InventoryChanged changed;
  changed.set_grew(true);
  return Inventory("", std::move(changed));
}

InventoryChanged MatcherCore::Inventory(const std::string& node, InventoryChanged changed) const {
  changed.set_node(node);
  changed.set_nodes(engine_->nodes());
  changed.set_nodes_up(engine_->nodes_up());
  changed.set_synced(state_.synced());
  for (const auto& [resource, amount] : nodes_.capacity()) {
    events::v1::Amount* added = changed.add_capacity();
    added->set_resource(resource);
    added->set_amount(amount);
  }
  return changed;
}

void MatcherCore::RemoveNode(const std::string& name, InventoryChanged* changed) {
  promises_.LoseOn(name);
  absl::StatusOr<std::vector<AllocationKey>> broken = engine_->RemoveNode(name);
  CHECK(broken.ok(), "{}", Message(broken.status()));
  for (const AllocationKey& key : *broken) {
    *changed->add_broken() = ToProto(key);
    batch_->allocations.Write(key, *engine_->Find(key));
  }
  KnownNode node = nodes_.map().at(name);
  node.present = false;
  nodes_.Put(name, std::move(node));
}

// ---- cycles

absl::StatusOr<std::optional<CycleAnswered>> MatcherCore::HandleCycle(const CycleRequested& request,
                                                                      Millis now) {
  if (request.cycle_id() == 0) return InvalidArgument("a cycle with the id 0; ids begin at 1");
  if (request.cycle_id() < state_.last_cycle_id() && !AsksForTheLost(state_)) return std::nullopt;
  CycleAnswered answer;
  // Of an earlier one: the queue's table went back, and the log with what it had asked since is
  // lost. The id tells it how far it was.
  if (request.cycle_id() <= state_.last_cycle_id()) {
    CHECK(answer.ParseFromString(last_answer_), "the answer to cycle {}", request.cycle_id());
    return answer;
  }
  LearnBeginning(now, request.now_s(), &state_);
  DropPastWindows(now, &state_);
  ReleaseOvertaken(request, now);
  const View view{pool_, state_, specs_, ruled_, nodes_, promises_, plan_, *engine_};
  CycleRun cycle(request, view, &promises_, &batch_->allocations, engine_.get());
  answer = cycle.Answer(tried_);
  Fit(&answer);
  state_.set_room_came(cycle.left_room());
  state_.set_last_cycle_id(request.cycle_id());
  last_answer_ = answer.SerializeAsString();
  plan_ = PlanOf(answer);
  batch_->answers[request.cycle_id()] = last_answer_;
  return answer;
}

// ---- release

void MatcherCore::GiveBack(const AllocationKey& key, Millis now) {
  if (!IsOverAt(*engine_->Find(key), PoolSeconds(now))) state_.set_room_came(true);
  engine_->Release(key);
  batch_->allocations.Release(key);
}

void MatcherCore::ReleaseOvertaken(const CycleRequested& request, Millis now) {
  if (!model::HasRules(state_.config().rules(), model::kReleasesOvertaken)) return;
  for (const events::v1::Candidate& candidate : request.candidates()) {
    for (const AllocationKey& key : engine_->KeysOf(candidate.job_id())) {
      if (key.attempt < candidate.attempt()) GiveBack(key, now);
    }
  }
}

absl::StatusOr<Released> MatcherCore::HandleRelease(const ReleaseRequested& request, Millis now) {
  const AllocationKey key = FromProto(request.key());
  if (key.job_id.empty()) return InvalidArgument("a release without a job id");
  Released released;
  *released.mutable_key() = request.key();
  *released.mutable_slots() = request.slots();
  if (request.slots_size() > 0 && !request.job_ended()) {
    const std::vector<uint32_t> slots(request.slots().begin(), request.slots().end());
    const bool any = !engine_->ReleaseSlots(key, slots).empty();
    if (any) {
      state_.set_room_came(true);
      batch_->allocations.Write(key, *engine_->Find(key));
    }
    released.set_nothing_held(!any);
    return released;
  }
  // A job that has ended holds nothing more, under whatever key. What a later attempt holds is of
  // one that was handed in again, and that a release said again knows nothing of.
  std::vector<AllocationKey> ended = engine_->KeysOf(key.job_id);
  if (AsksForTheLost(state_)) {
    std::erase_if(ended, [&key](const AllocationKey& one) { return one.attempt > key.attempt; });
  }
  const std::vector<AllocationKey> keys = request.job_ended() ? ended
                                          : engine_->Find(key) != nullptr
                                              ? std::vector<AllocationKey>{key}
                                              : std::vector<AllocationKey>{};
  for (const AllocationKey& held : keys) GiveBack(held, now);
  released.set_nothing_held(keys.empty());
  if (request.job_ended()) Forget(key.job_id);
  return released;
}

// ---- batch

void MatcherCore::BeginBatch() {
  if (batch_ != nullptr) return;
  batch_ = std::make_unique<Batch>();
  batch_->state_before = state_;
  batch_->last_answer_before = last_answer_;
  batch_->plan_before = plan_;
  engine_->Checkpoint();
}

void MatcherCore::PutSpec(const SpecKey& key, std::optional<Spec> spec) {
  if (const Spec* known = specs_.Find(key); known != nullptr) Expect(*known, -1);
  if (spec) Expect(*spec, 1);
  if (const Spec* known = specs_.Find(key); known != nullptr && HasRules(*known)) {
    ruled_.Erase({known->jobspec->pods.space, key});
  }
  if (spec && HasRules(*spec)) ruled_.Put({spec->jobspec->pods.space, key}, true);
  specs_.Put(key, std::move(spec));
}

void MatcherCore::Expect(const Spec& spec, int64_t jobs) {
  if (spec.jobspec != nullptr) engine_->Expect(*spec.jobspec, jobs);
}

void MatcherCore::Commit() {
  engine_->Commit();
  specs_.Commit();
  ruled_.Commit();
  nodes_.Commit();
  promises_.Commit();
  forecast_.Commit();
  batch_.reset();
}

void MatcherCore::Rollback() {
  if (batch_ == nullptr) return;
  if (batch_->engine_before != nullptr) engine_ = std::move(batch_->engine_before);
  promises_.Rollback(engine_.get());
  engine_->Rollback();
  state_ = std::move(batch_->state_before);
  last_answer_ = std::move(batch_->last_answer_before);
  plan_ = std::move(batch_->plan_before);
  forecast_.Rollback();
  // Which jobs are expected the engine has taken back itself.
  specs_.Rollback();
  ruled_.Rollback();
  nodes_.Rollback();
  batch_.reset();
}

}  // namespace fluxqueue::matcher_core
