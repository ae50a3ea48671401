#include "libs/delivery/prepare.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/rights.h"

#include "delivery_migrations.h"

namespace fluxqueue::delivery {
namespace {

// Calls `step` until it returns something that waiting does not change.
absl::Status Persist(const LoopOptions& options,
                     std::string_view doing,
                     const std::function<void(const absl::Status&)>& waits,
                     std::stop_token stop,
                     const std::function<absl::Status()>& step) {
  Backoff backoff(options.retry_min, options.retry_max);
  std::mutex mutex;
  std::condition_variable_any stopped;
  absl::Status status;
  while (!stop.stop_requested()) {
    status = step();
    if (!IsTransient(status) && !postgres::IsOutcomeUnknown(status)) {
      return Annotate(status, doing);
    }
    waits(Annotate(status, doing));
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, backoff.Next(), [] { return false; });
  }
  return MakeStatus(
      absl::StatusCode::kCancelled, "{}: stopped while waiting: {}", doing, Message(status));
}

}  // namespace

const postgres::MigrationSet& Migrations() {
  return migrations::delivery();
}

absl::Status MakeTopics(const LoopOptions& options) {
  ASSIGN_OR_RETURN(const auto admin, kafka::Admin::Create(options.brokers));
  ASSIGN_OR_RETURN(const auto made,
                   admin->EnsureTopics(kafka::TopicSpecsOf(options.service, options.topics)));
  for (const std::string& topic : made) LogInfo("topic made", {{"topic", topic}});
  return absl::OkStatus();
}

absl::Status Prepare(const LoopOptions& options,
                     const std::vector<const postgres::MigrationSet*>& migrations,
                     const std::function<void(const absl::Status&)>& waits,
                     std::stop_token stop) {
  std::vector<const postgres::MigrationSet*> sets = {&Migrations()};
  sets.insert(sets.end(), migrations.begin(), migrations.end());
  postgres::Connection connection(options.postgres);
  RETURN_IF_ERROR(Persist(options, "migrate the tables", waits, stop, [&] {
    return postgres::Migrate(connection, options.postgres.schema, sets);
  }));
  return Persist(options, "make the topics", waits, stop, [&] { return MakeTopics(options); });
}

}  // namespace fluxqueue::delivery
