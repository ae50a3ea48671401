#include "libs/verify/log_filter.h"

#include "libs/model/log_time.h"

namespace fluxqueue::verify {

using delivery::StreamFilter;
using events::v1::Envelope;

LogFilter::LogFilter(const Buried& buried, bool cut) : filter_({}, cut) {
  for (const auto& [service, offset] : buried) buried_[offset].push_back(service);
}

std::optional<EventLine> LogFilter::Take(const LogRecord& record) {
  EventLine line{.partition = record.partition, .offset = record.offset};
  if (const auto buried = buried_.find(record.offset); buried != buried_.end()) {
    line.buried = buried->second;
    if (line.buried.front().empty()) return std::nullopt;
  }
  const bool decodes =
      line.message.ParseFromArray(record.value.data(), static_cast<int>(record.value.size()));
  const std::string& stream = decodes ? line.message.stream() : record.stream;
  const uint64_t sequence = decodes ? line.message.sequence() : record.sequence;
  if (stream.empty() || sequence == 0) return std::nullopt;
  const StreamFilter::Verdict verdict = filter_.Judge(stream, sequence);
  filter_.Commit();
  if (verdict == StreamFilter::Verdict::kDuplicate) ++duplicates_;
  if (verdict == StreamFilter::Verdict::kGap) ++gaps_;
  if (verdict == StreamFilter::Verdict::kTakeBehindGap) ++gaps_;
  if (!StreamFilter::Takes(verdict) || !decodes) return std::nullopt;
  now_ = model::LogTime(now_, record.append_time, line.message);
  if (line.message.event_case() == Envelope::EVENT_NOT_SET || line.message.pool().empty()) {
    return std::nullopt;
  }
  line.time = now_;
  return line;
}

}  // namespace fluxqueue::verify
