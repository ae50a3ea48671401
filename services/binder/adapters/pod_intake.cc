#include "services/binder/adapters/pod_intake.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::binder {
namespace {

delivery::ObjectRef RefOf(const PodFacts& pod) {
  return {.kind = "Pod",
          .space = pod.space,
          .name = pod.name,
          .uid = pod.uid,
          .version = fmt::format("{}", pod.resource_version)};
}

}  // namespace

std::optional<std::chrono::steady_clock::time_point> PodIntake::WakeAt() const {
  if (left_out_.empty()) return std::nullopt;
  return look_at_;
}

absl::Status PodIntake::Take() {
  LookAgain();
  const size_t room = kMostTaken - std::min(taken_.size(), kMostTaken);
  std::ranges::move(inbox_.Take(room), std::back_inserter(taken_));
  one_.clear();
  while (!taken_.empty()) {
    const bool careful = quarantine_.careful();
    News news = std::move(taken_.front());
    taken_.pop_front();
    RETURN_IF_ERROR(Hand(std::move(news)));
    if (careful) break;
    one_.clear();
  }
  return absl::OkStatus();
}

absl::Status PodIntake::Hand(News news) {
  if (auto* pod = std::get_if<kubernetes::Seen<PodFacts>>(&news)) {
    // What was set aside has it already.
    if (pod->history != 0) pod->object.history = pod->history;
    return HandPod(std::move(pod->object));
  }
  if (auto* result = std::get_if<CallResult>(&news)) return HandAnswer(std::move(*result));
  if (const auto* gone = std::get_if<kubernetes::Gone>(&news)) {
    left_out_.erase(gone->uid);
    const delivery::ObjectRef ref{"Pod", gone->space, gone->name, gone->uid, delivery::kDeleted};
    RETURN_IF_ERROR(quarantine_.Admit(ref).status());
    planner_.PodGone(gone->uid);
  } else if (const auto* unread = std::get_if<kubernetes::Unread>(&news)) {
    quarantine_.HoldUnread({"Pod", unread->space, unread->name, unread->uid, unread->version},
                           unread->why);
  } else {
    listed_ = true;
  }
  return absl::OkStatus();
}

absl::Status PodIntake::HandPod(PodFacts pod) {
  ASSIGN_OR_RETURN(const bool admitted, quarantine_.Admit(RefOf(pod)));
  if (!admitted) {
    Remember(std::move(pod));
    return absl::OkStatus();
  }
  left_out_.erase(pod.uid);
  one_ = pod.uid;
  try {
    planner_.PodSeen(pod);
  } catch (const std::exception& error) {
    quarantine_.Condemn(fmt::format("it threw: {}", error.what()));
    Remember(std::move(pod));
  }
  return absl::OkStatus();
}

absl::Status PodIntake::HandAnswer(CallResult result) {
  if (result.pod.has_value()) {
    ASSIGN_OR_RETURN(const bool admitted, quarantine_.Admit(RefOf(*result.pod)));
    one_ = result.pod->uid;
    if (!admitted) result.LoseSight();
  }
  planner_.Answer(std::move(result));
  return absl::OkStatus();
}

absl::Status PodIntake::Plan(const std::function<void()>& plan) {
  try {
    plan();
  } catch (const std::exception& error) {
    return Blame(error.what());
  }
  return quarantine_.Handled();
}

absl::Status PodIntake::Blame(const std::string& what) {
  const std::string job = planner_.at_job();
  std::vector<PodFacts> pods = planner_.SetAside(job);
  if (pods.empty()) return Internal("planning job '{}' threw: {}", job, what);
  const std::string one = std::exchange(one_, {});
  auto blamed = std::ranges::find(pods, one, &PodFacts::uid);
  if (blamed == pods.end() && pods.size() == 1) blamed = pods.begin();
  if (blamed == pods.end()) {
    quarantine_.Rollback();
    quarantine_.OneByOne(pods.size());
    for (PodFacts& pod : pods) taken_.push_front(kubernetes::Seen<PodFacts>{std::move(pod)});
  } else {
    PodFacts pod = std::move(*blamed);
    pods.erase(blamed);
    for (PodFacts& other : pods) planner_.PodSeen(std::move(other));
    LeaveOut(std::move(pod), one, what);
  }
  return Unavailable("planning job '{}' with one of its pods threw: {}", job, what);
}

void PodIntake::LeaveOut(PodFacts pod, const std::string& one, const std::string& what) {
  const std::string why = fmt::format("it threw: {}", what);
  if (pod.uid == one && quarantine_.admitted() == 1) {
    quarantine_.Condemn(why);
  } else {
    quarantine_.Rollback();
    quarantine_.HoldUnread(RefOf(pod), why);
  }
  Remember(std::move(pod));
}

void PodIntake::Remember(PodFacts pod) {
  if (left_out_.size() == delivery::Quarantine::kMost && !left_out_.contains(pod.uid)) return;
  if (left_out_.empty()) look_at_ = clock_.Monotonic() + kLookAgain;
  std::string uid = pod.uid;
  left_out_.insert_or_assign(std::move(uid), std::move(pod));
}

void PodIntake::LookAgain() {
  if (left_out_.empty() || clock_.Monotonic() < look_at_) return;
  for (auto& [uid, pod] : std::exchange(left_out_, {})) {
    taken_.push_back(kubernetes::Seen<PodFacts>{std::move(pod)});
  }
}

}  // namespace fluxqueue::binder
