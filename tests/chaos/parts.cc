#include <signal.h>

#include "libs/base/status_macros.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

using testing::MiniSystem;

absl::Status Nothing(MiniSystem& /*system*/) {
  return absl::OkStatus();
}

Deed Ends(const std::string& process) {
  return [=](MiniSystem& system) { return system.End(process, SIGKILL); };
}

Deed Signalled(const std::string& process, int signal) {
  return [=](MiniSystem& system) { return system.Signal(process, signal); };
}

Deed Started(const std::string& part) {
  return [=](MiniSystem& system) { return system.StartPart(part); };
}

}  // namespace

std::vector<Fault> PartFaults() {
  return {
      // What the others are to be compared with.
      {.name = "nothing", .target = "nothing", .strike = Nothing, .heal = Nothing, .held = true},
      {.name = "kafka is killed",
       .target = "kafka",
       .strike = Ends("kafka/kafka"),
       .heal = Started("kafka")},
      {.name = "kafka stands still",
       .target = "kafka",
       .strike = Signalled("kafka/kafka", SIGSTOP),
       .heal = Signalled("kafka/kafka", SIGCONT),
       .held = true},
      {.name = "postgres is killed",
       .target = "postgres",
       .strike = Ends("postgres/postgres"),
       .heal = Started("postgres")},
      {.name = "the API server is killed",
       .target = "api",
       .strike = Ends("cluster/kube-apiserver"),
       .heal = Started("cluster")},
      {.name = "the API server stands still",
       .target = "api",
       .strike = Signalled("cluster/kube-apiserver", SIGSTOP),
       .heal = Signalled("cluster/kube-apiserver", SIGCONT),
       .held = true},
      {.name = "etcd is killed",
       .target = "api",
       .strike = Ends("cluster/etcd"),
       .heal = Started("cluster")},
  };
}

}  // namespace fluxqueue::chaos
