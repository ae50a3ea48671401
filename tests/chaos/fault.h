// The faults that chaos knows: a row each (services.cc, kafka.cc, postgres.cc, kubernetes.cc,
// clocks.cc, points.cc). How to add one: README.md.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/chaos/site.h"

#include "absl/status/status.h"

namespace fluxqueue::chaos {

// Done to a system. Returns when it is done, not when the system has noticed.
using Deed = std::function<absl::Status(Site&)>;

// The process ("queue-1", "kafka/kafka") dies; stands still; goes on.
Deed Killed(const std::string& process);
// As Killed; it may have ended before.
Deed Ended(const std::string& process);
Deed Stopped(const std::string& process);
Deed Continued(const std::string& process);
// A part ("kafka", "postgres", "cluster") is started, with its data.
Deed Started(const std::string& part);
// What Kubernetes does with a container that has ended: the same again.
Deed Launched(const std::string& service, int replica);
absl::Status Nothing(Site& site);
// All of them, one after the other; the first failure.
Deed Each(std::vector<Deed> deeds);

struct Fault {
  std::string name{};                  // "queue-1 is killed"
  std::vector<std::string> targets{};  // what it strikes; no two faults strike one of them at once
  Deed strike{};
  Deed heal{};
  // There is time between the two; else one follows the other.
  bool held = false;
  // Pods may be lost by it, or Kubernetes may not know that it has made them: others are bound in
  // their place.
  bool loses_pods = false;
  // What was said and acknowledged may be in no log after it: there is nothing to be replayed.
  bool loses_log = false;
  // So late at most a Job that was made after the strike is bound, once it has healed. Others may
  // use the machine, too: what it really was, the table tells.
  std::chrono::seconds recovery{30};
  // The other replica's is: five minutes are what the short form has.
  bool only_in_long_form = false;
  // It fills a disk (Site::has_disks).
  bool needs_disks = false;
};

std::vector<Fault> ServiceFaults();
std::vector<Fault> KafkaFaults();
std::vector<Fault> PostgresFaults();
std::vector<Fault> KubernetesFaults();
std::vector<Fault> ClockFaults();
std::vector<Fault> PointFaults();
// All of these, and one that does nothing, for comparison.
std::vector<Fault> AllFaults();

}  // namespace fluxqueue::chaos
