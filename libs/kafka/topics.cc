#include "libs/kafka/topics.h"

#include <fmt/format.h>
#include <zlib.h>

#include "libs/base/check.h"

namespace fluxqueue::kafka {

std::vector<TopicSpec> TopicSpecs(const TopicNames& names) {
  const std::map<std::string, std::string> config = {
      // Decisions are made by the log's own time: no service's clock takes part.
      {"message.timestamp.type", "LogAppendTime"},
      {"retention.ms", fmt::format("{}", 30LL * 24 * 3600 * 1000)},
      {"max.message.bytes", fmt::format("{}", kMaxValueBytes + 64 * 1024)},
  };
  return {{names.pool, kPoolPartitions, config},
          {names.jobs, kJobsPartitions, config},
          {names.dead_letter, 1, config}};
}

int JobPartition(std::string_view job_id, int partitions) {
  CHECK(partitions > 0);
  const auto hash =
      crc32(0, reinterpret_cast<const Bytef*>(job_id.data()), static_cast<uInt>(job_id.size()));
  return static_cast<int>(hash % static_cast<unsigned long>(partitions));
}

}  // namespace fluxqueue::kafka
