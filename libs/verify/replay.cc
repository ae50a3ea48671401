#include "libs/verify/replay.h"

#include <algorithm>
#include <sstream>

#include "libs/base/status_macros.h"
#include "libs/model/log_time.h"

namespace fluxqueue::verify {
namespace {

using events::v1::Envelope;

// Differences kept for people; all are counted.
constexpr size_t kDifferencesKept = 10;
// Lines of what both sides share that a difference shows around what differs.
constexpr size_t kContextLines = 3;

std::string TypeOf(const Envelope& message) {
  const auto* descriptor = Envelope::descriptor()->FindFieldByNumber(message.event_case());
  return descriptor == nullptr ? "" : descriptor->name();
}

std::string Text(const std::string& bytes) {
  Envelope message;
  return message.ParseFromString(bytes) ? message.DebugString() : "(does not decode)";
}

bool IsQueueDecision(const Envelope& message) {
  return message.has_cycle_requested() || message.has_release_requested();
}

bool IsMatcherDecision(const Envelope& message) {
  return message.has_cycle_answered() || message.has_released() || message.has_inventory_changed();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string DiffText(const Difference& difference) {
  const std::vector<std::string> a = Lines(difference.recorded);
  const std::vector<std::string> b = Lines(difference.replayed);
  const size_t shorter = std::min(a.size(), b.size());
  size_t head = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;

  std::string out = difference.what + "\n";
  const auto add = [&out](char mark, const std::string& line) {
    out += fmt::format("  {} {}\n", mark, line);
  };
  for (size_t i = head > kContextLines ? head - kContextLines : 0; i < head; ++i) add(' ', a[i]);
  for (size_t i = head; i < a.size() - tail; ++i) add('-', a[i]);
  for (size_t i = head; i < b.size() - tail; ++i) add('+', b[i]);
  for (size_t i = 0; i < std::min(tail, kContextLines); ++i) add(' ', a[a.size() - tail + i]);
  return out;
}

struct Replayer::Pool {
  Pool(const std::string& name, const graph::MakeEngine& make_engine)
      : queue(name), matcher(name, make_engine) {
    result.pool = name;
  }

  queue_core::QueueCore queue;
  matcher_core::MatcherCore matcher;
  // Decided, and not seen in the log yet.
  std::deque<Expected> by_queue;
  std::deque<Expected> by_matcher;
  PoolReplay result;
};

Replayer::Replayer(int partition, FactLog& facts, Buried buried, graph::MakeEngine make_engine)
    : partition_(partition),
      facts_(facts),
      buried_(std::move(buried)),
      make_engine_(std::move(make_engine)) {}
Replayer::~Replayer() = default;

Replayer::Pool& Replayer::At(const std::string& name) {
  std::unique_ptr<Pool>& pool = pools_[name];
  if (pool == nullptr) pool = std::make_unique<Pool>(name, make_engine_);
  return *pool;
}

absl::Status Replayer::Fold(const LogRecord& record) {
  ++records_;
  if (buried_.contains({"", record.offset})) return absl::OkStatus();
  Envelope message;
  const bool decodes =
      message.ParseFromArray(record.value.data(), static_cast<int>(record.value.size()));
  const std::string& stream = decodes ? message.stream() : record.stream;
  const uint64_t sequence = decodes ? message.sequence() : record.sequence;
  if (stream.empty() || sequence == 0) return absl::OkStatus();
  switch (filter_.Judge(stream, sequence)) {
    case delivery::StreamFilter::Verdict::kDuplicate:
      ++duplicates_;
      return absl::OkStatus();
    case delivery::StreamFilter::Verdict::kGap:
      ++gaps_;
      return absl::OkStatus();
    case delivery::StreamFilter::Verdict::kTakeBehindGap:
      ++gaps_;
      break;
    case delivery::StreamFilter::Verdict::kTake:
      break;
  }
  filter_.Commit();
  if (!decodes) return absl::OkStatus();
  now_ = model::LogTime(now_, record.append_time, message);
  if (message.event_case() == Envelope::EVENT_NOT_SET || message.pool().empty()) {
    return absl::OkStatus();
  }
  if (taken_) taken_({partition_, record.offset, now_, BuriedBy(record.offset), message});
  return FoldTaken(record, message);
}

absl::Status Replayer::Fold(const EventLine& line) {
  ++records_;
  now_ = std::max(now_, line.time);
  return FoldTaken({line.partition, line.offset, line.time}, line.message);
}

std::vector<std::string> Replayer::BuriedBy(int64_t offset) const {
  std::vector<std::string> services;
  for (const auto& [service, buried] : buried_) {
    if (buried == offset) services.push_back(service);
  }
  return services;
}

absl::Status Replayer::FoldTaken(const LogRecord& record, const Envelope& message) {
  Pool& pool = At(message.pool());
  ++pool.result.records;
  if (IsQueueDecision(message)) CompareDecision(pool, pool.by_queue, record, message);
  if (IsMatcherDecision(message)) CompareDecision(pool, pool.by_matcher, record, message);
  RETURN_IF_ERROR(RunQueue(pool, record, message));
  return RunMatcher(pool, record, message);
}

absl::Status Replayer::RunQueue(Pool& pool, const LogRecord& record, const Envelope& message) {
  if (!queue_core::QueueCore::Reads(message.event_case())) return absl::OkStatus();
  if (buried_.contains({"queue", record.offset})) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  queue_core::Outputs said;
  const absl::Status status = pool.queue.Handle(message, now_, &said);
  pool.queue.Commit();
  if (IsPoison(status)) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(status, fmt::format("queue's core at offset {}", record.offset)));
  for (Envelope& out : said.pool) {
    std::string kind = TypeOf(out);
    pool.by_queue.push_back({std::move(kind), Bare(std::move(out))});
  }
  for (const Envelope& fact : said.jobs) {
    if (decided_) decided_(fact.job_fact(), now_);
    CompareFact(pool, fact);
  }
  return absl::OkStatus();
}

absl::Status Replayer::RunMatcher(Pool& pool, const LogRecord& record, const Envelope& message) {
  if (buried_.contains({"matcher", record.offset})) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  std::vector<Envelope> said;
  const absl::Status status = pool.matcher.Handle(message, now_, &said);
  pool.matcher.Commit();
  if (IsPoison(status)) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(status, fmt::format("matcher's core at offset {}", record.offset)));
  for (Envelope& out : said) {
    std::string kind = TypeOf(out);
    pool.by_matcher.push_back({std::move(kind), Bare(std::move(out))});
  }
  return absl::OkStatus();
}

void Replayer::Count(Pool& pool, const std::string& kind, bool identical, Difference difference) {
  for (Tally* tally : {&pool.result.total, &pool.result.kinds[kind]}) {
    ++tally->decisions;
    if (identical) ++tally->identical;
  }
  if (!identical && pool.result.differences.size() < kDifferencesKept) {
    pool.result.differences.push_back(std::move(difference));
  }
}

void Replayer::CompareDecision(Pool& pool,
                               std::deque<Expected>& expected,
                               const LogRecord& record,
                               const Envelope& message) {
  const std::string kind = TypeOf(message);
  const std::string recorded = Bare(message);
  const bool any = !expected.empty();
  const bool identical = any && expected.front().bytes == recorded;
  Difference difference;
  if (!identical) {
    difference = {fmt::format("{} at partition {} offset {}{}",
                              kind,
                              record.partition,
                              record.offset,
                              any ? "" : ": nothing before it in the log asks for it"),
                  Text(recorded),
                  any ? Text(expected.front().bytes) : ""};
  }
  if (any) expected.pop_front();
  Count(pool, kind, identical, std::move(difference));
}

void Replayer::CompareFact(Pool& pool, const Envelope& message) {
  const std::string& id = message.job_fact().job_id();
  const std::optional<FactLog::Recorded> recorded = facts_.Take(id);
  const std::string kind = TypeOf(message);
  if (!recorded.has_value()) {
    ++pool.result.total.in_flight;
    ++pool.result.kinds[kind].in_flight;
    return;
  }
  const std::string replayed = Bare(message);
  const bool identical = recorded->bytes == replayed;
  Difference difference;
  if (!identical) {
    difference = {fmt::format("{} of job {} at partition {} offset {} of the jobs topic",
                              kind,
                              id,
                              recorded->partition,
                              recorded->offset),
                  Text(recorded->bytes),
                  Text(replayed)};
  }
  Count(pool, kind, identical, std::move(difference));
}

std::vector<PoolReplay> Replayer::Finish() {
  std::set<std::string> names;
  for (const auto& [name, pool] : pools_) names.insert(name);
  for (const auto& [id, recorded] : facts_.Left(names)) {
    Envelope message;
    message.ParseFromString(recorded.bytes);
    Count(At(message.pool()),
          TypeOf(message),
          false,
          {fmt::format("job_fact of job {} at partition {} offset {} of the jobs topic: nothing in "
                       "the log of "
                       "partition {} asks for it",
                       id,
                       recorded.partition,
                       recorded.offset,
                       partition_),
           Text(recorded.bytes),
           ""});
  }
  std::vector<PoolReplay> results;
  for (auto& [name, pool] : pools_) {
    for (const auto* expected : {&pool->by_queue, &pool->by_matcher}) {
      for (const Expected& decision : *expected) {
        ++pool->result.total.in_flight;
        ++pool->result.kinds[decision.kind].in_flight;
      }
    }
    results.push_back(std::move(pool->result));
  }
  return results;
}

}  // namespace fluxqueue::verify
