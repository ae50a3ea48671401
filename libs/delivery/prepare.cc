#include "libs/delivery/prepare.h"

#include <algorithm>
#include <functional>
#include <string>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"

#include "delivery_migrations.h"

namespace fluxqueue::delivery {
namespace {

// Calls `step` until it returns something that waiting does not change.
absl::Status Persist(const LoopOptions& options,
                     std::string_view doing,
                     const std::function<void(const absl::Status&)>& waits,
                     const std::stop_token& stop,
                     const Clock& clock,
                     const std::function<absl::Status()>& step) {
  Backoff backoff(options.retry_min, options.retry_max, options.seed);
  absl::Status status;
  while (!stop.stop_requested()) {
    status = step();
    if (!IsTransient(status) && !postgres::IsOutcomeUnknown(status)) {
      return Annotate(status, doing);
    }
    waits(Annotate(status, doing));
    Pause(clock, backoff.Next(), stop);
  }
  return MakeStatus(
      absl::StatusCode::kCancelled, "{}: stopped while waiting: {}", doing, Message(status));
}

}  // namespace

const postgres::MigrationSet& Migrations() {
  return migrations::delivery();
}

absl::Status MakeTopics(const LoopOptions& options) {
  return options.bus->MakeTopics(options.brokers, options.service, options.topics);
}

absl::Status Prepare(const LoopOptions& options,
                     const std::vector<const postgres::MigrationSet*>& migrations,
                     const std::function<void(const absl::Status&)>& waits,
                     std::stop_token stop,
                     const Clock& clock) {
  std::vector<const postgres::MigrationSet*> sets = {&Migrations()};
  sets.insert(sets.end(), migrations.begin(), migrations.end());
  RETURN_IF_ERROR(Persist(options, "migrate the tables", waits, stop, clock, [&] {
    return options.stores->Migrate(options.postgres, sets);
  }));
  return Persist(
      options, "make the topics", waits, stop, clock, [&] { return MakeTopics(options); });
}

}  // namespace fluxqueue::delivery
