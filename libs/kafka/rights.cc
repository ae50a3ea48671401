#include "libs/kafka/rights.h"

#include <algorithm>

namespace fluxqueue::kafka {

std::vector<Right> Rights(const TopicNames& names) {
  // DescribeConfigs: each checks the topics it uses (topic_check.h). The queue makes what is
  // missing.
  return {
      {"admission", "topic", names.pool, {"DescribeConfigs", "Write"}},
      {"admission", "topic", names.dead_letter, {"DescribeConfigs", "Write"}},
      {"queue", "topic", names.pool, {"Create", "DescribeConfigs", "Read", "Write"}},
      {"queue", "topic", names.jobs, {"Create", "DescribeConfigs", "Write"}},
      {"queue", "topic", names.dead_letter, {"Create", "DescribeConfigs", "Write"}},
      {"queue", "group", "fluxqueue.queue", {"Read"}},
      {"matcher", "topic", names.pool, {"DescribeConfigs", "Read", "Write"}},
      {"matcher", "topic", names.dead_letter, {"DescribeConfigs", "Write"}},
      {"matcher", "group", "fluxqueue.matcher", {"Read"}},
      {"binder", "topic", names.pool, {"DescribeConfigs", "Write"}},
      {"binder", "topic", names.jobs, {"DescribeConfigs", "Read"}},
      {"binder", "topic", names.dead_letter, {"DescribeConfigs", "Write"}},
      {"binder", "group", "fluxqueue.binder", {"Read"}},
      {"cleanup", "topic", names.pool, {"DescribeConfigs", "Write"}},
      {"cleanup", "topic", names.dead_letter, {"DescribeConfigs", "Write"}},
      // Reads all; "dead-letters retry" writes a message to its topic again.
      {"cli", "topic", names.pool, {"DescribeConfigs", "Read", "Write"}},
      {"cli", "topic", names.jobs, {"DescribeConfigs", "Read", "Write"}},
      {"cli", "topic", names.dead_letter, {"DescribeConfigs", "Read", "Write"}},
      // Of readers that join none (reader.h, tail.h): librdkafka asks for its coordinator all the
      // same.
      {"cli", "group", "fluxqueue.reader", {"Describe"}},
      {"cli", "group", "fluxqueue.tail", {"Describe"}},
  };
}

std::vector<TopicSpec> TopicSpecsOf(std::string_view service, const TopicNames& names) {
  std::vector<TopicSpec> specs = TopicSpecs(names);
  const std::vector<Right> rights = Rights(names);
  const auto is_listed = [&](const Right& right) { return right.account == service; };
  if (std::none_of(rights.begin(), rights.end(), is_listed)) return specs;
  std::erase_if(specs, [&](const TopicSpec& spec) {
    return std::none_of(rights.begin(), rights.end(), [&](const Right& right) {
      return is_listed(right) && right.resource == "topic" && right.name == spec.name;
    });
  });
  return specs;
}

}  // namespace fluxqueue::kafka
