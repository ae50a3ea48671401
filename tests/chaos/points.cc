#include <array>
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

// `reached_by`: services that must have come to the point.
Deed Disarmed(const std::string& point, std::vector<std::string> reached_by) {
  return [=, reached_by = std::move(reached_by)](Site& site) {
    std::vector<std::string> alive;
    for (const std::string& service : reached_by) {
      const bool both = !site.system().ProcessOf(ProcessName(service, 1)).empty() &&
                        !site.system().ProcessOf(ProcessName(service, 2)).empty();
      if (both) alive.push_back(service);
    }
    for (const char* service : kServices) {
      for (const int replica : kReplicas) {
        const std::string process = ProcessName(service, replica);
        if (!site.system().ProcessOf(process).empty()) {
          RETURN_IF_ERROR(site.system().End(process, SIGKILL));
        }
        RETURN_IF_ERROR(site.system().LaunchService(service, replica));
      }
    }
    if (alive.empty()) return absl::OkStatus();
    return Unavailable("did not come to {}: {}", point, absl::StrJoin(alive, ", "));
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
          .heal = Disarmed(point, std::move(reached_by)),
          .held = true};
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
