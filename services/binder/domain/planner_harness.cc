#include "services/binder/domain/planner_harness.h"

#include <utility>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/kubernetes/slot_proof.h"

namespace fluxqueue::binder {

using Kind = Call::Kind;
using Outcome = CallResult::Outcome;

PodFacts& FakeCluster::AddPod(
    const std::string& job_id, const std::string& name, int index, bool pinned, std::string uid) {
  PodFacts pod;
  pod.uid = uid.empty() ? name : std::move(uid);
  pod.job_id = job_id;
  pod.space = kTestSpace;
  pod.name = name;
  pod.index = index;
  pod.direct = !pinned;
  pod.gated = pinned;
  pod.requests = {{"cpu", 1000}, {"pods", 1}};
  PodFacts& added = pods[name] = std::move(pod);
  Touch(added);
  return added;
}

PodFacts* FakeCluster::Pod(const std::string& name) {
  const auto found = pods.find(name);
  return found == pods.end() ? nullptr : &found->second;
}

void FakeCluster::Touch(PodFacts& pod) {
  pod.resource_version = ++version_;
  events.push_back({pod, pod.uid});
}

void FakeCluster::End(const std::string& name, PodFacts::Phase phase) {
  PodFacts& pod = pods.at(name);
  pod.phase = phase;
  Touch(pod);
}

void FakeCluster::Delete(const std::string& name) {
  PodFacts* pod = Pod(name);
  if (pod == nullptr || pod->deleting) return;
  if (!pod->Bound() || pod->Ended()) return Remove(name);
  pod->deleting = true;
  Touch(*pod);
}

void FakeCluster::Remove(const std::string& name) {
  const PodFacts& pod = pods.at(name);
  events.push_back({std::nullopt, pod.uid});
  pods.erase(name);
}

void FakeCluster::Schedule(const std::string& name, const std::string& node) {
  PodFacts& pod = pods.at(name);
  pod.node = node;
  Touch(pod);
}

CallResult FakeCluster::Execute(const Call& call) {
  CallResult result{.call = call, .outcome = Outcome::kDone, .pod = {}, .message = {}};
  switch (call.kind) {
    case Kind::kCheckNode:
      result.node_lost = lost_nodes.contains(call.node);
      return result;
    case Kind::kLookAtNode:
      if (const auto closed = closed_nodes.find(call.node); closed != closed_nodes.end()) {
        result.node_closed = closed->second;
      }
      if (IsReplaced(call)) result.node_closed = "is another by now";
      return result;
    case Kind::kReadJob:
      if (!suspended.contains(call.name)) result.outcome = Outcome::kGone;
      result.completions_left = completions_left[call.name];
      return result;
    case Kind::kLimit:
      if (!suspended.contains(call.name)) result.outcome = Outcome::kGone;
      deadlines[call.name] = call.ends_after_s;
      return result;
    case Kind::kResume:
    case Kind::kSuspend: {
      const auto job = suspended.find(call.name);
      if (job == suspended.end()) {
        result.outcome = Outcome::kGone;
      } else if (call.kind == Kind::kSuspend) {
        job->second = suspended_by_us[call.name] = true;
      } else if (!call.only_ours || suspended_by_us[call.name]) {
        job->second = suspended_by_us[call.name] = false;
        deadlines[call.name] = call.ends_after_s;
      }
      return result;
    }
    default:
      return ExecuteOnPod(call);
  }
}

CallResult FakeCluster::ExecuteOnPod(const Call& call) {
  CallResult result{.call = call, .outcome = Outcome::kDone, .pod = {}, .message = {}};
  PodFacts* pod = Pod(call.name);
  if (pod == nullptr || pod->uid != call.uid) {
    result.outcome = Outcome::kGone;
    return result;
  }
  if (call.kind == Kind::kBind || call.kind == Kind::kRelease) return Start(call, *pod);
  if (call.kind == Kind::kDelete) {
    Delete(call.name);
    return result;
  }
  if (call.kind == Kind::kKill) {
    Remove(call.name);
    return result;
  }
  if (call.kind == Kind::kFence) Touch(*pod);
  result.pod = *pod;
  return result;
}

CallResult FakeCluster::Start(const Call& call, PodFacts& pod) {
  CallResult result{.call = call, .outcome = Outcome::kDone, .pod = {}, .message = {}};
  if (now > call.sure_until && (call.node_uid.empty() || IsReplaced(call))) {
    result.outcome = Outcome::kRetry;
    result.unmade = true;
    return result;
  }
  const bool bind = call.kind == Kind::kBind;
  if (pod.resource_version != call.resource_version || pod.Bound() || pod.deleting ||
      pod.gated == bind) {
    result.outcome = Outcome::kConflict;
    result.pod = pod;
    return result;
  }
  pod.slot = kubernetes::SlotName{call.attempt, 0, static_cast<uint32_t>(call.slot), call.slots};
  PodFacts given = pod;
  given.node = call.node;
  given.job_id = call.job_id;
  pod.proof = ProofTextOf(given);
  if (bind) {
    pod.node = call.node;
  } else {
    pod.gated = false;
  }
  Touch(pod);
  if (!bind) result.pod = pod;
  return result;
}

bool FakeCluster::IsReplaced(const Call& call) const {
  const auto uid = node_uids.find(call.node);
  return uid != node_uids.end() && !call.node_uid.empty() && uid->second != call.node_uid;
}

void FakeTables::Apply(const Rows& rows) {
  const auto forget_slots = [this](const std::string& job_id) {
    std::erase_if(slots, [&](const auto& row) { return std::get<0>(row.first) == job_id; });
  };
  for (const std::string& job_id : rows.forgotten) {
    jobs.erase(job_id);
    forget_slots(job_id);
  }
  for (const std::string& job_id : rows.renewed) forget_slots(job_id);
  for (const JobRow& row : rows.jobs) jobs[row.job_id] = row;
  for (const SlotRow& row : rows.slots) slots[{row.job_id, row.attempt, row.slot}] = row;
}

std::vector<SlotRow> FakeTables::SlotsOf(const std::string& job_id) const {
  std::vector<SlotRow> of_job;
  for (const auto& [key, row] : slots) {
    if (std::get<0>(key) != job_id) continue;
    SlotRow read = row;  // as from the database: memory fields are not there
    read.value = Slot{.node = row.value.node,
                      .pod_uid = row.value.pod_uid,
                      .pod_name = row.value.pod_name,
                      .state = row.value.state,
                      .bound_once = row.value.bound_once,
                      .succeeded = row.value.succeeded,
                      .retry = {}};
    of_job.push_back(std::move(read));
  }
  return of_job;
}

PlannerHarness::PlannerHarness(PlanOptions plan_options) : options(plan_options) {
  Restart();
}

events::v1::JobFact PlannerHarness::Fact(const std::string& job_id,
                                         events::v1::JobState state,
                                         uint32_t slots,
                                         uint32_t attempt) {
  events::v1::JobFact fact;
  fact.set_job_id(job_id);
  fact.set_version(++versions_[job_id]);
  fact.set_pool("default");
  fact.set_state(state);
  fact.set_attempt(attempt);
  fact.set_slots(slots);
  events::v1::Workload* workload = fact.mutable_workload();
  workload->set_api_version("batch/v1");
  workload->set_kind("Job");
  workload->set_namespace_(std::string(kTestSpace));
  workload->set_name(job_id);
  workload->set_uid(job_id);
  workload->set_completions(slots);
  workload->set_recreatable(true);
  return fact;
}

void PlannerHarness::PlaceJob(const std::string& job_id, uint32_t attempt, uint32_t slots) {
  PlacementRow row;
  for (uint32_t i = 0; i < slots; ++i) {
    auto* slot = row.placement.add_slots();
    slot->set_slot(i);
    slot->set_node(fmt::format("n{}", i));
  }
  auto* group = row.placement.add_groups();
  group->set_slots(slots);
  auto* cpu = group->add_requests();
  cpu->set_resource("cpu");
  cpu->set_amount(1000);
  auto* pods = group->add_requests();
  pods->set_resource("pods");
  pods->set_amount(1);
  tables.placements[{job_id, attempt}] = row;
}

void PlannerHarness::TellEvents() {
  for (const FakeCluster::Event& event : std::exchange(cluster.events, {})) {
    if (event.pod.has_value()) {
      planner->PodSeen(*event.pod);
    } else {
      planner->PodGone(event.uid);
    }
  }
}

void PlannerHarness::HandleAndPlan(std::vector<Saying>* said) {
  for (const auto& fact : log) {
    const absl::Status folded = planner->Fold(0, fact, now);
    CHECK(folded.ok(), "{}", folded.ToString());
  }
  planner->Plan(now, said);
  for (const PlacementKey& key : planner->WantedPlacements(now)) {
    const auto row = tables.placements.find({key.job_id, key.attempt});
    if (row == tables.placements.end()) {
      planner->Placed(key, nullptr, now);
      continue;
    }
    PlacementRow read = row->second;
    for (const std::string& node : key.nodes) {
      const auto uid = tables.node_uids.find(node);
      if (uid != tables.node_uids.end()) read.node_uids.insert(*uid);
    }
    planner->Placed(key, &read, now);
  }
  planner->PlanPlaced(now);
}

std::vector<Call> PlannerHarness::Batch() {
  TellEvents();
  std::vector<Saying> said;
  HandleAndPlan(&said);
  tables.Apply(planner->Changes());
  log.clear();
  sayings.insert(sayings.end(), said.begin(), said.end());
  return planner->Commit();
}

void PlannerHarness::FailedBatch() {
  TellEvents();
  std::vector<Saying> said;
  HandleAndPlan(&said);
  planner->Rollback();
}

void PlannerHarness::Execute(const std::vector<Call>& calls) {
  cluster.now = now;
  for (const Call& call : calls) planner->Answer(cluster.Execute(call));
}

void PlannerHarness::Settle() {
  constexpr int kManyRounds = 1000;
  constexpr Millis kShortWait{1'000};
  for (int round = 0; round < kManyRounds; ++round) {
    const std::vector<Call> calls = Batch();
    Execute(calls);
    if (!calls.empty() || !cluster.events.empty() || planner->HasWork()) continue;
    const std::optional<Millis> wake = planner->WakeAt();
    if (!wake.has_value() || *wake > now + kShortWait) return;
    now = std::max(now, *wake);
  }
  CHECK(false, "the planner does not come to rest");
}

void PlannerHarness::Restart() {
  planner = std::make_unique<BindPlanner>(options, TestProofs());
  for (const auto& [job_id, row] : tables.jobs) {
    CHECK(planner->Restore(row, tables.SlotsOf(job_id), now).ok());
  }
  cluster.events.clear();
  for (const auto& [name, pod] : cluster.pods) cluster.events.push_back({pod, pod.uid});
  TellEvents();
  planner->SetPodsInView(true, now);
}

void PlannerHarness::LoseRows() {
  tables.jobs.clear();
  tables.slots.clear();
}

std::vector<std::string> PlannerHarness::Said(std::string_view type) const {
  std::vector<std::string> said;
  for (const Saying& saying : sayings) {
    const events::v1::Envelope& message = saying.envelope;
    if (type == "job_bound" && message.has_job_bound()) {
      said.push_back(
          fmt::format("{}/{}", message.job_bound().job_id(), message.job_bound().attempt()));
    } else if (type == "job_stopped" && message.has_job_stopped()) {
      said.push_back(
          fmt::format("{}/{}", message.job_stopped().job_id(), message.job_stopped().attempt()));
    } else if (type == "slots_vacated" && message.has_slots_vacated()) {
      const events::v1::SlotsVacated& vacated = message.slots_vacated();
      said.push_back(fmt::format(
          "{}/{}: {}", vacated.job_id(), vacated.attempt(), fmt::join(vacated.slots(), " ")));
    } else if (type == "slots_lost" && message.has_slots_lost()) {
      for (const events::v1::SlotsLost::Lost& lost : message.slots_lost().slots()) {
        said.push_back(fmt::format("{} on {}, which {}{}",
                                   lost.slot(),
                                   lost.node(),
                                   lost.reason(),
                                   lost.closed() ? "" : "; open"));
      }
    } else if (type == "bind_failed" && message.has_bind_failed()) {
      said.push_back(fmt::format("{}/{} {}",
                                 message.bind_failed().job_id(),
                                 message.bind_failed().attempt(),
                                 message.bind_failed().reason()));
    }
  }
  return said;
}

const Slot& PlannerHarness::SlotOf(const std::string& job_id, size_t slot) const {
  const BindJob* job = planner->Find(job_id);
  CHECK(job != nullptr && slot < job->slots.size(), "slot {} of job {}", slot, job_id);
  return job->slots[slot];
}

ProofCheck TestProofs() {
  return [](const PodFacts& pod) { return pod.slot && pod.proof == ProofTextOf(pod); };
}

std::string ProofTextOf(const PodFacts& pod) {
  return kubernetes::SlotProofText(pod.uid, pod.space, pod.job_id, *pod.slot, pod.node);
}

std::string Describe(const Call& call) {
  return fmt::format("{} {} {}", Name(call.kind), call.name, call.node);
}

std::vector<std::string> Describe(const std::vector<Call>& calls) {
  std::vector<std::string> texts;
  texts.reserve(calls.size());
  for (const Call& call : calls) texts.push_back(Describe(call));
  return texts;
}

}  // namespace fluxqueue::binder
