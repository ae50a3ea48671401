#include <array>

#include <fmt/format.h>
#include <signal.h>

#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

constexpr std::array kPipeline = {"admission", "queue", "matcher", "binder", "cleanup"};
// Nothing is bound by them.
constexpr std::array kBeside = {"visibility", "graph"};

Deed ToldToEnd(const std::string& process) {
  return [=](Site& site) { return site.system().End(process, SIGTERM); };
}

// Of each fault the short form has one replica.
void AddReplica(const std::string& service, int replica, std::vector<Fault>* faults) {
  const std::string process = fmt::format("{}-{}", service, replica);
  faults->push_back({.name = process + " is killed",
                     .targets = {process},
                     .strike = Killed(process),
                     .heal = Launched(service, replica),
                     .only_in_long_form = replica == 2});
  faults->push_back({.name = process + " stands still",
                     .targets = {process},
                     .strike = Stopped(process),
                     .heal = Continued(process),
                     .held = true,
                     .only_in_long_form = replica == 1});
  faults->push_back({.name = process + " is told to end",
                     .targets = {process},
                     .strike = ToldToEnd(process),
                     .heal = Launched(service, replica),
                     .only_in_long_form = replica == 2});
}

// Of admission: what is made meanwhile is refused, its webhook being down.
Fault Away(const std::string& service) {
  return {.name = service + " is away",
          .targets = {service + "-1", service + "-2"},
          .strike = Each({Killed(service + "-1"), Killed(service + "-2")}),
          .heal = Each({Launched(service, 1), Launched(service, 2)}),
          .held = true};
}

}  // namespace

std::vector<Fault> ServiceFaults() {
  std::vector<Fault> faults;
  for (const char* service : kPipeline) {
    AddReplica(service, 1, &faults);
    AddReplica(service, 2, &faults);
    faults.push_back(Away(service));
  }
  for (const char* service : kBeside) AddReplica(service, 1, &faults);
  return faults;
}

}  // namespace fluxqueue::chaos
