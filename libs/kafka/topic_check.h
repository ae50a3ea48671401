// Whether a topic is as the services need it. Pure.
//
// What the settings mean is Kafka's: https://kafka.apache.org/documentation/#topicconfigs
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/kafka/topics.h"

namespace fluxqueue::kafka {

// A topic as the brokers have it.
struct TopicState {
  int partitions = 0;  // 0: there is no such topic
  int replicas = 0;    // of its first partition
  // Replicas of the partition that has the fewest. Not set: not known.
  std::optional<int> in_sync{};
  std::map<std::string, std::string> config{};
};

struct TopicFault {
  // The services cannot work with it. Otherwise they can, but messages or history may be lost.
  bool fatal = false;
  std::string text{};  // names the topic, the setting, its value, and what it must be
};

// Settings that `state` lacks are not judged.
std::vector<TopicFault> JudgeTopic(const TopicSpec& spec, const TopicState& state);

}  // namespace fluxqueue::kafka
