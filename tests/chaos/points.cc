#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <absl/strings/str_join.h>
#include <fmt/format.h>
#include <signal.h>

#include "libs/base/status_macros.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

constexpr std::array kServices = {"admission", "queue", "matcher", "binder", "cleanup"};
constexpr std::array kReplicas = {1, 2};
// Not at the first step of all, which is another one.
constexpr int kTimes = 3;
constexpr std::chrono::seconds kMostForAPoint{20};

std::string ProcessName(const std::string& service, int replica) {
  return fmt::format("{}-{}", service, replica);
}

std::vector<std::string> WordsFor(const std::string& point) {
  return {"env", fmt::format("FLUXQUEUE_DIE_AT={}:{}", point, kTimes)};
}

// Each replica of each service ends when it comes to the point (libs/base/failure_point.h).
Deed Armed(const std::string& point) {
  return [=](Site& site) {
    absl::Status first;
    for (const char* service : kServices) {
      for (const int replica : kReplicas) {
        first.Update(Ended(ProcessName(service, replica))(site));
        first.Update(site.system().LaunchService(service, replica, WordsFor(point)));
      }
    }
    return first;
  };
}

// One that has come to the point and ended is started again, without one; those that are left
// behind in the end, too. `reached_by`: services of which a replica must have come there.
absl::Status Disarm(Site& site, std::set<std::string> reached_by) {
  std::set<std::pair<std::string, int>> armed;
  for (const char* service : kServices) {
    for (const int replica : kReplicas) armed.insert({service, replica});
  }
  absl::Status first;
  const auto relaunch = [&](const auto& process) {
    first.Update(Ended(ProcessName(process.first, process.second))(site));
    first.Update(site.system().LaunchService(process.first, process.second));
    return true;
  };
  const auto reached = [&](const auto& process) {
    if (!site.system().ProcessOf(ProcessName(process.first, process.second)).empty()) return false;
    reached_by.erase(process.first);
    return relaunch(process);
  };
  first.Update(site.system().WaitFor(
      [&] {
        std::erase_if(armed, reached);
        return reached_by.empty();
      },
      kMostForAPoint,
      [&] { return "to come to the point: " + absl::StrJoin(reached_by, ", "); }));
  std::erase_if(armed, relaunch);
  return first;
}

Fault Of(const std::string& name,
         const std::string& point,
         const std::set<std::string>& reached_by) {
  std::vector<std::string> targets;
  for (const char* service : kServices) {
    for (const int replica : kReplicas) targets.push_back(ProcessName(service, replica));
  }
  return {
      .name = name, .targets = std::move(targets), .strike = Armed(point), .heal = [=](Site& site) {
        return Disarm(site, reached_by);
      }};
}

}  // namespace

std::vector<Fault> PointFaults() {
  const std::set<std::string> all(kServices.begin(), kServices.end());
  return {Of("services die before a commit", "commit.before", all),
          Of("services die after a commit", "commit.after", all),
          Of("services die before they publish", "publish.before", all),
          Of("services die after they published", "publish.after", all),
          Of("services die before a request", "request.before", {"queue", "binder"}),
          Of("services die after a request", "request.after", {"queue", "binder"})};
}

}  // namespace fluxqueue::chaos
