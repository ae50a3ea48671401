#include "services/queue/adapters/rpc/job_stream.h"

#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"
#include "libs/rpc/grpc_status.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/job_message.h"

namespace fluxqueue::queue {
namespace {

// Changes that a client may be behind.
constexpr size_t kMostWaiting = 10'000;
constexpr size_t kPage = 500;

}  // namespace

JobStream::JobStream(std::string pool,
                     job_store::FactStore& facts,
                     FactFeed& feed,
                     rpc::WorkerPool& workers)
    : pool_(std::move(pool)), facts_(facts), feed_(feed), workers_(workers) {}

std::shared_ptr<JobStream> JobStream::Start(const std::string& pool,
                                            Admit admit,
                                            rpc::WorkerPool& judges,
                                            job_store::FactStore& facts,
                                            FactFeed& feed,
                                            rpc::WorkerPool& workers) {
  std::shared_ptr<JobStream> stream(new JobStream(pool, facts, feed, workers));
  stream->self_ = stream;
  if (!judges.TryPost([stream, admit = std::move(admit)] { stream->Begin(admit); })) {
    stream->End(TooMany());
  }
  return stream;
}

void JobStream::Begin(const Admit& admit) {
  absl::StatusOr<JobScope> scope = admit();
  if (!scope.ok()) return End(scope.status());
  const std::string tenant = scope->tenant;
  {
    const std::lock_guard lock(mutex_);
    scope_ = *std::move(scope);
  }
  // First the changes, then what is there: nothing falls between the two.
  const absl::Status watching = feed_.Watch(pool_, tenant, shared_from_this());
  if (!watching.ok()) return End(watching);
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
    over = finished_;
  }
  // It may have been done with before it was watched for.
  if (over) return feed_.Unwatch(shared_from_this());
  Pump();
}

bool JobStream::InQueue(const events::v1::JobFact& fact) const {
  return scope_.filter.queue.empty() || scope_.filter.queue == fact.queue();
}

bool JobStream::Wanted(const events::v1::JobFact& fact) const {
  // One that was moved to another queue is followed on, as far as that may be.
  const auto known = jobs_.find(fact.job_id());
  if (known != jobs_.end()) return !known->second.left || InQueue(fact);
  const job_store::FactFilter& filter = scope_.filter;
  const auto fits = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  const bool claim = model::IsClaim(fact.workload().kind()) && fact.workload().namespace_().empty();
  return InQueue(fact) && fits(filter.space, fact.workload().namespace_()) &&
         fits(filter.kind, fact.workload().kind()) && (filter.claims || !claim);
}

void JobStream::Add(const events::v1::JobFact& fact) {
  if (end_.has_value() || !Wanted(fact)) return;
  Said& said = jobs_[fact.job_id()];
  if (fact.version() <= said.version) return;
  said = {.version = fact.version(), .left = scope_.only_in_queue && !InQueue(fact)};
  *said_.emplace_back().mutable_job() = ToMessage(fact);
}

void JobStream::Changed(const events::v1::JobFact& fact) {
  {
    const std::lock_guard lock(mutex_);
    Add(fact);
    // While it is listed, a page may still bring the job as it was.
    if (listed_ && model::IsTerminal(static_cast<model::JobState>(fact.state()))) {
      jobs_.erase(fact.job_id());
    }
    if (said_.size() > kMostWaiting) {
      said_.clear();
      end_ = MakeStatus(absl::StatusCode::kResourceExhausted,
                        "{} changes wait to be read, which is too many: watch again",
                        kMostWaiting);
    }
  }
  Pump();
}

void JobStream::End(const absl::Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!end_.has_value()) end_ = why;
  }
  Pump();
}

void JobStream::Pump() {
  enum class Next { kNothing, kWrite, kRead, kFinish };
  Next next = Next::kNothing;
  absl::Status end;
  std::shared_ptr<JobStream> reader;
  {
    const std::lock_guard lock(mutex_);
    if (writing_ || finished_) return;
    if (!said_.empty()) {
      current_ = std::move(said_.front());
      said_.pop_front();
      writing_ = true;
      next = Next::kWrite;
    } else if (end_.has_value()) {
      finished_ = true;
      end = *end_;
      next = Next::kFinish;
    } else if (begun_ && !listed_ && !reading_) {
      reading_ = true;
      reader = shared_from_this();
      next = Next::kRead;
    }
  }
  // Whoever has set the mark is the only one to act on it.
  if (next == Next::kWrite) StartWrite(&current_);
  if (next == Next::kFinish) Finish(rpc::ToGrpcStatus(end));
  if (next == Next::kRead) workers_.Post([reader] { reader->ReadPage(); });
}

void JobStream::ReadPage() {
  const absl::StatusOr<std::vector<events::v1::JobFact>> page =
      facts_.Page(scope_.filter, page_end_, kPage);
  if (!page.ok()) return End(page.status());
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
    for (const events::v1::JobFact& fact : *page) Add(fact);
    if (page->size() < kPage) {
      listed_ = true;
      said_.emplace_back().set_listed(true);
    } else {
      page_end_ = page->back().job_id();
    }
  }
  Pump();
}

void JobStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) {
      said_.clear();
      if (!end_.has_value()) end_ = absl::CancelledError();
    }
  }
  Pump();
}

void JobStream::OnCancel() {
  {
    const std::lock_guard lock(mutex_);
    said_.clear();
    end_ = absl::CancelledError();
  }
  Pump();
}

void JobStream::OnDone() {
  const std::shared_ptr<JobStream> last = std::move(self_);
  feed_.Unwatch(last);
}

}  // namespace fluxqueue::queue
