#include "tests/bench/replay_log.h"

#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"
#include "libs/queue_core/queue_core.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/submission.h"
#include "libs/verify/event_file.h"

#include "tools/fluxqueue/gzip_file.h"

namespace fluxqueue::bench {
namespace {

using events::v1::Envelope;

constexpr int kNodes = 100;
constexpr size_t kRunning = 300;
// Between two submissions.
constexpr Millis kStep{50};

simulation::Machine Cluster() {
  std::vector<trace::TraceNode> offers;
  for (int i = 0; i < kNodes; ++i) {
    trace::TraceNode& node = offers.emplace_back();
    node.name = fmt::format("node-{}", i);
    node.offers = {{"cpu", 32'000}, {"memory", int64_t{256} << 30}};
  }
  return simulation::MachineOfTrace(offers);
}

// What is said is numbered as by services, and kept.
class Pool {
 public:
  Pool(cli::GzipWriter& log, cli::GzipWriter& facts)
      : log_file_(log),
        facts_file_(facts),
        machine_(Cluster()),
        submissions_(machine_),
        queue_(std::string(simulation::kPool)),
        matcher_(queue_.pool()) {
    for (Envelope& message : simulation::Beginning(machine_, {.queue_depth = 64})) {
      Tell("admission/watch", std::move(message));
    }
  }

  void Submit() {
    now_ += kStep;
    trace::TraceJob job;
    job.name = fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:08x}{:04x}",
                           random_(),
                           random_() & 0xffff,
                           random_() & 0xfff,
                           random_() & 0xfff,
                           random_(),
                           random_() & 0xffff);
    job.slots = int64_t{1} << (random_() % 3);
    job.requests = {{"cpu", 1000 * (int64_t{1} << (random_() % 3))}, {"memory", int64_t{1} << 30}};
    Tell("admission/watch", submissions_.Make(job, std::chrono::minutes(10), now_));
  }
  // The job that has run longest, while more run than the cluster is to have.
  void EndSome() {
    while (running_.size() > kRunning) {
      Envelope message = ForPool();
      message.mutable_job_ended()->set_job_id(running_.front());
      message.mutable_job_ended()->set_result(events::v1::JobEnded::RESULT_SUCCEEDED);
      running_.pop_front();
      Tell("cleanup/watch", std::move(message));
    }
  }
  uint64_t records() const { return records_; }

 private:
  Envelope ForPool() const {
    Envelope message;
    message.set_pool(queue_.pool());
    return message;
  }

  void Tell(const std::string& stream, Envelope message) {
    Say(stream, std::move(message));
    while (!log_.empty()) {
      const Envelope next = std::move(log_.front());
      log_.pop_front();
      Read(next);
    }
  }
  void Say(const std::string& stream, Envelope message) {
    Stamp(stream, &message);
    Keep(log_file_, log_offset_++, message);
    log_.push_back(std::move(message));
  }
  void Stamp(const std::string& stream, Envelope* message) {
    message->set_stream(stream);
    message->set_sequence(++sequences_[stream]);
    message->set_time_ms(now_.count());
    message->set_traceparent(fmt::format("00-{:08x}{:08x}{:08x}{:08x}-{:08x}{:08x}-01",
                                         random_(),
                                         random_(),
                                         random_(),
                                         random_(),
                                         random_(),
                                         random_()));
  }
  void Keep(cli::GzipWriter& file, int64_t offset, const Envelope& message) {
    file.Write(verify::FormatEventLine({.offset = offset, .time = now_, .message = message}));
    ++records_;
  }

  void Read(const Envelope& message) {
    std::vector<Envelope> answers;
    CHECK(matcher_.Handle(message, now_, &answers).ok());
    matcher_.Commit();
    queue_core::Outputs outputs;
    const absl::Status read = queue_.Handle(message, now_, &outputs);
    CHECK(read.ok(), "{}", Message(read));
    queue_.Commit();
    for (Envelope& said : outputs.pool) Say("queue/0", std::move(said));
    for (Envelope& said : answers) Say("matcher/0", std::move(said));
    for (Envelope& fact : outputs.jobs) {
      Stamp("queue/0-jobs", &fact);
      Keep(facts_file_, facts_offset_++, fact);
      if (fact.job_fact().state() == events::v1::JOB_STATE_ALLOCATED) Start(fact.job_fact());
    }
  }

  void Start(const events::v1::JobFact& fact) {
    Envelope bound = ForPool();
    bound.mutable_job_bound()->set_job_id(fact.job_id());
    bound.mutable_job_bound()->set_attempt(fact.attempt());
    Say("binder/0", std::move(bound));
    Envelope started = ForPool();
    started.mutable_job_started()->set_job_id(fact.job_id());
    started.mutable_job_started()->set_attempt(fact.attempt());
    started.mutable_job_started()->set_started_ms(now_.count());
    Say("cleanup/watch", std::move(started));
    running_.push_back(fact.job_id());
  }

  cli::GzipWriter& log_file_;
  cli::GzipWriter& facts_file_;
  std::mt19937 random_{7};
  const simulation::Machine machine_;
  simulation::Submissions submissions_;
  queue_core::QueueCore queue_;
  matcher_core::MatcherCore matcher_;
  std::deque<Envelope> log_;
  std::deque<std::string> running_;
  std::map<std::string, uint64_t> sequences_;
  Millis now_{1'700'000'000'000};
  int64_t log_offset_ = 0;
  int64_t facts_offset_ = 0;
  uint64_t records_ = 0;
};

}  // namespace

absl::Status WriteReplayLog(const std::string& path, uint64_t records) {
  const std::string rest = path + ".log";
  ASSIGN_OR_RETURN(cli::GzipWriter facts, cli::GzipWriter::Open(path));
  ASSIGN_OR_RETURN(cli::GzipWriter log, cli::GzipWriter::Open(rest));
  facts.Write(verify::FormatEventFileHeader(
      {.build = "bench", .rules = model::kLatestRules, .pool = std::string(simulation::kPool)}));
  Pool pool(log, facts);
  while (pool.records() < records) {
    pool.Submit();
    pool.EndSome();
  }
  RETURN_IF_ERROR(facts.Close());
  RETURN_IF_ERROR(log.Close());
  std::ofstream whole(path, std::ios::binary | std::ios::app);
  whole << std::ifstream(rest, std::ios::binary).rdbuf();
  whole.close();
  std::filesystem::remove(rest);
  if (!whole) return InvalidArgument("{}: cannot be written", path);
  return absl::OkStatus();
}

}  // namespace fluxqueue::bench
