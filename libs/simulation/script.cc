#include "libs/simulation/script.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fluxqueue::simulation {

TraceScript::TraceScript(const Workload& workload, const Machine& machine, const Setting& setting)
    : workload_(workload),
      setting_(setting),
      submissions_(machine, std::max<size_t>(setting.queues.size(), 1)) {
  std::vector<events::v1::Envelope> messages = Beginning(machine, setting);
  beginning_.assign(std::make_move_iterator(messages.begin()),
                    std::make_move_iterator(messages.end()));
}

std::optional<Millis> TraceScript::NextTime() const {
  if (!beginning_.empty()) return kBeginning;
  if (next_ == workload_.jobs.size()) return std::nullopt;
  return kFirstSubmit + SubmitTime(workload_.jobs[next_], setting_.arrival_scale);
}

events::v1::Envelope TraceScript::Take() {
  if (!beginning_.empty()) {
    events::v1::Envelope message = std::move(beginning_.front());
    beginning_.pop_front();
    return message;
  }
  const Millis now = *NextTime();
  const trace::TraceJob& job = workload_.jobs[next_++];
  return submissions_.Make(job, Estimate(job, setting_, &unknown_estimates_), now);
}

std::optional<Millis> TraceScript::RunTimeOf(size_t job) const {
  return RunTime(workload_.jobs[job]);
}

}  // namespace fluxqueue::simulation
