#include "libs/verify/replay.h"

#include <algorithm>
#include <sstream>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"
#include "libs/verify/row_tables.h"

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

bool IsBuried(const EventLine& line, std::string_view service) {
  return std::find(line.buried.begin(), line.buried.end(), service) != line.buried.end();
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
  // Where they are kept.
  QueueTables queue_tables;
  MatcherTables matcher_tables;
  // Decided, and not seen in the log yet.
  std::deque<Expected> by_queue;
  std::deque<Expected> by_matcher;
  PoolReplay result;
};

Replayer::Replayer(int partition,
                   FactLog& facts,
                   const Buried& buried,
                   graph::MakeEngine make_engine)
    : partition_(partition), facts_(facts), make_engine_(std::move(make_engine)), filter_(buried) {}
Replayer::~Replayer() = default;

Replayer::Pool& Replayer::At(const std::string& name) {
  std::unique_ptr<Pool>& pool = pools_[name];
  if (pool == nullptr) pool = std::make_unique<Pool>(name, make_engine_);
  return *pool;
}

const queue_core::QueueCore* Replayer::Queue(const std::string& pool) const {
  const auto found = pools_.find(pool);
  return found == pools_.end() ? nullptr : &found->second->queue;
}

const matcher_core::MatcherCore* Replayer::Matcher(const std::string& pool) const {
  const auto found = pools_.find(pool);
  return found == pools_.end() ? nullptr : &found->second->matcher;
}

const QueueTables& Replayer::queue_tables(const std::string& pool) const {
  return pools_.at(pool)->queue_tables;
}

const MatcherTables& Replayer::matcher_tables(const std::string& pool) const {
  return pools_.at(pool)->matcher_tables;
}

absl::Status Replayer::Restore(const replay::v1::Snapshot& snapshot) {
  keeps_rows_ = true;
  restored_ = true;
  now_ = Millis(snapshot.time_ms());
  next_offset_ = snapshot.next_offset();
  Pool& pool = At(snapshot.pool());
  pool.queue_tables = QueueTables(snapshot.queue());
  pool.matcher_tables = MatcherTables(snapshot.matcher());
  for (const auto& decision : snapshot.by_queue()) {
    pool.by_queue.push_back({decision.kind(), decision.message()});
  }
  for (const auto& decision : snapshot.by_matcher()) {
    pool.by_matcher.push_back({decision.kind(), decision.message()});
  }
  RETURN_IF_ERROR(pool.queue.Restore(pool.queue_tables.Rows()));
  return pool.matcher.Restore(pool.matcher_tables.Rows());
}

replay::v1::Snapshot Replayer::Save(const std::string& pool_name) const {
  const Pool& pool = *pools_.at(pool_name);
  replay::v1::Snapshot snapshot;
  snapshot.set_pool(pool_name);
  snapshot.set_partition(partition_);
  snapshot.set_next_offset(next_offset_);
  snapshot.set_time_ms(now_.count());
  *snapshot.mutable_queue() = pool.queue_tables.Save();
  *snapshot.mutable_matcher() = pool.matcher_tables.Save();
  const auto add = [](const std::deque<Expected>& expected, auto* decisions) {
    for (const Expected& one : expected) {
      auto* decision = decisions->Add();
      decision->set_kind(one.kind);
      decision->set_message(one.bytes);
    }
  };
  add(pool.by_queue, snapshot.mutable_by_queue());
  add(pool.by_matcher, snapshot.mutable_by_matcher());
  return snapshot;
}

absl::Status Replayer::Fold(const LogRecord& record) {
  ++records_;
  const std::optional<EventLine> line = filter_.Take(record);
  return line.has_value() ? FoldTaken(*line) : absl::OkStatus();
}

absl::Status Replayer::Fold(const EventLine& line) {
  ++records_;
  return FoldTaken(line);
}

absl::Status Replayer::FoldTaken(const EventLine& line) {
  const Envelope& message = line.message;
  if (message.pool_configured().rules() > model::kLatestRules) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "from partition {} offset {} on pool {} goes by rules {}, and this program "
                      "knows those up to {}: replay it with a newer release",
                      line.partition,
                      line.offset,
                      message.pool(),
                      message.pool_configured().rules(),
                      model::kLatestRules);
  }
  now_ = std::max(now_, line.time);
  next_offset_ = line.offset + 1;
  Pool& pool = At(message.pool());
  ++pool.result.records;
  if (IsQueueDecision(message)) CompareDecision(pool, pool.by_queue, line);
  if (IsMatcherDecision(message)) CompareDecision(pool, pool.by_matcher, line);
  RETURN_IF_ERROR(RunQueue(pool, line));
  return RunMatcher(pool, line);
}

absl::Status Replayer::RunQueue(Pool& pool, const EventLine& line) {
  if (!queue_core::QueueCore::Reads(line.message.event_case())) return absl::OkStatus();
  if (IsBuried(line, "queue")) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  queue_core::Outputs said;
  const absl::Status status = pool.queue.Handle(line.message, now_, &said);
  if (keeps_rows_) pool.queue_tables.Write(pool.queue.TakeChanges());
  pool.queue.Commit();
  if (IsPoison(status)) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(status, fmt::format("queue's core at offset {}", line.offset)));
  for (Envelope& out : said.pool) Expect(pool.by_queue, std::move(out));
  for (const Envelope& fact : said.jobs) {
    if (decided_) decided_(fact.job_fact(), now_);
    CompareFact(pool, fact);
  }
  return absl::OkStatus();
}

absl::Status Replayer::RunMatcher(Pool& pool, const EventLine& line) {
  if (IsBuried(line, "matcher")) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  std::vector<Envelope> said;
  const absl::Status status = pool.matcher.Handle(line.message, now_, &said);
  if (keeps_rows_) pool.matcher_tables.Write(pool.matcher.TakeChanges());
  pool.matcher.Commit();
  if (IsPoison(status)) {
    ++pool.result.skipped;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Annotate(status, fmt::format("matcher's core at offset {}", line.offset)));
  for (Envelope& out : said) Expect(pool.by_matcher, std::move(out));
  return absl::OkStatus();
}

void Replayer::Expect(std::deque<Expected>& expected, Envelope decision) const {
  if (said_) said_(decision);
  std::string kind = TypeOf(decision);
  expected.push_back({std::move(kind), Bare(std::move(decision))});
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

void Replayer::CompareDecision(Pool& pool, std::deque<Expected>& expected, const EventLine& line) {
  const std::string kind = TypeOf(line.message);
  const std::string recorded = Bare(line.message);
  const bool any = !expected.empty();
  const bool identical = any && expected.front().bytes == recorded;
  Difference difference;
  if (!identical) {
    difference = {fmt::format("{} at partition {} offset {}{}",
                              kind,
                              line.partition,
                              line.offset,
                              any ? "" : ": nothing before it in the log asks for it"),
                  Text(recorded),
                  any ? Text(expected.front().bytes) : ""};
  }
  if (any) expected.pop_front();
  Count(pool, kind, identical, std::move(difference));
}

void Replayer::CompareFact(Pool& pool, const Envelope& message) {
  const std::string& id = message.job_fact().job_id();
  const std::optional<FactLog::Recorded> recorded =
      facts_.Take(id, restored_ ? message.job_fact().version() : 0);
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

std::vector<PoolReplay> Replayer::Finish(bool whole) {
  std::set<std::string> names;
  if (whole) {
    for (const auto& [name, pool] : pools_) names.insert(name);
  }
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
