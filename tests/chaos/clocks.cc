#include <array>
#include <utility>

#include <fmt/format.h>

#include "tests/chaos/checks.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

constexpr std::array kServices = {"admission", "queue", "matcher", "binder", "cleanup"};
constexpr int kHour = 3600;
Deed LaunchedWithClock(const std::string& service, int shift) {
  return [=](Site& site) {
    return site.system().LaunchService(service, 1, Site::WordsForClock(shift));
  };
}

Deed KafkaWithClock(int shift) {
  return [=](Site& site) { return site.StartKafka(shift); };
}

// The first replica of each service; the second one has the right time.
Fault OfServices(const std::string& name, int shift) {
  std::vector<std::string> processes;
  std::vector<Deed> strike;
  std::vector<Deed> heal;
  for (const char* service : kServices) {
    const std::string process = fmt::format("{}-1", service);
    processes.push_back(process);
    strike.insert(strike.end(), {Killed(process), LaunchedWithClock(service, shift)});
    heal.insert(heal.end(), {Ended(process), Launched(service, 1)});
  }
  return {.name = name,
          .targets = std::move(processes),
          .strike = Each(std::move(strike)),
          .heal = Each(std::move(heal)),
          .held = true};
}

Fault OfKafka(const std::string& name, int shift) {
  return {.name = name,
          .targets = {"kafka"},
          .strike = Each({Killed("kafka/kafka"), KafkaWithClock(shift)}),
          .heal = Each({Ended("kafka/kafka"), Started("kafka")}),
          .held = true,
          .recovery = kRejoin};
}

}  // namespace

std::vector<Fault> ClockFaults() {
  return {OfServices("services' clocks are an hour ahead", kHour),
          OfServices("services' clocks are an hour behind", -kHour),
          OfKafka("kafka's clock is an hour ahead", kHour),
          OfKafka("kafka's clock is an hour behind", -kHour)};
}

}  // namespace fluxqueue::chaos
