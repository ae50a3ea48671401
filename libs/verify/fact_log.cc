#include <algorithm>

#include "libs/base/status_macros.h"
#include "libs/verify/replay.h"

namespace fluxqueue::verify {

using events::v1::Envelope;

std::string Bare(Envelope message) {
  message.clear_stream();
  message.clear_sequence();
  message.clear_time_ms();
  message.clear_latest_ms();
  message.clear_traceparent();
  return message.SerializeAsString();
}

void FactLog::BeginPartition(int partition, bool cut) {
  partitions_.insert_or_assign(partition, Partition{cut, delivery::StreamFilter({}, cut)});
}

uint64_t FactLog::lost() const {
  uint64_t lost = 0;
  for (const auto& [number, partition] : partitions_) lost += partition.lost;
  return lost;
}

bool FactLog::Partition::Takes(const std::string& stream, uint64_t sequence) {
  const auto verdict = filter.Judge(stream, sequence);
  if (!delivery::StreamFilter::Takes(verdict)) return false;
  filter.Commit();
  uint64_t& before = highest[stream];
  if (sequence < before) {
    --lost;  // it was missing, and comes late
  } else if (verdict == delivery::StreamFilter::Verdict::kTakeBehindGap) {
    lost += sequence - before - 1;
  }
  before = std::max(before, sequence);
  return true;
}

void FactLog::Fold(const LogRecord& record) {
  const auto unreadable = [&](std::string_view why) {
    unreadable_.push_back(
        fmt::format("partition {} offset {}: {}", record.partition, record.offset, why));
  };
  Partition& partition = partitions_.at(record.partition);
  Envelope message;
  if (!message.ParseFromArray(record.value.data(), static_cast<int>(record.value.size()))) {
    if (!record.stream.empty()) partition.Takes(record.stream, record.sequence);
    return unreadable("it does not decode as an Envelope");
  }
  if (!message.has_job_fact()) return unreadable("it is not a JobFact");
  if (!partition.Takes(message.stream(), message.sequence())) {
    ++duplicates_;
    return;
  }
  if (taken_) taken_({record.partition, record.offset, record.append_time, {}, message});
  Keep(record, &partition, std::move(message));
}

void FactLog::Fold(const EventLine& line) {
  Keep({line.partition, line.offset, line.time}, nullptr, line.message);
}

bool FactLog::Follows(const Trail& trail, uint64_t version, Partition* partition) {
  if (version == trail.last + 1) return true;
  if (partition == nullptr || version <= trail.last) return false;
  if (trail.first == 0 && partition->cut) return true;
  const uint64_t missing = version - trail.last - 1;
  if (partition->missed + missing > partition->lost) return false;
  partition->missed += missing;
  return true;
}

void FactLog::Keep(const LogRecord& record, Partition* partition, Envelope message) {
  ++facts_;
  const events::v1::JobFact& fact = message.job_fact();
  Trail& trail = trails_[fact.job_id()];
  if (!Follows(trail, fact.version(), partition)) {
    trail.faults.push_back(fmt::format("version {} follows {} (partition {} offset {})",
                                       fact.version(),
                                       trail.last,
                                       record.partition,
                                       record.offset));
  }
  if (trail.first == 0) trail.first = fact.version();
  trail.last = fact.version();
  if (hold_ == Hold::kTrails) return;
  Job& job = jobs_[fact.job_id()];
  job.pool = fact.pool();
  const uint64_t version = fact.version();
  job.facts.push_back({record.partition, record.offset, version, Bare(std::move(message))});
}

std::optional<FactLog::Recorded> FactLog::Take(const std::string& job_id, uint64_t version) {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return std::nullopt;
  std::deque<Recorded>& facts = job->second.facts;
  while (!facts.empty() && facts.front().version < version) facts.pop_front();
  if (facts.empty()) return std::nullopt;
  Recorded fact = std::move(facts.front());
  facts.pop_front();
  return fact;
}

std::vector<std::pair<std::string, FactLog::Recorded>> FactLog::Left(
    const std::set<std::string>& pools) const {
  std::vector<std::pair<std::string, Recorded>> left;
  for (const auto& [id, job] : jobs_) {
    if (!pools.contains(job.pool)) continue;
    for (const Recorded& fact : job.facts) left.emplace_back(id, fact);
  }
  return left;
}

}  // namespace fluxqueue::verify
