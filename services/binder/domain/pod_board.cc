#include "services/binder/domain/pod_board.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "libs/base/text.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/resource_version.h"
#include "libs/kubernetes/slot_proof.h"

namespace fluxqueue::binder {
namespace {

PodFacts::Phase PhaseOf(const std::string& phase) {
  if (phase == "Succeeded") return PodFacts::Phase::kSucceeded;
  if (phase == "Failed") return PodFacts::Phase::kFailed;
  return PodFacts::Phase::kLive;
}

std::optional<kubernetes::SlotName> SlotOf(const kubernetes::Pod& pod) {
  // hint: believed with a proof alone.
  absl::StatusOr<kubernetes::SlotName> slot =
      kubernetes::ParseSlotName(pod.meta.Annotation(kubernetes::kAllocationAnnotation));
  if (!slot.ok()) return std::nullopt;
  return *slot;
}

std::string ProofOf(const kubernetes::Pod& pod) {
  // hint: a MAC, which is checked before it is believed.
  const std::string& proof = pod.meta.Annotation(kubernetes::kProofAnnotation);
  return proof.size() <= kubernetes::kProofBytes ? proof : std::string();
}

// Conditions and reasons by which Kubernetes says that the pod itself is not to blame.
std::string WhyPutOut(const kubernetes::PodStatus& status) {
  const bool turned_away =
      status.phase == "Failed" &&
      (status.reason.starts_with("OutOf") || status.reason == "NodeAffinity" ||
       status.reason == "UnexpectedAdmissionError" || status.reason == "Evicted");
  if (!turned_away && !status.disruption_target) return "";
  return status.reason.empty() ? std::string(kubernetes::kDisruptionTarget)
                               : Cut(status.reason, kMostReasonBytes);
}

}  // namespace

std::optional<PodFacts> ToFacts(const kubernetes::Pod& pod) {
  const std::optional<uint64_t> version = kubernetes::VersionNumber(pod.meta.resource_version);
  if (!version.has_value() || pod.meta.uid.empty()) return std::nullopt;
  PodFacts facts;
  facts.uid = pod.meta.uid;
  facts.job_id = kubernetes::JobIdOf(pod);
  facts.space = pod.meta.namespace_name;
  facts.name = pod.meta.name;
  facts.resource_version = *version;
  facts.node = pod.spec.node_name;
  facts.index = pod.Index().value_or(-1);
  facts.phase = PhaseOf(pod.status.phase);
  facts.deleting = pod.meta.deleted_ms != 0;
  facts.direct = pod.spec.scheduler_name == kubernetes::kSchedulerName;
  facts.gated = std::find(pod.spec.gates.begin(), pod.spec.gates.end(), kubernetes::kGate) !=
                pod.spec.gates.end();
  facts.slot = SlotOf(pod);
  facts.proof = ProofOf(pod);
  facts.put_out = WhyPutOut(pod.status);
  if (facts.Waiting()) facts.waits_because = Cut(pod.status.waits_because, kMostReasonBytes);
  if (!facts.Ended() && !facts.Bound()) facts.requests = kubernetes::EffectiveRequests(pod.spec);
  return facts;
}

void PodBoard::NoteUnschedulable(const PodFacts& pod) {
  if (pod.waits_because == kubernetes::kUnschedulable) {
    unschedulable_.insert(pod.uid);
  } else {
    unschedulable_.erase(pod.uid);
  }
}

void PodBoard::EnterHistory(uint64_t history) {
  if (history <= history_) return;
  history_ = history;
  gone_.clear();
}

bool PodBoard::See(PodFacts pod) {
  if (KnownGone(pod.uid, pod.job_id)) return false;
  const auto found = pods_.find(pod.uid);
  if (pod.history == 0) pod.history = found == pods_.end() ? history_ : found->second.history;
  if (found != pods_.end()) {
    const PodFacts& known = found->second;
    if (std::tie(pod.history, pod.resource_version) <=
        std::tie(known.history, known.resource_version)) {
      return false;
    }
    NoteUnschedulable(pod);
    pod.job_id = found->second.job_id;
    checked_.erase(pod.uid);
    found->second = std::move(pod);
    return true;
  }
  std::vector<const PodFacts*>& of_job = by_job_[pod.job_id];
  of_job.push_back(nullptr);  // what may fail comes first
  std::string uid = pod.uid;
  of_job.back() = &pods_.emplace(std::move(uid), std::move(pod)).first->second;
  NoteUnschedulable(*of_job.back());
  return true;
}

void PodBoard::Gone(const std::string& uid, const std::string& job_id, bool remember) {
  const auto pod = pods_.find(uid);
  const bool here = pod != pods_.end();
  unschedulable_.erase(uid);
  if (remember) gone_[job_id].emplace(uid, here ? std::move(pod->second.put_out) : "");
  if (!here) return;
  checked_.erase(uid);
  const auto of_job = by_job_.find(pod->second.job_id);
  std::erase(of_job->second, &pod->second);
  if (of_job->second.empty()) by_job_.erase(of_job);
  pods_.erase(pod);
}

void PodBoard::NoteBound(const std::string& uid, const std::string& node) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.Bound()) return;
  pod->second.node = node;
  pod->second.noted = true;
  pod->second.waits_because.clear();
  NoteUnschedulable(pod->second);
}

void PodBoard::ForgetNote(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || !std::exchange(pod->second.noted, false)) return;
  pod->second.node.clear();
}

std::vector<PodFacts> PodBoard::Take(const std::string& job_id) {
  std::vector<PodFacts> pods;
  const auto of_job = by_job_.find(job_id);
  if (of_job == by_job_.end()) return pods;
  pods.reserve(of_job->second.size());
  for (const PodFacts* known : of_job->second) {
    if (known == nullptr) continue;
    checked_.erase(known->uid);
    unschedulable_.erase(known->uid);
    pods.push_back(std::move(pods_.extract(known->uid).mapped()));
  }
  by_job_.erase(of_job);
  return pods;
}

bool PodBoard::RemembersMore(const std::string& job_id) const {
  const auto found = gone_.find(job_id);
  return found == gone_.end() || found->second.size() < kMostGone;
}

const PodFacts* PodBoard::Find(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

bool PodBoard::KnownGone(const std::string& uid, const std::string& job_id) const {
  const auto found = gone_.find(job_id);
  return found != gone_.end() && found->second.contains(uid);
}

const std::string& PodBoard::WhyPutOut(const std::string& uid, const std::string& job_id) const {
  return gone_.at(job_id).at(uid);
}

bool PodBoard::Proves(const PodFacts& pod, const std::string& job_id) {
  const auto [checked, first] = checked_.try_emplace(pod.uid);
  if (first || checked->second.first != job_id) {
    PodFacts as = pod;
    as.job_id = job_id;
    checked->second = {job_id, check_(as)};
  }
  return checked->second.second;
}

std::vector<const PodFacts*> PodBoard::OfJob(const std::string& job_id,
                                             std::string_view space) const {
  std::vector<const PodFacts*> pods;
  const auto found = by_job_.find(job_id);
  if (found == by_job_.end()) return pods;
  pods.reserve(found->second.size());
  for (const PodFacts* pod : found->second) {
    if (pod != nullptr && pod->space == space) pods.push_back(pod);
  }
  std::sort(pods.begin(), pods.end(), [](const PodFacts* a, const PodFacts* b) {
    return std::tie(a->name, a->uid) < std::tie(b->name, b->uid);
  });
  return pods;
}

}  // namespace fluxqueue::binder
