// Who may do what in Kafka: the one list, for installations where each service has a principal of
// its own. deploy/docs/security.md shows it as a table (unit.kafka compares them).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/kafka/topics.h"

namespace fluxqueue::kafka {

// One ACL, in Kafka's own words.
struct Right {
  std::string_view account;   // "queue"; "cli" is the command line
  std::string_view resource;  // "topic", "group"
  std::string name;           // literal
  // Read and Write imply Describe.
  std::vector<std::string_view> operations;
};

std::vector<Right> Rights(const TopicNames& names);

// The topics that a service has to do with; all of them for one that is not in the list.
std::vector<TopicSpec> TopicSpecsOf(std::string_view service, const TopicNames& names);

}  // namespace fluxqueue::kafka
