#include "services/binder/adapters/pod_teller.h"

#include <condition_variable>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/resource.h"

namespace fluxqueue::binder {

using nlohmann::json;

namespace {

// After a write that was refused, or not answered.
constexpr Millis kPause{1000};

}  // namespace

void PodTeller::Tell(std::vector<PodCondition> conditions) {
  left_ += conditions.size();
  for (PodCondition& condition : conditions) waiting_.Post(std::move(condition));
}

void PodTeller::Clear() {
  left_ -= waiting_.Take().size();
}

absl::Status PodTeller::Run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (const auto condition = waiting_.TakeOne(stop)) {
    const Millis pause = Write(*condition) ? Millis{1000 / kPerSecond} : kPause;
    --left_;
    stopped.wait_for(lock, stop, pause, [] { return false; });
  }
  return absl::OkStatus();
}

bool PodTeller::Write(const PodCondition& condition) {
  const absl::Status status = cluster_
                                  .Patch(kubernetes::kPods,
                                         condition.space,
                                         condition.name,
                                         kubernetes::PatchType::kStrategic,
                                         WaitingPatch(condition),
                                         "status")
                                  .status();
  // It is gone, another one has its name, or it is bound by now: the API server's answer is one.
  if (status.ok() || absl::IsAborted(status) || IsPoison(status)) return true;
  LogWarning("pod not told why it waits",
             {{"namespace", condition.space}, {"pod", condition.name}, {"error", Message(status)}});
  return false;
}

std::string WaitingPatch(const PodCondition& condition) {
  return kubernetes::JsonText(
      {{"metadata", {{"uid", condition.uid}}},
       {"status",
        {{"conditions",
          json::array({{{"type", kubernetes::kPodScheduled},
                        {"status", "False"},
                        {"reason", condition.reason},
                        {"message", condition.message},
                        {"lastTransitionTime", FormatTime(Millis{condition.since_ms})}}})}}}});
}

}  // namespace fluxqueue::binder
