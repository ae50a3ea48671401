#include "libs/queue_core/dependencies.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue::queue_core {

using scheduling::Fulfilment;

namespace {

std::string Never(const Dependency& dependency, bool succeeded) {
  return fmt::format("{}:{} can never come true: the job has ended {}",
                     scheduling::Name(dependency.condition),
                     dependency.job,
                     succeeded ? "well" : "without success");
}

}  // namespace

Resolution ResolveDependencies(const JobBook& book, const Job& job) {
  const std::string space = job.workload->namespace_() + "/";
  Resolution resolution;
  for (Dependency dependency : job.depends_on) {
    const Entry* live = book.Find(dependency.job);
    if (live == nullptr) live = book.FindByName(space + dependency.job);
    if (live != nullptr) {
      dependency.job = live->job.id;
      resolution.unmet.push_back(std::move(dependency));
      continue;
    }
    const scheduling::Ending* ending = book.endings().ById(dependency.job);
    if (ending == nullptr) ending = book.endings().ByName(space + dependency.job);
    if (ending == nullptr) {
      resolution.unmet.push_back(std::move(dependency));
    } else if (Judge(dependency.condition, ending->succeeded) == Fulfilment::kNever) {
      return {.unmet = {}, .never = Never(dependency, ending->succeeded)};
    }
  }
  return resolution;
}

Resolution SettleDependencies(const Job& job, const std::string& ended, bool succeeded) {
  Resolution resolution;
  for (const Dependency& dependency : job.depends_on) {
    const bool is_settled = resolution.never.empty() && dependency.job == ended;
    if (is_settled && Judge(dependency.condition, succeeded) == Fulfilment::kMet) continue;
    if (is_settled) resolution.never = Never(dependency, succeeded);
    resolution.unmet.push_back(dependency);
  }
  return resolution;
}

bool WaitsForItself(const JobBook& book, const Job& job) {
  // Itself by its own name: it was not there yet when its names were looked up.
  const auto names_itself = [&job](const Dependency& dependency) {
    return dependency.job == job.id || dependency.job == job.workload->name();
  };
  if (std::any_of(job.depends_on.begin(), job.depends_on.end(), names_itself)) return true;
  // Only what somebody waits for can close a cycle.
  if (job.depends_on.empty() || book.DependentsOf(job.id).empty()) return false;
  const auto targets = [&book](const std::string& id) {
    std::vector<std::string> ids;
    const Entry* at = book.Find(id);
    if (at == nullptr) return ids;
    for (const Dependency& dependency : at->job.depends_on) ids.push_back(dependency.job);
    return ids;
  };
  return std::any_of(
      job.depends_on.begin(), job.depends_on.end(), [&](const Dependency& dependency) {
        return scheduling::Reaches(dependency.job, job.id, targets);
      });
}

std::string DependencySentence(const View& view, const Job& job) {
  const Dependency& first = job.depends_on.front();
  const Entry* live = view.book.Find(first.job);
  std::string sentence =
      fmt::format("waits for {}:{}", scheduling::Name(first.condition), first.job);
  if (live == nullptr) {
    sentence += ", of which nothing is known here";
  } else if (view.MayKnow(job, live->job)) {
    sentence = fmt::format("waits for {}:{} ({}), which is {}",
                           scheduling::Name(first.condition),
                           live->job.workload->name(),
                           first.job,
                           model::Name(live->job.state));
  }
  const size_t more = job.depends_on.size() - 1;
  return more == 0 ? sentence : fmt::format("{}, and for {} more", sentence, more);
}

}  // namespace fluxqueue::queue_core
