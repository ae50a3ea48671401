#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

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

// Every replica of every service ends when it comes to the point (libs/base/failure_point.h).
Deed Armed(const std::string& point) {
  return [=](Site& site) {
    for (const char* service : kServices) {
      for (const int replica : kReplicas) {
        RETURN_IF_ERROR(site.system().End(ProcessName(service, replica), SIGKILL));
        RETURN_IF_ERROR(site.system().LaunchService(
            service, replica, {"env", fmt::format("FLUXQUEUE_DIE_AT={}:{}", point, kTimes)}));
      }
    }
    return absl::OkStatus();
  };
}

bool HasEnded(Site& site, const std::string& service) {
  return std::ranges::any_of(kReplicas, [&](int replica) {
    return site.system().ProcessOf(ProcessName(service, replica)).empty();
  });
}

// Of the services that must have come to the point, a replica each has.
absl::Status AwaitReached(Site& site, const std::vector<std::string>& services) {
  const auto alive = [&](const std::string& service) { return !HasEnded(site, service); };
  return site.system().WaitFor([&] { return std::ranges::none_of(services, alive); },
                               kMostForAPoint,
                               [&] {
                                 std::vector<std::string> missing;
                                 std::ranges::copy_if(services, std::back_inserter(missing), alive);
                                 return "to come to the point: " + absl::StrJoin(missing, ", ");
                               });
}

Deed Disarmed(std::vector<std::string> reached_by) {
  return [reached_by = std::move(reached_by)](Site& site) {
    absl::Status first = AwaitReached(site, reached_by);
    for (const char* service : kServices) {
      for (const int replica : kReplicas) {
        first.Update(Ended(ProcessName(service, replica))(site));
        first.Update(site.system().LaunchService(service, replica));
      }
    }
    return first;
  };
}

Fault Of(const std::string& name, const std::string& point, std::vector<std::string> reached_by) {
  std::vector<std::string> targets;
  for (const char* service : kServices) {
    for (const int replica : kReplicas) targets.push_back(ProcessName(service, replica));
  }
  return {.name = name,
          .targets = std::move(targets),
          .strike = Armed(point),
          .heal = Disarmed(std::move(reached_by))};
}

}  // namespace

std::vector<Fault> PointFaults() {
  const std::vector<std::string> all(kServices.begin(), kServices.end());
  return {Of("services die before a commit", "commit.before", all),
          Of("services die after a commit", "commit.after", all),
          Of("services die before they publish", "publish.before", all),
          Of("services die after they published", "publish.after", all),
          Of("services die before a request", "request.before", {"queue", "binder"}),
          Of("services die after a request", "request.after", {"queue", "binder"})};
}

}  // namespace fluxqueue::chaos
