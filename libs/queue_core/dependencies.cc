// Jobs that wait for the ends of others: libs/scheduling/dependencies.h has the rules.
#include <algorithm>
#include <utility>

#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using model::JobState;
using scheduling::Fulfilment;

namespace {

std::string Never(const Dependency& dependency, bool succeeded) {
  return fmt::format("{}:{} can never come true: the job has ended {}",
                     scheduling::Name(dependency.condition),
                     dependency.job,
                     succeeded ? "well" : "without success");
}

}  // namespace

std::string QueueCore::Impl::Resolve(Job& job) {
  const std::string space = job.workload->namespace_() + "/";
  std::vector<Dependency> unmet;
  for (Dependency& dependency : job.depends_on) {
    const Entry* live = book_.Find(dependency.job);
    if (live == nullptr) live = book_.FindByName(space + dependency.job);
    if (live != nullptr) {
      dependency.job = live->job.id;
      unmet.push_back(std::move(dependency));
      continue;
    }
    const scheduling::Ending* ending = book_.endings().ById(dependency.job);
    if (ending == nullptr) ending = book_.endings().ByName(space + dependency.job);
    if (ending == nullptr) {
      unmet.push_back(std::move(dependency));
    } else if (Judge(dependency.condition, ending->succeeded) == Fulfilment::kNever) {
      job.depends_on.clear();
      return Never(dependency, ending->succeeded);
    }
  }
  job.depends_on = std::move(unmet);
  return "";
}

void QueueCore::Impl::BindDependents(Entry* entry) {
  const std::string name = FullName(entry->job);
  for (Entry* dependent : book_.DependentsOf(name)) {
    for (Dependency& dependency : book_.Edit(dependent).depends_on) {
      if (dependency.job == entry->job.workload->name()) dependency.job = entry->job.id;
    }
    Place(dependent);
  }
}

bool QueueCore::Impl::WaitsForItself(const Entry& entry) {
  const Job& job = entry.job;
  // Itself by its own name: it was not there yet when its names were looked up.
  const auto names_itself = [&job](const Dependency& dependency) {
    return dependency.job == job.id || dependency.job == job.workload->name();
  };
  if (std::any_of(job.depends_on.begin(), job.depends_on.end(), names_itself)) return true;
  // Only what somebody waits for can close a cycle.
  if (job.depends_on.empty() || book_.DependentsOf(job.id).empty()) return false;
  const auto targets = [this](const std::string& id) {
    std::vector<std::string> ids;
    const Entry* at = book_.Find(id);
    if (at == nullptr) return ids;
    for (const Dependency& dependency : at->job.depends_on) ids.push_back(dependency.job);
    return ids;
  };
  return std::any_of(
      job.depends_on.begin(), job.depends_on.end(), [&](const Dependency& dependency) {
        return scheduling::Reaches(dependency.job, job.id, targets);
      });
}

void QueueCore::Impl::RefuseCycle(Entry* entry) {
  std::string message = fmt::format("fluxqueue.io/depends-on: {}, and so it would wait for itself",
                                    DependencySentence(entry->job));
  const bool pending = entry->job.state == JobState::kPending;
  End(entry,
      pending ? JobState::kRejected : JobState::kCancelled,
      reason::kDependencyCycle,
      std::move(message));
}

void QueueCore::Impl::SettleDependents() {
  // Whoever ends by this is appended.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const Ended ended = ended_[i];
    for (Entry* entry : book_.DependentsOf(ended.id)) {
      SettleDependent(entry, ended.id, ended.succeeded);
    }
  }
  ended_.clear();
}

void QueueCore::Impl::SettleDependent(Entry* entry, const std::string& ended, bool succeeded) {
  Job& job = book_.Edit(entry);
  for (auto it = job.depends_on.begin(); it != job.depends_on.end();) {
    if (it->job != ended) {
      ++it;
    } else if (Judge(it->condition, succeeded) == Fulfilment::kMet) {
      it = job.depends_on.erase(it);
    } else {
      std::string message = Never(*it, succeeded);
      CancelJob(entry, reason::kDependencyNeverSatisfied, std::move(message));
      return;
    }
  }
  if (model::kWaitingStates.Has(job.state) && !job.hold) {
    SetWaiting(job, reason::kQueued, "in line: what it waited for has ended");
    Say(entry);
  }
  Place(entry);
}

std::string QueueCore::Impl::DependencySentence(const Job& job) const {
  const Dependency& first = job.depends_on.front();
  const Entry* live = book_.Find(first.job);
  std::string sentence = live == nullptr
                             ? fmt::format("waits for {}:{}, of which nothing is known here",
                                           scheduling::Name(first.condition),
                                           first.job)
                             : fmt::format("waits for {}:{} ({}), which is {}",
                                           scheduling::Name(first.condition),
                                           live->job.workload->name(),
                                           first.job,
                                           model::Name(live->job.state));
  const size_t more = job.depends_on.size() - 1;
  return more == 0 ? sentence : fmt::format("{}, and for {} more", sentence, more);
}

}  // namespace fluxqueue::queue_core
