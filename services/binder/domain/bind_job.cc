#include "services/binder/domain/bind_job.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "libs/base/check.h"
#include "libs/kubernetes/node.h"
#include "services/binder/domain/call.h"

namespace fluxqueue::binder {
namespace {

constexpr std::array<std::string_view, 5> kSlotStates = {
    "free", "taken", "bound", "ended", "fenced"};

bool SameRow(const BindJob& a, const BindJob& b) {
  return a.fact == b.fact && a.failed == b.failed && a.stopped == b.stopped &&
         a.resumed == b.resumed;
}

JobRow ToRow(const BindJob& job) {
  JobRow row;
  row.job_id = job.id();
  row.partition = job.partition;
  row.pool = job.fact->pool();
  row.fact = job.fact->SerializeAsString();
  row.version = job.fact->version();
  row.attempt = job.attempt();
  row.failed = job.failed;
  row.stopped = job.stopped;
  row.resumed = job.resumed;
  return row;
}

}  // namespace

std::string_view Name(SlotState state) {
  return kSlotStates[static_cast<size_t>(state)];
}

std::optional<SlotState> ParseSlotState(std::string_view name) {
  const auto found = std::find(kSlotStates.begin(), kSlotStates.end(), name);
  if (found == kSlotStates.end()) return std::nullopt;
  return static_cast<SlotState>(found - kSlotStates.begin());
}

std::string_view Name(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::kBind:
      return "bind";
    case Call::Kind::kRelease:
      return "release";
    case Call::Kind::kResume:
      return "resume";
    case Call::Kind::kLimit:
      return "limit";
    case Call::Kind::kSuspend:
      return "suspend";
    case Call::Kind::kDelete:
      return "delete";
    case Call::Kind::kKill:
      return "kill";
    case Call::Kind::kFence:
      return "fence";
    case Call::Kind::kReadPod:
      return "read_pod";
    case Call::Kind::kCheckNode:
      return "check_node";
    case Call::Kind::kLookAtNode:
      return "look_at_node";
    case Call::Kind::kReadJob:
      return "read_job";
  }
  CHECK(false, "call kind {}", static_cast<int>(kind));
}

kubernetes::SlotName SlotOf(const Call& call) {
  return {.attempt = call.attempt,
          .part = 0,
          .slot = static_cast<uint32_t>(call.slot),
          .slots = call.slots};
}

bool Slot::SameRow(const Slot& other) const {
  return std::tie(node, pod_uid, pod_name, state, bound_once, succeeded) ==
         std::tie(other.node,
                  other.pod_uid,
                  other.pod_name,
                  other.state,
                  other.bound_once,
                  other.succeeded);
}

void Slot::SeeNode(const std::string& closed, Millis now) {
  closed_because = closed;
  if (closed.empty()) {
    seen_open_at = now;
    closed_since.reset();
    look = {};
  } else {
    seen_open_at.reset();
    closed_since = closed_since.value_or(now);
  }
}

void Slot::SeeUnsuccessful(const std::string& put_out_by) {
  seen_open_at.reset();
  if (!put_out_by.empty()) put_out = put_out_by;
}

std::string Slot::WhyLost() const {
  if (!closed_since.has_value() && !put_out.empty()) return "has put its pod out: " + put_out;
  if (losing && closed_because.empty()) return "has not had its pod bound in time";
  return closed_because;
}

void Slot::Bind(Millis now) {
  losing = false;
  put_out.clear();
  state = SlotState::kBound;
  bound_once = true;
  if (!bound_at.has_value()) bound_at = now;
}

namespace {

bool HadItsPod(const Slot& slot) {
  return slot.bound_once || slot.released || slot.succeeded;
}

}  // namespace

bool BindJob::AllBound() const {
  const std::span<const Slot> first(slots.data(), AwaitedSlots());
  return !first.empty() && std::all_of(first.begin(), first.end(), [](const Slot& slot) {
    return HadItsPod(slot) || slot.vacating;
  });
}

bool BindJob::AllBoundByRows() const {
  const std::span<const Slot> first(slots.data(), AwaitedSlots());
  return !first.empty() && std::all_of(first.begin(), first.end(), HadItsPod);
}

void AppendChanges(const BindJob* before, const BindJob* after, Rows* rows) {
  if (after == nullptr) {
    if (before != nullptr) rows->forgotten.push_back(before->id());
    return;
  }
  const bool same_attempt = before != nullptr && before->attempt() == after->attempt();
  if (before == nullptr || !SameRow(*before, *after)) rows->jobs.push_back(ToRow(*after));
  if (before != nullptr && !same_attempt) rows->renewed.push_back(after->id());
  for (size_t i = 0; i < after->slots.size(); ++i) {
    const Slot& slot = after->slots[i];
    if (slot.state == SlotState::kFree) continue;
    if (same_attempt && i < before->slots.size() && slot.SameRow(before->slots[i])) continue;
    rows->slots.push_back({.job_id = after->id(),
                           .space = after->workload().namespace_(),
                           .attempt = after->attempt(),
                           .slot = static_cast<int>(i),
                           .value = slot});
  }
}

void Place(const events::v1::Placement& placement, bool released, BindJob* job) {
  size_t slots = job->fact->slots();
  for (const auto& slot : placement.slots()) slots = std::max<size_t>(slots, slot.slot() + 1);
  if (job->slots.size() < slots) job->slots.resize(slots);
  for (Slot& slot : job->slots) slot.released = true;
  for (const auto& placed : placement.slots()) {
    Slot& slot = job->slots[placed.slot()];
    slot.node = placed.node();
    slot.devices.assign(placed.devices().begin(), placed.devices().end());
    slot.released = released || placed.released();
  }
  job->groups.clear();
  for (const auto& group : placement.groups()) {
    const size_t first = job->groups.empty() ? 0 : job->groups.back().end;
    job->groups.push_back({first, first + group.slots(), kubernetes::ToAmounts(group.requests())});
  }
  CloseSlots(job);
  job->placed = true;
}

void LearnNodes(const std::set<std::string>& asked,
                const std::map<std::string, std::string>& uids,
                BindJob* job) {
  for (Slot& slot : job->slots) {
    if (slot.released || !slot.NeedsNode() || !asked.contains(slot.node)) continue;
    const auto uid = uids.find(slot.node);
    slot.node_uid = uid == uids.end() ? "" : uid->second;
    slot.seen_open_at.reset();  // it was not compared then
  }
}

void CloseSlots(BindJob* job) {
  // From now on slots are kept for the pods that are still to come. Those of which the queue had
  // heard that their pods succeeded are given back, and named.
  if (job->ReusesSlots()) {
    for (Slot& slot : job->slots) slot.succeeded = false;
  }
  for (const uint32_t slot : job->fact->vacate()) {
    if (slot < job->slots.size()) job->slots[slot].vacating = true;
  }
  for (const uint32_t slot : job->fact->lost_slots()) {
    if (slot < job->slots.size()) job->slots[slot].given_up = true;
  }
  for (const uint32_t slot : job->fact->done_slots()) {
    if (slot < job->slots.size()) job->slots[slot].released = true;
  }
}

void PlaceNowhere(BindJob* job) {
  if (job->slots.size() < job->fact->slots()) job->slots.resize(job->fact->slots());
  job->groups.clear();
  job->placed = true;
}

}  // namespace fluxqueue::binder
