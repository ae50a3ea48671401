#include <fstream>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/topics.h"
#include "libs/testing/mini_kafka.h"
#include "tests/chaos/checks.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

// A service that runs makes it again.
absl::Status DeletePoolTopic(Site& site) {
  std::string bootstrap;
  std::ifstream(site.system().folder() + "/kafka/bootstrap") >> bootstrap;
  ASSIGN_OR_RETURN(const auto admin, kafka::Admin::Create(bootstrap));
  return admin->DeleteTopic(kafka::TopicNames().pool);
}

absl::Status LoseTails(Site& site) {
  for (const std::string& topic : {kafka::TopicNames().pool, kafka::TopicNames().jobs}) {
    testing::LoseTails(site.system().folder() + "/kafka", topic);
  }
  return absl::OkStatus();
}

absl::Status LoseData(Site& site) {
  return site.system().LosePart("kafka");
}

absl::Status FillDisk(Site& site) {
  return site.FillDisk("kafka");
}

absl::Status EmptyDisk(Site& site) {
  return site.EmptyDisk("kafka");
}

}  // namespace

std::vector<Fault> KafkaFaults() {
  return {
      {.name = "kafka is killed",
       .targets = {"kafka"},
       .strike = Killed("kafka/kafka"),
       .heal = Started("kafka"),
       .recovery = kRejoin},
      {.name = "kafka stands still",
       .targets = {"kafka"},
       .strike = Stopped("kafka/kafka"),
       .heal = Continued("kafka/kafka"),
       .held = true,
       .recovery = kRejoin},
      // A broker whose only disk is full ends.
      {.name = "kafka's disk is full",
       .targets = {"kafka"},
       .strike = FillDisk,
       .heal = Each({EmptyDisk, Started("kafka")}),
       .held = true,
       .recovery = kRejoin,
       .needs_disks = true},
      {.name = "kafka has lost its last records",
       .targets = {"kafka"},
       .strike = Each({Killed("kafka/kafka"), LoseTails}),
       .heal = Started("kafka"),
       .loses_log = true,
       .recovery = kRejoin},
      {.name = "the pool's topic is deleted",
       .targets = {"kafka"},
       .strike = DeletePoolTopic,
       .heal = Nothing,
       .loses_log = true,
       .recovery = kRejoin},
      // The matchers had not read all of it.
      {.name = "kafka has lost its data",
       .targets = {"kafka", "matcher-1", "matcher-2"},
       .strike = Each({Killed("matcher-1"), Killed("matcher-2")}),
       .heal = Each({LoseData, Started("kafka"), Launched("matcher", 1), Launched("matcher", 2)}),
       .held = true,
       .loses_log = true,
       .recovery = kRejoin},
  };
}

}  // namespace fluxqueue::chaos
