#include <array>

#include <fmt/format.h>
#include <signal.h>

#include "libs/base/status_macros.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

constexpr std::array kPipeline = {"admission", "queue", "matcher", "binder", "cleanup"};
// Nothing is bound by them.
constexpr std::array kBeside = {"visibility", "graph"};
constexpr int kReplicas = 2;

// What Kubernetes does with a container that has ended: the same again.
Deed Launch(const std::string& service, int replica) {
  return [=](testing::MiniSystem& system) { return system.LaunchService(service, replica); };
}

Deed Ends(const std::string& process, int signal) {
  return [=](testing::MiniSystem& system) { return system.End(process, signal); };
}

Deed Signalled(const std::string& process, int signal) {
  return [=](testing::MiniSystem& system) { return system.Signal(process, signal); };
}

void Add(const std::string& service, int replica, std::vector<Fault>* faults) {
  const std::string process = fmt::format("{}-{}", service, replica);
  faults->push_back({.name = process + " is killed",
                     .target = process,
                     .strike = Ends(process, SIGKILL),
                     .heal = Launch(service, replica)});
  faults->push_back({.name = process + " stands still",
                     .target = process,
                     .strike = Signalled(process, SIGSTOP),
                     .heal = Signalled(process, SIGCONT),
                     .held = true});
  faults->push_back({.name = process + " is told to end",
                     .target = process,
                     .strike = Ends(process, SIGTERM),
                     .heal = Launch(service, replica)});
}

}  // namespace

std::vector<Fault> ServiceFaults() {
  std::vector<Fault> faults;
  for (int replica = 1; replica <= kReplicas; ++replica) {
    for (const char* service : kPipeline) Add(service, replica, &faults);
  }
  for (const char* service : kBeside) Add(service, 1, &faults);
  return faults;
}

}  // namespace fluxqueue::chaos
