#include "tests/chaos/fault.h"

#include <iterator>
#include <utility>

#include <signal.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::chaos {
namespace {

Deed Signalled(const std::string& process, int signal) {
  return [=](Site& site) { return site.system().Signal(process, signal); };
}

}  // namespace

absl::Status Nothing(Site& /*site*/) {
  return absl::OkStatus();
}

Deed Killed(const std::string& process) {
  return [=](Site& site) { return site.system().End(process, SIGKILL); };
}

Deed Ended(const std::string& process) {
  return [=](Site& site) {
    const bool runs = !site.system().ProcessOf(process).empty();
    return runs ? site.system().End(process, SIGKILL) : absl::OkStatus();
  };
}

Deed Stopped(const std::string& process) {
  return Signalled(process, SIGSTOP);
}

Deed Continued(const std::string& process) {
  return Signalled(process, SIGCONT);
}

Deed Started(const std::string& part) {
  return [=](Site& site) { return site.system().StartPart(part); };
}

Deed Launched(const std::string& service, int replica) {
  return [=](Site& site) { return site.system().LaunchService(service, replica); };
}

Deed Each(std::vector<Deed> deeds) {
  return [deeds = std::move(deeds)](Site& site) {
    absl::Status first;
    for (const Deed& deed : deeds) first.Update(deed(site));
    return first;
  };
}

std::vector<Fault> AllFaults() {
  std::vector<Fault> all = {{.name = "no fault",
                             .targets = {"nothing"},
                             .strike = Nothing,
                             .heal = Nothing,
                             .held = true}};
  for (const auto& faults : {ServiceFaults(),
                             KafkaFaults(),
                             PostgresFaults(),
                             KubernetesFaults(),
                             ClockFaults(),
                             PointFaults()}) {
    std::copy(faults.begin(), faults.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace fluxqueue::chaos
