// The topics, how each is configured, and which partition a job's facts go to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fluxqueue::kafka {

inline constexpr int kPoolPartitions = 12;
// Never changes: a job's facts must stay in one partition.
inline constexpr int kJobsPartitions = 12;
// The largest record value; the topics and the producers are configured with room for headers on
// top.
inline constexpr size_t kMaxValueBytes = size_t{4} * 1024 * 1024;

// Names can be changed so that several systems (and tests) can share one Kafka.
struct TopicNames {
  std::string pool = "fluxqueue.pool";
  std::string jobs = "fluxqueue.jobs";
  std::string dead_letter = "fluxqueue.dead-letter";
};

struct TopicSpec {
  std::string name;
  int partitions = 1;
  std::map<std::string, std::string> config;
};

// The three topics as architecture.md has them: LogAppendTime, kept for 30 days.
std::vector<TopicSpec> TopicSpecs(const TopicNames& names);

// crc32(job id) % partitions: the one function that everybody uses.
int JobPartition(std::string_view job_id, int partitions = kJobsPartitions);

}  // namespace fluxqueue::kafka
