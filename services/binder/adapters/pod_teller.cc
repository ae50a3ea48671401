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

void PodTeller::Tell(std::vector<PodCondition> conditions) {
  for (PodCondition& condition : conditions) {
    if (!waiting_.TryPost(std::move(condition), 1)) return;
  }
}

absl::Status PodTeller::Run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (const auto condition = waiting_.TakeOne(stop)) {
    Write(*condition);
    stopped.wait_for(lock, stop, Millis{1000 / kPerSecond}, [] { return false; });
  }
  return absl::OkStatus();
}

void PodTeller::Write(const PodCondition& condition) {
  const absl::Status status = client_
                                  .Patch(kubernetes::kPods,
                                         condition.space,
                                         condition.name,
                                         kubernetes::PatchType::kStrategic,
                                         WaitingPatch(condition),
                                         "status")
                                  .status();
  if (status.ok() || !IsTransient(status)) return;
  LogWarning("pod not told why it waits",
             {{"namespace", condition.space}, {"pod", condition.name}, {"error", Message(status)}});
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
