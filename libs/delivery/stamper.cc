#include "libs/delivery/stamper.h"

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/delivery/texts.h"
#include "libs/kafka/envelope.h"
#include "libs/model/job_of.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::delivery {
namespace {

// A thread keeps the memory of the last message that it looked at, unless that was large.
constexpr size_t kMostKeptOfRead = 64 * 1024;

// Enough of a message that is too large to see what it was.
constexpr size_t kShownOfOversized = 64 * 1024;

// What the addressee will find.
bool Decodes(const std::string& value) {
  static thread_local events::v1::Envelope read;
  const bool decodes = read.ParseFromString(value);
  if (value.size() > kMostKeptOfRead) read = {};
  return decodes;
}

}  // namespace

void Stamper::AddSource(int source, std::string stream) {
  sources_[source] = {std::move(stream)};
}

const Stamper::Source& Stamper::SourceOf(int source) const {
  const auto found = sources_.find(source);
  CHECK(found != sources_.end(), "a message for source {}, which is not held", source);
  return found->second;
}

Target Stamper::TargetOf(const Outbox::Message& message) const {
  if (message.target == Outbox::Target::kPool) return {topics_.pool, message.partition};
  return {topics_.jobs, kafka::JobPartition(message.envelope.job_fact().job_id())};
}

OutboxRow& Stamper::RowOf(const Key& key, std::map<Key, OutboxRow>& rows) {
  const auto [row, is_new] = rows.try_emplace(key);
  if (is_new) {
    const Source& source = SourceOf(key.first);
    const auto last = source.sequences.find(key.second);
    row->second.stream = source.stream;
    row->second.target = key.second;
    row->second.last_seq = last == source.sequences.end() ? 0 : last->second;
  }
  ++row->second.last_seq;
  return row->second;
}

std::vector<OutboxRow> Stamper::Stamp(std::vector<Outbox::Message>& messages,
                                      std::vector<DeadLetter> letters,
                                      Millis now,
                                      int* oversized) {
  std::map<Key, OutboxRow> rows;
  for (Outbox::Message& message : messages) {
    events::v1::Envelope& envelope = message.envelope;
    Target target = TargetOf(message);
    envelope.set_stream(SourceOf(message.source).stream);
    envelope.set_time_ms(now.count());
    envelope.set_latest_ms((now + max_clock_lead_).count());
    envelope.set_traceparent(tracing::Traceparent(model::JobOf(envelope)));
    // Stream, sequence, time and trace are a few dozen bytes; the topics leave room for more.
    if (const size_t size = envelope.ByteSizeLong(); size > kafka::kMaxValueBytes) {
      ++*oversized;
      DeadLetter letter{message.source,
                        fmt::format("a message of ours has {} bytes, at most {} can be sent",
                                    size,
                                    kafka::kMaxValueBytes),
                        target.topic,
                        {}};
      letter.message.partition = target.partition;
      letter.message.offset = -1;
      letter.message.key = envelope.pool();
      letter.message.value = envelope.SerializeAsString().substr(0, kShownOfOversized);
      letters.push_back(std::move(letter));
      continue;
    }
    OutboxRow& row = RowOf({message.source, target}, rows);
    envelope.set_sequence(row.last_seq);
    WireRecord record = MakeRecord(envelope, target.partition);
    if (!Decodes(record.value)) {
      LogWarning("a message of ours has a text that is not UTF-8, '?' stands for it",
                 {{"type", kafka::EventType(envelope)}, {"job", model::JobOf(envelope)}});
      MakeTextsValid(&envelope);
      record = MakeRecord(envelope, target.partition);
    }
    row.records.push_back(std::move(record));
  }
  for (const DeadLetter& letter : letters) {
    RowOf({letter.source, {topics_.dead_letter, 0}}, rows)
        .records.push_back(MakeRecord(letter, service_));
  }
  std::vector<OutboxRow> result;
  for (auto& [key, row] : rows) {
    given_[key] = row.last_seq;
    result.push_back(std::move(row));
  }
  return result;
}

void Stamper::Commit() {
  for (const auto& [key, last] : given_) sources_.at(key.first).sequences[key.second] = last;
  given_.clear();
}

}  // namespace fluxqueue::delivery
